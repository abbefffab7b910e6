//! The disk of a guest whose storage has a size: a sparse file with a btrfs in it.
//!
//! The file is attached to a loop device when the guest starts, also when the node boots, and the
//! kernel lets go of both with the guest's last process. So the node has no mount and no
//! state of ours, and a killed agent can leave no more than an attached device, which the next
//! request finds by its file. An image becomes a disk once ([`base`]); a guest's disk is a copy of
//! it with an identity of its own, since the kernel mounts no two file systems of the same identity.

use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{Backing as Kind, Bytes, SizeProfile};
use corpus_protocol::GuestStorage;

use super::filesystem::{self, MAKE, busy, lock, sizes};
use super::{Backing, Store, copy_all, loops, room};
use crate::failure::{At, Failure};
use crate::files;
use crate::guest_root::GuestRoot;
use crate::host::Host;
use crate::packages;
use crate::runner::Argv;
use crate::task::Task;

const FILE: &str = "rootfs.img";
/// How long the kernel may take to let go of a disk.
const GONE: Duration = Duration::from_secs(10);
/// How long a guest's start waits for an agent that has its disk open.
const START: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A device that was just let go of may be someone else's by the time it is mounted.
const TRIES: u32 = 5;
/// `st_blocks` counts these, whatever the file system's own blocks are.
const BLOCK: u64 = 512;

/// The backing.
pub struct Disk;

impl Backing for Disk {
    fn kind(&self) -> Kind {
        Kind::Loop
    }

    fn lies_on_image(&self) -> bool {
        false
    }

    fn keeps_ids(&self) -> bool {
        true
    }

    fn piece(&self) -> &'static str {
        FILE
    }

    fn make(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<(), Failure> {
        make(task, store, size)
    }

    fn root(&self, _: &Store) -> Option<PathBuf> {
        None
    }

    /// Whoever starts the guest waits until no agent has its disk open.
    fn mount(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        let root = open_unless(task, &file(&store.folder), START, &|| false)?;
        match store.ids {
            Some(ids) => root.shifted(ids),
            None => Ok(root),
        }
    }

    /// It is mounted once more when its guest runs, and otherwise the guest's start waits until the result is dropped:
    /// the newest kernels mount two loop devices of one file as if they were two disks, and spoil it.
    fn open(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        // On its disk a guest's ids are as it has them.
        open(task, store)
    }

    fn look(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        open(task, store)?.protected()
    }

    /// A copy of a disk has its identity, and the guest's own may be mounted.
    fn look_at_copy(&self, task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        let file = file(&store.folder);
        let lock = lock(task, &file, GONE)?;
        filesystem::renew(task, &file)?;
        open_locked(task, &file, lock, &|| false)?.protected()
    }

    fn resize(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        grow(task, store, size)
    }

    fn shrink(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        shrink(task, store, size)
    }

    /// By what the file system says at its last commit, half a minute ago at most. A guest never gets at the device.
    fn usage(&self, _: &Host, folder: &Path) -> Option<GuestStorage> {
        let disk = File::open(file(folder)).ok()?;
        let [of, used] = sizes(&disk)?;
        Some(GuestStorage { used, of, taken: Bytes(disk.metadata().ok()?.blocks() * BLOCK) })
    }

    fn release(&self, task: &Task<'_>, folder: &Path) -> Result<(), Failure> {
        release(task, &file(folder))
    }

    /// A disk that is mounted changes; where an agent looks at its files, the copy waits.
    fn copy(&self, task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
        let _lock = lock(task, from, GONE)?;
        copy_all(task, from, to)
    }

    fn promised(&self, _: &Host, folder: &Path) -> u64 {
        fs::metadata(file(folder)).map_or(0, |stat| left(&stat))
    }
}

/// The disk in a guest's folder.
fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Makes the disk of a new guest in its folder.
fn make(task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<(), Failure> {
    packages::ensure_disks(task)?;
    let file = file(&store.folder);
    require_room(task.host, &file, size.storage())?;
    let base = base(task, store)?;
    let needed = Bytes(fs::metadata(&base).at("look at", &base)?.len());
    if needed > size.storage() {
        return Err(Failure::Invalid(format!("the image needs {}, more than {size} has", needed.gb())));
    }
    task.note("copying the image's disk");
    let copy = Argv::new("cp").args(["--sparse=always", "--reflink=auto", "--"]).args([&base, &file]);
    copy.limit(MAKE).run(task)?;
    filesystem::renew(task, &file)?;
    grow(task, store, size).map(drop)
}

/// The image as a disk, no larger than it must be; it goes when the image goes.
fn base(task: &Task<'_>, store: &Store) -> Result<PathBuf, Failure> {
    let base = store.image.join("rootfs.btrfs");
    if base.is_file() {
        return Ok(base);
    }
    task.note("making a disk of the image");
    // Two guests may do so at once, each in its own folder or in one below it.
    let guest: Vec<_> = store.folder.iter().rev().take(2).map(|name| name.to_string_lossy()).collect();
    let beside = store.image.join(format!(".rootfs.btrfs-{}", guest.join("-")));
    let made = fill(task, &store.image_root(), &beside).and_then(|()| fs::rename(&beside, &base).at("make", &base));
    if made.is_err() {
        let _ = files::remove(&beside);
    }
    made.map(|()| base)
}

fn fill(task: &Task<'_>, root: &Path, disk: &Path) -> Result<(), Failure> {
    files::remove(disk)?;
    let file = OpenOptions::new().write(true).create_new(true).open(disk).at("make", disk)?;
    filesystem::make(task, root, disk)?;
    file.sync_all().at("write", disk)
}

fn open(task: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
    open_unless(task, &file(&store.folder), GONE, &|| (store.is_begun)(&store.folder))
}

fn open_unless(
    task: &Task<'_>,
    file: &Path,
    patience: Duration,
    is_begun: &dyn Fn() -> bool,
) -> Result<GuestRoot, Failure> {
    open_locked(task, file, lock(task, file, patience)?, is_begun)
}

fn open_locked(task: &Task<'_>, file: &Path, lock: File, is_begun: &dyn Fn() -> bool) -> Result<GuestRoot, Failure> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let device = device(task, file, is_begun)?;
        let mounted = GuestRoot::btrfs(&device);
        loops::detach(task, &device)?;
        match mounted {
            // As long as it is mounted, the device stays attached to what it is attached to now.
            Ok(root) if loops::of(task, file)? == [device] => return Ok(root.with_lock(lock)),
            Err(error) if tries == 0 => return Err(error),
            Ok(_) if tries == 0 => return Err(busy(file)),
            _ => task.go_on()?,
        }
    }
}

/// The device that the running guest's disk is mounted from, or else a fresh one.
fn device(task: &Task<'_>, file: &Path, is_begun: &dyn Fn() -> bool) -> Result<PathBuf, Failure> {
    // Of those, only what is in use stays.
    for device in loops::of(task, file)? {
        loops::detach(task, &device)?;
    }
    match loops::of(task, file)?.into_iter().next() {
        Some(device) => Ok(device),
        None if is_begun() => Err(busy(file)),
        None => loops::attach(task, file),
    }
}

/// The disk and the file system on it have this size, whether they are in use or not; they only
/// grow. Tells whether they did.
fn grow(task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
    let file = &file(&store.folder);
    let (has, wanted) = (Bytes(fs::metadata(file).at("look at", file)?.len()), size.storage());
    if has > wanted {
        let message = format!("the guest's storage has {}; it can't shrink to {size}, {}", has.gb(), wanted.gb());
        return Err(Failure::Invalid(message));
    }
    if has == wanted && filesystem::fills(&File::open(file).at("open", file)?, wanted) {
        // What is whole need not be mounted for that: a file system that stopped at a full disk can't be, before its guest is restarted.
        return Ok(false);
    }
    if has < wanted {
        require_room(task.host, file, wanted)?;
        let disk = OpenOptions::new().write(true).open(file).at("open", file)?;
        disk.set_len(wanted.0).at("enlarge", file)?;
    }
    for device in loops::of(task, file)? {
        loops::resize(task, &device)?;
    }
    let root = open(task, store)?;
    Ok(filesystem::grow(task, &root, wanted)? || has < wanted)
}

/// The file system, and then the disk that it is on, have no more than this size, whether they are in use or not. What
/// is in the way is moved; cut anywhere, the disk is at least as large as the file system. Tells whether there was more.
fn shrink(task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
    let file = &file(&store.folder);
    let (has, wanted) = (Bytes(fs::metadata(file).at("look at", file)?.len()), size.storage());
    let root = open(task, store)?;
    filesystem::shrink(task, &root, &File::open(file).at("open", file)?, size)?;
    if has > wanted {
        let disk = OpenOptions::new().write(true).open(file).at("open", file)?;
        disk.set_len(wanted.0).at("shrink", file)?;
    }
    for device in loops::of(task, file)? {
        loops::resize(task, &device)?;
    }
    Ok(has > wanted)
}

/// No loop device is attached to the file, so that nothing holds it.
fn release(task: &Task<'_>, file: &Path) -> Result<(), Failure> {
    let end = Instant::now() + GONE;
    loop {
        let devices = loops::of(task, file)?;
        if devices.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            let tail = devices.iter().map(|device| format!("{} is still in use", device.display())).collect();
            return Err(Failure::TimedOut { program: "losetup", limit: GONE, tail });
        }
        for device in devices {
            loops::detach(task, &device)?;
        }
        sleep(POLL_INTERVAL);
    }
}

/// Fails unless this disk can be filled to `size`, and every other one to its own.
fn require_room(host: &Host, disk: &Path, size: Bytes) -> Result<(), Failure> {
    let own = fs::metadata(disk).map_or((0, 0), |stat| (stat.blocks() * BLOCK, left(&stat)));
    room::require(host, own, size)
}

/// What a disk has not taken of its size yet.
fn left(disk: &Metadata) -> u64 {
    disk.len().saturating_sub(disk.blocks() * BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;

    #[test]
    fn room_that_was_promised_is_not_free() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        fs::create_dir_all(host.lxc().join("one.x")).unwrap();
        let one = file(&host.lxc().join("one.x"));
        let two = file(&host.lxc().join("two.x"));
        require_room(&host, &two, Bytes(1 << 20)).unwrap();
        File::create(&one).unwrap().set_len(1 << 42).unwrap();
        let error = require_room(&host, &two, Bytes(1 << 20)).unwrap_err();
        assert!(matches!(error, Failure::NoSpace { free: Bytes(0), .. }), "{error}");
        require_room(&host, &one, Bytes(1 << 20)).unwrap();
    }

    /// As after a shrink that failed: the disk has its size still, and what is on it can't be mounted.
    #[test]
    fn what_is_whole_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let guest = host.lxc().join("one.x");
        fs::create_dir_all(&guest).unwrap();
        let size = SizeProfile::Xxxsmall;
        let (disk, wanted) = (File::create_new(file(&guest)).unwrap(), size.storage().0);
        disk.set_len(wanted).unwrap();
        let grown = || {
            crate::task::test::with_task(&host, |task| {
                let image = host.corpus().join("images/x");
                let store = Store { folder: guest.clone(), image, ids: None, is_begun: |_| false };
                grow(task, &store, size)
            })
        };
        assert!(grown().is_err(), "there is no file system on it");
        std::os::unix::fs::FileExt::write_all_at(&disk, b"_BHRfS_M", (64 << 10) + 64).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&disk, &wanted.to_le_bytes(), (64 << 10) + 112).unwrap();
        assert!(!grown().unwrap());
    }

    #[test]
    fn a_job_refuses_by_the_number_that_the_node_tells() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        fs::create_dir_all(host.lxc().join("one.x")).unwrap();
        File::create(file(&host.lxc().join("one.x"))).unwrap().set_len(64 << 20).unwrap();
        let two = file(&host.lxc().join("two.x"));
        // What others write meanwhile moves both.
        let same = (0..100).any(|_| {
            let told = facts::storage(&host).unwrap();
            let error = require_room(&host, &two, Bytes(u64::MAX)).unwrap_err();
            assert_eq!(told.promised, Bytes(64 << 20));
            matches!(error, Failure::NoSpace { free, .. } if free == told.free() && free.0 > 0)
        });
        assert!(same, "the two never were the same");
    }
}
