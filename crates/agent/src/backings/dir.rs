//! A full copy of the image in a folder: the slowest to make, and all that every file system can.

use std::path::PathBuf;

use corpus_domain::{Backing as Kind, SizeProfile};

use super::{Backing, COPY, Store};
use crate::failure::Failure;
use crate::guest_root::{GuestRoot, view};
use crate::runner::Argv;
use crate::task::Task;

/// The backing.
pub struct Dir;

fn tree(store: &Store) -> PathBuf {
    store.folder.join("rootfs")
}

impl Backing for Dir {
    fn kind(&self) -> Kind {
        Kind::Dir
    }

    fn holds_size(&self) -> bool {
        false
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
    fn make(&self, task: &Task<'_>, store: &Store, _: SizeProfile) -> Result<(), Failure> {
        task.note("copying the image");
        let image = view(&store.image_root(), store.ids)?;
        let argv = Argv::new("cp").args(["-a", "--reflink=auto", "--"]).arg(image.path().join(".")).arg(tree(store));
        argv.limit(COPY).run(task).map(|_| ())
    }

    fn root(&self, store: &Store) -> Option<PathBuf> {
        Some(tree(store))
    }

    fn mount(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        self.open(task, store)
    }

    fn open(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        Ok(GuestRoot::folder(&tree(store))?.with_ids(store.ids))
    }

    fn look(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        Ok(view(&tree(store), None)?.protected()?.with_ids(store.ids))
    }
}
