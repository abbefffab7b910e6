//! Guests on volumes of the node: each has a block device of its own with a btrfs in it.
//!
//! What makes the volumes differs ([`Volumes`]), and everything else is the same. A guest's folder has a piece that says
//! which volume is its own, written before the volume is made and removed after it is gone; so of what is there, nothing
//! is nobody's, however an agent ended. Pieces are renamed and volumes are not: the name of a volume tells what it is for
//! and nothing of whose it is.
//!
//! A volume takes no room before it is written to, and shares what it was copied from. Since a guest that was promised its
//! storage must have it even when it changes all of it, nothing of what is shared counts as saved ([`Found::free`]).
//!
//! Guests never get at the device: what is on it is written by the node's kernel alone.

mod image;
mod name;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{Backing as Kind, Bytes, ImageName, SizeProfile};
use corpus_protocol::GuestStorage;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub use self::name::{Name, Use};
use super::filesystem::{self, busy, lock, sizes};
use super::{Backing, Store};
use crate::failure::{At, Failure};
use crate::files;
use crate::guest_root::GuestRoot;
use crate::host::Host;
use crate::lock::{self as locks, Wanted};
use crate::task::Task;

/// How long the kernel, or who looks at a device that was just there, may take to let go of it.
const GONE: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// For programs that wait for the kernel, for udev, and for each other.
pub const TOOL: Duration = Duration::from_mins(2);
/// Which volume a piece is.
const NOTE: &str = "volume";
/// There where a volume still has the identity of the one that it is a copy of.
const COPIED: &str = "copied";

/// What makes volumes. Each of these can be repeated.
pub trait Volumes: Sync {
    /// What guests on them lie on.
    fn kind(&self) -> Kind;
    /// What stands in its way on this host, which is told by files.
    fn obstacle(&self, host: &Host) -> Option<String>;
    /// The tools, and the place for volumes, are there.
    fn ensure(&self, task: &Task<'_>) -> Result<(), Failure>;
    /// What [`Volumes::ensure`] made is gone, unless something is in it.
    fn give_back(&self, task: &Task<'_>) -> Result<bool, Failure>;
    /// Where they all are, as a person would call it.
    fn place(&self) -> PathBuf;
    /// Where a volume's device is, while it is attached.
    fn device(&self, host: &Host, name: &Name) -> PathBuf;
    /// How much there will be for them where there is no place for them yet.
    fn room(&self, task: &Task<'_>) -> Result<Bytes, Failure>;
    /// What of so much room volumes have: some note beside each volume where its blocks are.
    fn volumes_in(&self, room: Bytes) -> Bytes {
        room
    }
    /// All of them; none where there is no place for them either.
    fn found(&self, task: &Task<'_>) -> Result<Found, Failure>;
    /// There is an empty volume.
    fn make(&self, task: &Task<'_>, name: &Name, size: Bytes) -> Result<(), Failure>;
    /// There is a copy of a volume as it is now.
    fn copy(&self, task: &Task<'_>, from: &Name, to: &Name) -> Result<(), Failure>;
    /// Its device is there.
    fn attach(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure>;
    /// Its device is not there.
    fn detach(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure>;
    /// It has this size, also while it is in use; what lies beyond is lost.
    fn resize(&self, task: &Task<'_>, name: &Name, from: Bytes, to: Bytes) -> Result<(), Failure>;
    /// It is gone.
    fn remove(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure>;
}

/// What is there of volumes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How much all of them can come to take.
    pub room: Bytes,
    /// Sizes are multiples of this.
    pub step: Bytes,
    /// The volumes, others' too.
    pub volumes: Vec<Volume>,
}

/// A volume that is there.
#[derive(Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its name, which may be none of ours.
    pub name: String,
    /// How large its device is.
    pub size: Bytes,
    /// What it can come to take, or what a copy that nobody writes to has taken, as if it shared nothing.
    pub promised: Bytes,
}

impl Found {
    fn of(&self, name: &Name) -> Option<&Volume> {
        let name = name.to_string();
        self.volumes.iter().find(|volume| volume.name == name)
    }

    /// Whether this one is not there.
    pub fn is_without(&self, name: &Name) -> bool {
        self.of(name).is_none()
    }

    fn rounded(&self, size: Bytes) -> Bytes {
        Bytes(size.0.div_ceil(self.step.0.max(1)) * self.step.0.max(1))
    }

    /// What is left for guests and their snapshots beside images and what others have there.
    fn for_guests(&self) -> Bytes {
        let of_guest = |name: &Name| matches!(name.purpose(), Use::Guest | Use::Copy);
        let others = self.volumes.iter().filter(|volume| !volume.name.parse().is_ok_and(|name| of_guest(&name)));
        Bytes(others.fold(self.room.0, |room, other| room.saturating_sub(other.promised.0)))
    }

    /// What nobody was promised. Whatever shares what, all of them never take more than if none shared anything.
    fn free(&self) -> Bytes {
        let promised = self.volumes.iter().map(|volume| volume.promised.0).fold(0, u64::saturating_add);
        Bytes(self.room.0.saturating_sub(promised))
    }
}

/// The backing on these volumes.
pub struct OnVolumes<V>(pub V);

impl<V: Volumes> Backing for OnVolumes<V> {
    fn kind(&self) -> Kind {
        self.0.kind()
    }

    fn obstacle(&self, host: &Host) -> Option<String> {
        self.0.obstacle(host)
    }

    fn room(&self, task: &Task<'_>) -> Result<Option<Bytes>, Failure> {
        if self.obstacle(task.host).is_some() {
            return Ok(None);
        }
        let found = self.0.found(task)?;
        let room = if found.room == Bytes(0) { self.0.room(task)? } else { found.for_guests() };
        Ok(Some(self.0.volumes_in(room)))
    }

    fn lies_on_image(&self) -> bool {
        false
    }

    fn keeps_ids(&self) -> bool {
        true
    }

    fn piece(&self) -> &'static str {
        self.0.kind().as_str()
    }

    fn make(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<(), Failure> {
        let kind = self.kind();
        if let Some(obstacle) = self.obstacle(task.host) {
            return Err(Failure::Invalid(format!("guests can't lie on {kind} here: {obstacle}")));
        }
        self.0.ensure(task)?;
        self.require_room(task, None, size.storage())?;
        let base = self.base(task, store)?;
        let needed = self.size(task, &base)?;
        if needed > size.storage() {
            return Err(Failure::Invalid(format!("the image needs {}, more than {size} has", needed.gb())));
        }
        task.note("copying the image's volume");
        self.copy_to(task, &base, &store.folder.join(self.piece()), Use::Guest)?;
        self.resize(task, store, size).map(drop)
    }

    fn root(&self, _: &Store) -> Option<PathBuf> {
        None
    }

    fn mount(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        let root = self.open(task, store)?;
        match store.ids {
            Some(ids) => root.shifted(ids),
            None => Ok(root),
        }
    }

    /// It is mounted once more when its guest runs: the kernel knows that it is the same.
    fn open(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        // In its volume a guest's ids are as it has them.
        GuestRoot::btrfs(&self.attached(task, &store.folder.join(self.piece()))?.1)
    }

    fn look(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        self.open(task, store)?.protected()
    }

    fn resize(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        let wanted = size.storage();
        let (name, device) = self.attached(task, &store.folder.join(self.piece()))?;
        let root = GuestRoot::btrfs(&device)?;
        let has = root.size()?;
        if has > wanted {
            let message = format!("the guest's storage has {}; it can't shrink to {size}, {}", has.gb(), wanted.gb());
            return Err(Failure::Invalid(message));
        }
        if device_size(&device)? < wanted {
            let found = self.0.found(task)?;
            let has = found.of(&name).ok_or_else(|| gone(&name))?.size;
            let wanted = found.rounded(wanted);
            self.require(&found, Bytes(wanted.0.saturating_sub(has.0)))?;
            self.0.resize(task, &name, has, wanted)?;
        }
        filesystem::grow(task, &root, wanted)
    }

    /// Cut anywhere, the volume is at least as large as the file system.
    fn shrink(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        let (name, device) = self.attached(task, &store.folder.join(self.piece()))?;
        let root = GuestRoot::btrfs(&device)?;
        let less = filesystem::shrink(task, &root, &File::open(&device).at("open", &device)?, size)?;
        let found = self.0.found(task)?;
        let (has, wanted) = (found.of(&name).ok_or_else(|| gone(&name))?.size, found.rounded(size.storage()));
        if has > wanted {
            self.0.resize(task, &name, has, wanted)?;
        }
        Ok(less || has > wanted)
    }

    /// By what the file system says at its last commit, half a minute ago at most; none while its device is not there.
    fn usage(&self, host: &Host, folder: &Path) -> Option<GuestStorage> {
        let name = read(&folder.join(self.piece())).ok().flatten()?;
        let [of, used] = sizes(&File::open(self.0.device(host, &name)).ok()?)?;
        // What was deleted is given back.
        Some(GuestStorage { used, of, taken: used })
    }

    /// What is mounted from it is gone, and it could be removed.
    fn release(&self, task: &Task<'_>, folder: &Path) -> Result<(), Failure> {
        match read(&folder.join(self.piece()))? {
            Some(name) => require_unused(task, &self.0.device(task.host, &name)),
            None => Ok(()),
        }
    }

    /// The guest stands still meanwhile: the kernel freezes no btrfs when it copies what that is on.
    fn copy(&self, task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
        let from = named(from)?;
        let purpose = if from.purpose() == Use::Guest { Use::Copy } else { Use::Guest };
        if purpose == Use::Guest {
            // What is in it has its room, and what may come into it has not yet.
            let found = self.0.found(task)?;
            self.require(&found, found.of(&from).ok_or_else(|| gone(&from))?.size)?;
        }
        self.copy_to(task, &from, to, purpose)
    }

    fn size_of(&self, task: &Task<'_>, piece: &Path) -> Result<Bytes, Failure> {
        let name = named(piece)?;
        if name.purpose() == Use::Copy {
            return Ok(self.0.found(task)?.of(&name).ok_or_else(|| gone(&name))?.promised);
        }
        let (_, device) = self.attached(task, piece)?;
        let [_, used] = sizes(&File::open(&device).at("open", &device)?)
            .ok_or_else(|| Failure::Invalid(format!("there is no file system on {name}")))?;
        Ok(used)
    }

    fn require_room(&self, task: &Task<'_>, piece: Option<&Path>, size: Bytes) -> Result<(), Failure> {
        let found = self.0.found(task)?;
        let has = match piece {
            Some(piece) => found.of(&named(piece)?).map_or(0, |volume| volume.promised.0),
            None => 0,
        };
        self.require(&found, Bytes(size.0.saturating_sub(has)))
    }

    fn remove(&self, task: &Task<'_>, piece: &Path) -> Result<(), Failure> {
        let Some(name) = read(piece)? else { return Ok(()) };
        self.0.remove(task, &name)?;
        files::remove(&piece.join(NOTE)).map(drop)
    }

    fn forget_images(&self, task: &Task<'_>, only: Option<&ImageName>) -> Result<bool, Failure> {
        let folder = self.images(task.host);
        if let Some(image) = only {
            let base = folder.join(image.as_str());
            let is_there = base.exists();
            return self.remove_base(task, &base).map(|()| is_there);
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            self.remove_base(task, &entry.path())?;
        }
        let given_back = self.0.give_back(task)?;
        Ok(files::remove_folder(&folder)? || given_back)
    }
}

impl<V: Volumes> OnVolumes<V> {
    fn require(&self, found: &Found, needed: Bytes) -> Result<(), Failure> {
        let free = found.free();
        if free < needed { Err(Failure::NoSpace { folder: self.0.place(), free, needed }) } else { Ok(()) }
    }

    fn size(&self, task: &Task<'_>, name: &Name) -> Result<Bytes, Failure> {
        Ok(self.0.found(task)?.of(name).ok_or_else(|| gone(name))?.size)
    }

    /// The device of a piece, which is there then and has an identity of its own.
    fn attached(&self, task: &Task<'_>, piece: &Path) -> Result<(Name, PathBuf), Failure> {
        let name = named(piece)?;
        let (device, copied) = (self.0.device(task.host, &name), piece.join(COPIED));
        if !is_device(&device) {
            self.0.attach(task, &name)?;
            require_device(&device)?;
        }
        if copied.exists() {
            // Somebody else may be about to look at it.
            let _lock = lock(task, &piece.join(NOTE), GONE)?;
            if copied.exists() {
                filesystem::renew(task, &device)?;
                files::remove(&copied)?;
            }
        }
        Ok((name, device))
    }

    /// A piece with a copy of a volume. Its device is not there yet: the node would look at what is on it, and find it twice.
    fn copy_to(&self, task: &Task<'_>, from: &Name, piece: &Path, purpose: Use) -> Result<(), Failure> {
        let name = begin(piece, purpose)?;
        note(&piece.join(COPIED), "")?;
        self.0.copy(task, from, &name)
    }
}

/// What changes volumes of a kind takes turns: each program does, and holds this too
/// ([`crate::runner::Argv::holding`]), so that the next agent waits for one that outlived its own.
pub fn hold(task: &Task<'_>, kind: Kind) -> Result<File, Failure> {
    let wanted = Wanted { name: format!("volumes-{kind}"), shared: false };
    let end = Instant::now() + TOOL;
    loop {
        match locks::take(std::slice::from_ref(&wanted), task).map(|held| held.into_iter().next()) {
            Ok(Some(lock)) => return Ok(lock),
            Err(Failure::Busy(_)) if Instant::now() < end => {}
            Ok(None) => return Err(Failure::Busy(wanted.name)),
            Err(other) => return Err(other),
        }
    }
}

/// A piece that is to have a volume of this name, which is not there yet. It is on disk before the volume can be.
fn begin(piece: &Path, purpose: Use) -> Result<Name, Failure> {
    files::private(piece)?;
    let name = Name::fresh(purpose);
    note(&piece.join(NOTE), &format!("{name}\n"))?;
    Ok(name)
}

fn note(path: &Path, text: &str) -> Result<(), Failure> {
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    open().and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all())).at("write", path)?;
    path.parent().map_or(Ok(()), files::sync_folder)
}

/// Which volume a piece is; none where it is none.
fn read(piece: &Path) -> Result<Option<Name>, Failure> {
    match files::read(&piece.join(NOTE))?.as_deref().map(str::trim) {
        // Nothing was made before this was whole.
        None | Some("") => Ok(None),
        Some(name) => name.parse().map(Some),
    }
}

fn named(piece: &Path) -> Result<Name, Failure> {
    read(piece)?.ok_or_else(|| Failure::Missing(format!("nothing says which volume is that of {}", piece.display())))
}

fn gone(name: &Name) -> Failure {
    Failure::Missing(format!("the volume {name} is not there any more"))
}

/// Programs make a file of this name where there is no device.
fn require_device(device: &Path) -> Result<(), Failure> {
    let missing = || Failure::Missing(format!("there is no device {}", device.display()));
    is_device(device).then_some(()).ok_or_else(missing)
}

/// Whether a device is there.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|stat| stat.file_type().is_block_device())
}

fn device_size(device: &Path) -> Result<Bytes, Failure> {
    use std::io::{Seek, SeekFrom};
    File::open(device).and_then(|mut file| file.seek(SeekFrom::End(0))).map(Bytes).at("look at", device)
}

/// Nothing is mounted from the device. Whoever looks at it once it was written to is soon done.
fn require_unused(task: &Task<'_>, device: &Path) -> Result<(), Failure> {
    let end = Instant::now() + GONE;
    loop {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        match rustix::fs::open(device, flags, Mode::empty()) {
            Ok(_) | Err(Errno::NOENT | Errno::NXIO | Errno::NODEV) => return Ok(()),
            Err(Errno::BUSY) if Instant::now() < end => sleep(POLL_INTERVAL),
            Err(Errno::BUSY) => return Err(busy(device)),
            Err(error) => return Err(error).at("look at", device),
        }
        task.go_on()?;
    }
}

#[cfg(test)]
mod tests;
