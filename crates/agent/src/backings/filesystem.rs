//! The btrfs that fills a disk of a guest's own, whatever that disk is: a file, or a volume of the node.
//!
//! It grows and shrinks while its guest runs, which is why it is a btrfs. Everything here works on a device or on what is
//! mounted from it; where those come from is the backing's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{Bytes, SizeProfile};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{COPY, too_full};
use crate::failure::{At, Failure};
use crate::guest_root::GuestRoot;
use crate::runner::Argv;
use crate::task::Task;

/// How long making one of an image may take.
pub const MAKE: Duration = Duration::from_mins(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const LARGEST_BLOCK: u64 = 64 << 10;

/// Makes one of a folder, no larger than it must be. It is ended with an agent that is killed, and holds its disk no more.
pub fn make(task: &Task<'_>, root: &Path, disk: &Path) -> Result<(), Failure> {
    let argv = Argv::new("setpriv").args(["--pdeathsig", "KILL", "--", "mkfs.btrfs", "--quiet"]);
    let argv = argv.args(["--metadata", "single", "--data", "single", "--shrink", "--rootdir"]);
    argv.args([root, disk]).limit(MAKE).quiet().run(task).map(drop)
}

/// One that is not mounted gets an identity of its own: the kernel mounts no two of the same.
pub fn renew(task: &Task<'_>, disk: &Path) -> Result<(), Failure> {
    Argv::new("btrfstune").arg("-m").arg(disk).quiet().run(task).map(drop)
}

/// It has this size, which its disk has too. Tells whether it had less.
pub fn grow(task: &Task<'_>, root: &GuestRoot, wanted: Bytes) -> Result<bool, Failure> {
    if is_filled(root, wanted)? {
        return Ok(false);
    }
    resize(root, wanted).run(task)?;
    if is_filled(root, wanted)? {
        Ok(true)
    } else {
        Err(Failure::Invalid("the guest's file system did not grow".into()))
    }
}

/// It has no more than this size, and that is on its disk. What is in the way is moved. Tells whether it had more.
pub fn shrink(task: &Task<'_>, root: &GuestRoot, disk: &File, size: SizeProfile) -> Result<bool, Failure> {
    let wanted = size.storage();
    if root.size()? <= wanted {
        return Ok(false);
    }
    root.sync()?;
    if let Some([_, used]) = sizes(disk).filter(|[_, used]| *used > wanted) {
        return Err(too_full(used, size));
    }
    task.note("moving what is beyond");
    let resized = || resize(root, wanted).limit(COPY).end(task).map(|(status, _)| status.success());
    if !resized()? {
        // What is left of pieces that were full is put together first, by this much at most.
        let balance = Argv::new("btrfs").args(["balance", "start", "-dusage=90", "-musage=90"]).arg(root.path());
        balance.limit(COPY).quiet().end(task)?;
        if !resized()? {
            let left = Bytes(wanted.0.saturating_sub(sizes(disk).map_or(0, |[_, used]| used.0)));
            return Err(Failure::Invalid(format!(
                "the file system can't put what is in it into {size}: {} would be left",
                left.gb()
            )));
        }
    }
    root.sync()?;
    if root.size()? > wanted {
        Err(Failure::Invalid("the guest's file system did not shrink".into()))
    } else {
        Ok(true)
    }
}

fn resize(root: &GuestRoot, wanted: Bytes) -> Argv {
    // A disk that ends within a block ends before it for the kernel, which would refuse the rest.
    const BLOCK: u64 = 4096;
    let whole = wanted.0 / BLOCK * BLOCK;
    Argv::new("btrfs").args(["filesystem", "resize"]).arg(whole.to_string()).arg(root.path()).quiet()
}

/// What a disk says of the file system on it: the size, and what is taken of that, in bytes. It stands in its first
/// superblock.
pub fn sizes(disk: &File) -> Option<[Bytes; 2]> {
    const SUPERBLOCK: u64 = 64 << 10;
    const MAGIC: (usize, &[u8]) = (64, b"_BHRfS_M");
    const SIZES: [usize; 2] = [112, 120];
    let mut read = [0; 128];
    disk.read_exact_at(&mut read, SUPERBLOCK).ok()?;
    if !read.get(MAGIC.0..)?.starts_with(MAGIC.1) {
        return None;
    }
    let number = |at: usize| read.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes).map(Bytes);
    Some([number(SIZES[0])?, number(SIZES[1])?])
}

/// Whether it has all of a disk of this size: a part of a block at the end stays unused.
fn is_filled(root: &GuestRoot, disk: Bytes) -> Result<bool, Failure> {
    Ok(root.size()?.0.saturating_add(LARGEST_BLOCK) > disk.0)
}

/// The same by what is on the disk.
pub fn fills(disk: &File, size: Bytes) -> bool {
    sizes(disk).is_some_and(|[of, _]| of.0.saturating_add(LARGEST_BLOCK) > size.0)
}

/// The lock on a file, waited for so long.
pub fn lock(task: &Task<'_>, file: &Path, patience: Duration) -> Result<File, Failure> {
    let lock = File::open(file).at("open", file)?;
    let end = Instant::now() + patience;
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => sleep(POLL_INTERVAL),
            Err(Errno::WOULDBLOCK) => return Err(busy(file)),
            Err(error) => return Err(error).at("lock", file),
        }
        task.go_on()?;
    }
}

/// Somebody else has it.
pub fn busy(disk: &Path) -> Failure {
    Failure::Busy(format!("the disk {}", disk.display()))
}
