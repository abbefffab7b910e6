//! A full copy of the image in a folder: the slowest to make, and all that every file system can.

use std::fs;
use std::path::{Path, PathBuf};

use corpus_domain::{Backing as Kind, SizeProfile};
use corpus_protocol::GuestStorage;

use super::{Backing, COPY, Store, projects, too_full};
use crate::failure::{At, Failure};
use crate::guest_root::{GuestRoot, view};
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

/// The backing.
pub struct Dir;

fn tree(folder: &Path) -> PathBuf {
    folder.join("rootfs")
}

impl Backing for Dir {
    fn kind(&self) -> Kind {
        Kind::Dir
    }

    fn holds_size(&self, host: &Host) -> bool {
        projects::are_held(host)
    }

    fn has_size(&self, host: &Host, folder: &Path) -> bool {
        self.holds_size(host) && projects::is_one(&tree(folder))
    }

    fn lies_on_image(&self) -> bool {
        false
    }

    fn keeps_ids(&self) -> bool {
        false
    }

    fn piece(&self) -> &'static str {
        "rootfs"
    }

    /// Owners, access lists and capabilities of files come out as the guest's, since they are read so.
    fn make(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<(), Failure> {
        task.note("copying the image");
        let (image, tree) = (view(&store.image_root(), store.ids)?, tree(&store.folder));
        fs::create_dir(&tree).at("make", &tree)?;
        projects::begin(task, &tree)?;
        self.resize(task, store, size)?;
        let argv = Argv::new("cp").args(["-a", "--reflink=auto", "--"]).arg(image.path().join(".")).arg(&tree);
        argv.limit(COPY).run(task)?;
        // The node's root is not held by it.
        match projects::usage(&tree) {
            Some(told) if told.used > told.of => Err(too_full(told.used, size)),
            _ => Ok(()),
        }
    }

    fn root(&self, store: &Store) -> Option<PathBuf> {
        Some(tree(&store.folder))
    }

    fn mount(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        self.open(task, store)
    }

    fn open(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        Ok(GuestRoot::folder(&tree(&store.folder))?.with_ids(store.ids))
    }

    fn look(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        Ok(view(&tree(&store.folder), None)?.protected()?.with_ids(store.ids))
    }

    fn resize(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        projects::resize(task, &tree(&store.folder), size)
    }

    fn shrink(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        projects::shrink(task, &tree(&store.folder), size)
    }

    fn usage(&self, _: &Host, folder: &Path) -> Option<GuestStorage> {
        projects::usage(&tree(folder))
    }

    fn copy(&self, task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
        projects::copy(task, from, to)
    }

    fn remove(&self, task: &Task<'_>, piece: &Path) -> Result<(), Failure> {
        projects::forget(task, piece)
    }
}
