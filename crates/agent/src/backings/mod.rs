//! What the files of a guest lie on, one file a backing.
//!
//! A driver has a folder for each guest, and asks the guest's backing for what is in it: a root to start the guest with,
//! and its files for us. A backing never hears of what runs the guest, nor a driver of how its files are kept; so each of
//! one side goes with each of the other, and the suite of `tests/lab.rs` holds all of them to the same.

mod btrfs;
mod dir;
mod disk;
mod filesystem;
mod loops;
mod lvm;
mod overlay;
mod projects;
pub mod room;
mod volumes;
mod zfs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::{Backing as Kind, Bytes, IdRange, ImageName, SizeProfile};
use corpus_protocol::{BackingFact, GuestStorage};

use crate::failure::Failure;
use crate::guest_root::GuestRoot;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

pub use self::btrfs::{Btrfs, IOCTLS};
pub use self::dir::Dir;
pub use self::disk::Disk;
pub use self::lvm::Lvm;
pub use self::overlay::Overlay;
use self::volumes::OnVolumes;
pub use self::zfs::Zfs;

/// How long a copy of a guest's files may take.
pub const COPY: Duration = Duration::from_mins(30);

/// Where the files of one guest are.
#[derive(Debug, Clone)]
pub struct Store {
    /// The guest's folder. What a backing keeps there has a name of its own.
    pub folder: PathBuf,
    /// The folder of the image that the guest is made from.
    pub image: PathBuf,
    /// The guest's ids on the node; none where they are the same.
    pub ids: Option<IdRange>,
    /// Whether somebody is about to start the guest of a folder, or runs it.
    pub is_begun: fn(&Path) -> bool,
}

impl Store {
    /// What the image is: a system's files.
    pub fn image_root(&self) -> PathBuf {
        self.image.join("rootfs")
    }
}

/// A way to keep the files of guests. Each change tells whether there was anything to do.
pub trait Backing: Sync {
    /// Which it is.
    fn kind(&self) -> Kind;
    /// What stands in its way on this host.
    fn obstacle(&self, _: &Host) -> Option<String> {
        None
    }
    /// Whether a guest has the storage of its size and no more, and can be given more.
    fn holds_size(&self, _: &Host) -> bool {
        true
    }
    /// Whether the guest in the folder does: one that was made before its host held sizes is not held by it.
    fn has_size(&self, host: &Host, _: &Path) -> bool {
        self.holds_size(host)
    }
    /// What the sizes of all its guests come to at most, where they lie in a pool of their own.
    fn room(&self, _: &Task<'_>) -> Result<Option<Bytes>, Failure> {
        Ok(None)
    }
    /// Whether a guest needs its image for as long as it is there.
    fn lies_on_image(&self) -> bool;
    /// Whether the files have the ids that the guest has inside, and the kernel shifts them.
    fn keeps_ids(&self) -> bool;
    /// The files of a new guest are in its folder, which is its only trace: nobody else knows the guest yet.
    fn make(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<(), Failure>;
    /// The folder that is the guest's root as it stands; none where it has to be mounted first.
    fn root(&self, store: &Store) -> Option<PathBuf>;
    /// The guest's root to start it with, mounted nowhere yet.
    fn mount(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure>;
    /// The guest's files for us, whether it runs or not.
    fn open(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure>;
    /// The files of a guest that does not run: they are looked at only, and nothing about them changes.
    fn look(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure>;
    /// The same of a snapshot, whose folder is the store's.
    fn look_at_copy(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        self.look(task, store)
    }
    /// The guest's storage has this size; it does not shrink. Where it has none, nothing is to be done.
    fn resize(&self, _: &Task<'_>, _: &Store, _: SizeProfile) -> Result<bool, Failure> {
        Ok(false)
    }
    /// The guest's storage has no more than this size, if what is in it fits.
    fn shrink(&self, _: &Task<'_>, _: &Store, _: SizeProfile) -> Result<bool, Failure> {
        Err(Failure::Invalid(format!("a guest on {} has no size", self.kind())))
    }
    /// What the guest in the folder has taken of its storage, found without asking any program; none where it has no size.
    fn usage(&self, _: &Host, _: &Path) -> Option<GuestStorage> {
        None
    }
    /// Nothing of the host holds what is in the folder of a guest that does not run.
    fn release(&self, _: &Task<'_>, _: &Path) -> Result<(), Failure> {
        Ok(())
    }
    /// What of a guest's folder is its files: one name there, renamed as a whole.
    fn piece(&self) -> &'static str;
    /// Makes a piece of its own of another one, neither of which is in use.
    fn copy(&self, task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
        copy_all(task, from, to)
    }
    /// Whether a copy is there at once, and of one moment even when the guest runs.
    fn copies_at_once(&self) -> bool {
        false
    }
    /// How much of the host's storage is in a piece, in bytes.
    fn size_of(&self, task: &Task<'_>, piece: &Path) -> Result<Bytes, Failure> {
        let argv = Argv::new("du").args(["--summarize", "--one-file-system", "--block-size=1", "--"]).arg(piece);
        let said = argv.limit(COPY).quiet().run(task)?.stdout;
        let bytes = said.split_whitespace().next().and_then(|word| word.parse().ok());
        bytes.map(Bytes).ok_or_else(|| Failure::Invalid(format!("du said {said:?}, no number")))
    }
    /// Fails unless there is room for so much, of which the piece was given its own before.
    fn require_room(&self, task: &Task<'_>, piece: Option<&Path>, size: Bytes) -> Result<(), Failure> {
        let taken = piece.map_or(Ok(Bytes(0)), |piece| self.size_of(task, piece))?;
        room::require(task.host, (taken.0, 0), size)
    }
    /// What is not removed with a piece that is about to go, or faster before.
    fn remove(&self, _: &Task<'_>, _: &Path) -> Result<(), Failure> {
        Ok(())
    }
    /// What the guest in the folder may still take of the host's storage, in bytes, because it was promised.
    fn promised(&self, _: &Host, _: &Path) -> u64 {
        0
    }
    /// Nothing is left of the image, or of all images, outside of their own folders.
    fn forget_images(&self, _: &Task<'_>, _: Option<&ImageName>) -> Result<bool, Failure> {
        Ok(false)
    }
}

fn copy_all(task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
    let copy = Argv::new("cp").args(["-a", "--sparse=always", "--reflink=auto", "--"]).args([from, to]);
    copy.limit(COPY).run(task).map(drop)
}

/// The one of this kind.
pub fn of(kind: Kind) -> Result<&'static dyn Backing, Failure> {
    all().into_iter().find(|backing| backing.kind() == kind).ok_or_else(|| {
        let known: Vec<String> = all().iter().map(|backing| backing.kind().to_string()).collect();
        Failure::Invalid(format!("this agent keeps no guests on {kind}; use one of: {}", known.join(", ")))
    })
}

/// Every one of this agent.
pub fn all() -> [&'static dyn Backing; 6] {
    [&Overlay, &Disk, &Btrfs, &OnVolumes(Lvm), &OnVolumes(Zfs), &Dir]
}

/// What the host can do, as its controller is told.
pub fn facts(task: &Task<'_>) -> Vec<BackingFact> {
    let fact = |backing: &&dyn Backing| {
        let (room, unclear) = match backing.room(task) {
            Ok(room) => (room, None),
            Err(error) => (None, Some(format!("it is not clear how much room there is: {error}"))),
        };
        BackingFact {
            backing: backing.kind(),
            holds_size: backing.holds_size(task.host),
            obstacle: backing.obstacle(task.host).or(unclear),
            room,
        }
    };
    all().iter().map(fact).collect()
}

/// Nothing holds what is in the folder, whatever it was made with: of a guest that was cut in its making nobody knows.
pub fn release(task: &Task<'_>, folder: &Path) -> Result<(), Failure> {
    all().iter().try_for_each(|backing| backing.release(task, folder))
}

/// What the guest in the folder may still take, whatever it was made with.
pub fn promised(host: &Host, folder: &Path) -> u64 {
    all().iter().map(|backing| backing.promised(host, folder)).fold(0, u64::saturating_add)
}

/// What the guest in the folder has taken of its storage, whatever it was made with.
pub fn usage(host: &Host, folder: &Path) -> Option<GuestStorage> {
    all().into_iter().find_map(|backing| backing.usage(host, folder))
}

/// What is in a guest's storage does not fit into less.
fn too_full(has: Bytes, size: SizeProfile) -> Failure {
    Failure::Invalid(format!("there are {} in the guest's storage, more than fit into {size}", has.gb()))
}

/// Nothing is left of the image, or of all images, outside of their own folders. Tells whether there was anything.
pub fn forget_images(task: &Task<'_>, only: Option<&ImageName>) -> Result<bool, Failure> {
    all().iter().try_fold(false, |found, backing| Ok(backing.forget_images(task, only)? || found))
}
