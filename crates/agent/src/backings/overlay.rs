//! What differs from the image, laid over it: made in no time, and as large as what the guest writes.
//!
//! The image belongs to the node's root. For a guest with ids of its own it is mounted with those, and the overlay laid
//! over that; what the guest writes is the guest's on the node too.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use corpus_domain::{Backing as Kind, IdRange, SizeProfile};

use super::{Backing, Store};
use crate::failure::{At, Failure};
use crate::files;
use crate::guest_root::{Durable, GuestRoot};
use crate::task::Task;

/// The backing.
pub struct Overlay;

const UPPER: &str = "delta0";

/// What the guest writes to. The names are those that LXC's own overlays have.
fn upper(folder: &Path) -> PathBuf {
    folder.join(UPPER)
}

/// What the overlay of a guest that runs works in.
fn work(folder: &Path) -> PathBuf {
    folder.join("olwork")
}

impl Backing for Overlay {
    fn kind(&self) -> Kind {
        Kind::Overlayfs
    }

    fn holds_size(&self) -> bool {
        false
    }

    fn lies_on_image(&self) -> bool {
        true
    }

    fn keeps_ids(&self) -> bool {
        false
    }

    fn piece(&self) -> &'static str {
        UPPER
    }

    /// What the overlay writes to; its root shows the permissions of the image's.
    fn make(&self, _: &Task<'_>, store: &Store, _: SizeProfile) -> Result<(), Failure> {
        let image = store.image_root();
        let mode = fs::metadata(&image).at("look at", &image)?.permissions().mode() & 0o7777;
        let owner = store.ids.map(IdRange::first);
        for layer in [upper(&store.folder), work(&store.folder)] {
            fs::create_dir(&layer).at("make", &layer)?;
            fs::set_permissions(&layer, fs::Permissions::from_mode(mode)).at("make", &layer)?;
            chown(&layer, owner, owner).at("give away", &layer)?;
        }
        Ok(())
    }

    fn root(&self, _: &Store) -> Option<PathBuf> {
        None
    }

    fn mount(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        let (upper, work) = (upper(&store.folder), work(&store.folder));
        GuestRoot::overlay(&store.image_root(), &upper, &work, Durable::Yes, store.ids)
    }

    fn open(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        let work = store.folder.join("setup-work");
        files::remove_folder(&work)?;
        fs::create_dir(&work).at("make", &work)?;
        GuestRoot::overlay(&store.image_root(), &upper(&store.folder), &work, Durable::No, store.ids)
    }

    fn look(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        GuestRoot::layers(&store.image_root(), &upper(&store.folder), store.ids)
    }
}
