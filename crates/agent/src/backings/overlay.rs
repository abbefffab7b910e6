//! What differs from the image, laid over it: made in no time, and as large as what the guest writes, up to its size where
//! the host's file system holds it ([`projects`]).
//!
//! The image belongs to the node's root. For a guest with ids of its own it is mounted with those, and the overlay laid
//! over that; what the guest writes is the guest's on the node too.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use corpus_domain::{Backing as Kind, IdRange, SizeProfile};
use corpus_protocol::GuestStorage;

use super::{Backing, Store, projects};
use crate::failure::{At, Failure};
use crate::files;
use crate::guest_root::{Durable, GuestRoot};
use crate::host::Host;
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

    fn holds_size(&self, host: &Host) -> bool {
        projects::are_held(host)
    }

    fn has_size(&self, host: &Host, folder: &Path) -> bool {
        self.holds_size(host) && projects::is_one(&upper(folder))
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
    fn make(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<(), Failure> {
        let upper = upper(&store.folder);
        make_layer(store, &upper)?;
        make_layer(store, &work(&store.folder))?;
        projects::begin(task, &upper)?;
        self.resize(task, store, size).map(drop)
    }

    fn root(&self, _: &Store) -> Option<PathBuf> {
        None
    }

    fn mount(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        let (upper, work) = (upper(&store.folder), work(&store.folder));
        if projects::is_one(&upper) {
            // What it had may be another's project: that of files which were replaced.
            files::remove_folder(&work)?;
            make_layer(store, &work)?;
            projects::join(task, &work, &upper)?;
        }
        GuestRoot::overlay(&store.image_root(), &upper, &work, Durable::Yes, store.ids)
    }

    fn open(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        let (upper, work) = (upper(&store.folder), store.folder.join("setup-work"));
        files::remove_folder(&work)?;
        fs::create_dir(&work).at("make", &work)?;
        if projects::is_one(&upper) {
            projects::join(task, &work, &upper)?;
        }
        GuestRoot::overlay(&store.image_root(), &upper, &work, Durable::No, store.ids)
    }

    fn look(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        GuestRoot::layers(&store.image_root(), &upper(&store.folder), store.ids)
    }

    fn resize(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        projects::resize(task, &upper(&store.folder), size)
    }

    fn shrink(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        projects::shrink(task, &upper(&store.folder), size)
    }

    fn usage(&self, _: &Host, folder: &Path) -> Option<GuestStorage> {
        projects::usage(&upper(folder))
    }

    fn copy(&self, task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
        projects::copy(task, from, to)
    }

    fn remove(&self, task: &Task<'_>, piece: &Path) -> Result<(), Failure> {
        projects::forget(task, piece)
    }
}

/// A folder whose permissions are those of the image's root, which is the guest's own.
fn make_layer(store: &Store, layer: &Path) -> Result<(), Failure> {
    let image = store.image_root();
    let mode = fs::metadata(&image).at("look at", &image)?.permissions().mode() & 0o7777;
    let owner = store.ids.map(IdRange::first);
    fs::create_dir(layer).at("make", layer)?;
    fs::set_permissions(layer, fs::Permissions::from_mode(mode)).at("make", layer)?;
    chown(layer, owner, owner).at("give away", layer)
}
