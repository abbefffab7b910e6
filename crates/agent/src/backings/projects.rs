//! Files that the host's own file system holds to a size: project quotas of ext4, where it is mounted with them.
//!
//! A guest's files that are a folder of the host's would take all that is free there. Where the file system counts for
//! projects they are one, whose number is that of the folder on its file system: no other has it for as long as the folder
//! is there, and it stays when that is renamed. All that is made in the folder is counted with it, so it becomes a
//! project while it is empty: what is there before could not be brought in by any program, where it is a device (an
//! overlay's mark of what was deleted), and could then not be renamed into it.
//!
//! It is a limit, and nothing is set aside for it. The node's root is not held by it, nor is the root of a privileged guest,
//! who can say to whom his files are counted.
//!
//! What the folder has taken and may come to is what the kernel tells of it as if it were a file system.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use corpus_domain::{Bytes, SizeProfile};
use corpus_protocol::GuestStorage;
use rustix::fs::{IFlags, Mode, OFlags, StatVfs, ioctl_getflags, major, minor, open, statvfs};

use super::{COPY, copy_all, too_full};
use crate::failure::{At, Failure};
use crate::host::Host;
use crate::packages;
use crate::runner::Argv;
use crate::task::Task;

/// Sizes are held in steps of so many bytes: one that any file system counts in.
const STEP: u64 = 4096;
/// So many bytes of a size come with one file or folder: twice as many as a file system of this size is usually made with.
const PER_FILE: u64 = 8192;

/// Whether what is made here is held to its size.
pub fn are_held(host: &Host) -> bool {
    place(host).is_some()
}

/// Where the file system of guests is mounted, if it counts for projects and holds them to limits.
fn place(host: &Host) -> Option<PathBuf> {
    let lxc = host.lxc();
    let device = fs::metadata(lxc.ancestors().find(|path| path.is_dir())?).ok()?.dev();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    counting(&mounts, &format!("{}:{}", major(device), minor(device)))
}

/// Of the lines of `mountinfo`: before the `-` number, parent, device, root and place; after it kind, source and options.
fn counting(mounts: &str, device: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let (of, _, place) = (mount.next()?, mount.next()?, mount.next()?);
        let (kind, options) = (file_system.split(' ').next()?, file_system.split(' ').nth(2)?);
        let counts = of == device && kind == "ext4" && options.split(',').any(|option| option == "prjquota");
        // What is written otherwise in such a line would have to be read so by others too.
        (counts && !place.contains('\\')).then(|| place.into())
    })
}

/// An empty folder becomes a project, where the host counts for them. Tells whether it does.
pub fn begin(task: &Task<'_>, folder: &Path) -> Result<bool, Failure> {
    let Some(place) = place(task.host) else { return Ok(false) };
    packages::ensure_quota(task)?;
    join(task, folder, folder)?;
    // One that is gone may have had the number, and a limit.
    set(task, &place, folder, Bytes(0)).map(|()| true)
}

/// An empty folder is counted with one that is a project.
pub fn join(task: &Task<'_>, folder: &Path, project: &Path) -> Result<(), Failure> {
    Argv::new("chattr").args(["+P", "-p", &number(project)?, "--"]).arg(folder).quiet().run(task).map(drop)
}

/// Whether the folder is a project, or counted with one.
pub fn is_one(folder: &Path) -> bool {
    let flags = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    flags.and_then(ioctl_getflags).is_ok_and(|flags| flags.contains(IFlags::PROJECT_INHERIT))
}

/// What is in the folder, and what may be; none where it has no limit.
pub fn usage(folder: &Path) -> Option<GuestStorage> {
    if !is_one(folder) {
        return None;
    }
    let (all, told) = (statvfs(folder.parent()?).ok()?, statvfs(folder).ok()?);
    let used = Bytes(told.f_blocks.saturating_sub(told.f_bfree).saturating_mul(told.f_frsize));
    (told.f_blocks < all.f_blocks).then(|| GuestStorage { used, of: whole(&told), taken: used })
}

/// It may come to this size and no more; it does not shrink.
pub fn resize(task: &Task<'_>, folder: &Path, size: SizeProfile) -> Result<bool, Failure> {
    let (Some(place), true) = (place(task.host), is_one(folder)) else { return Ok(false) };
    let wanted = rounded(size);
    let all = whole(&statvfs(&place).at("look at", &place)?);
    match usage(folder).map(|told| told.of) {
        Some(has) if has > wanted => {
            let message = format!("the guest's storage has {}; it can't shrink to {size}, {}", has.gb(), wanted.gb());
            Err(Failure::Invalid(message))
        }
        Some(has) if has == wanted => Ok(false),
        Some(_) if wanted >= all => Err(Failure::NoSpace { folder: place, free: all, needed: wanted }),
        // It would hold nothing.
        None if wanted >= all => Ok(false),
        _ => set(task, &place, folder, wanted).map(|()| true),
    }
}

/// It comes to no more than this size, if what is in it fits.
pub fn shrink(task: &Task<'_>, folder: &Path, size: SizeProfile) -> Result<bool, Failure> {
    let (Some(place), Some(told)) = (place(task.host), usage(folder)) else {
        return Err(Failure::Invalid("the guest's storage has no size".into()));
    };
    let wanted = rounded(size);
    if told.of <= wanted {
        return Ok(false);
    }
    if told.used > wanted {
        return Err(too_full(told.used, size));
    }
    set(task, &place, folder, wanted).map(|()| true)
}

/// The copy of a piece is a project as well, which nothing limits before it is somebody's.
pub fn copy(task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
    if place(task.host).is_none() {
        return copy_all(task, from, to);
    }
    fs::create_dir(to).at("make", to)?;
    begin(task, to)?;
    let copy = Argv::new("cp").args(["-a", "--sparse=always", "--reflink=auto", "--"]);
    copy.arg(from.join(".")).arg(to).limit(COPY).run(task).map(drop)
}

/// No limit is left of a folder that is about to go.
pub fn forget(task: &Task<'_>, folder: &Path) -> Result<(), Failure> {
    match (place(task.host), usage(folder)) {
        (Some(place), Some(_)) => set(task, &place, folder, Bytes(0)),
        _ => Ok(()),
    }
}

/// The number of a folder's project.
fn number(folder: &Path) -> Result<String, Failure> {
    fs::metadata(folder).at("look at", folder).map(|found| found.ino().to_string())
}

/// Nothing is no limit.
fn set(task: &Task<'_>, place: &Path, folder: &Path, limit: Bytes) -> Result<(), Failure> {
    let (blocks, files) = ((limit.0 / 1024).to_string(), (limit.0 / PER_FILE).to_string());
    let argv = Argv::new("setquota").args(["-P", &number(folder)?, "0", &blocks, "0", &files]);
    argv.arg(place).quiet().run(task).map(drop)
}

fn rounded(size: SizeProfile) -> Bytes {
    Bytes(size.storage().0 / STEP * STEP)
}

const fn whole(of: &StatVfs) -> Bytes {
    Bytes(of.f_blocks.saturating_mul(of.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::test::with_task;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,prjquota
30 22 254:1 / /srv\\040one rw - ext4 /dev/vdb rw,prjquota
31 22 254:1 / /srv/two rw,nosuid shared:3 master:2 - ext4 /dev/vdb rw,discard,prjquota
32 22 254:2 / /srv/three rw - xfs /dev/vdc rw,prjquota
33 22 254:3 / /srv/four rw - ext4 /dev/vdd rw,usrquota
rubbish";

    #[test]
    fn who_counts_for_projects() {
        let counting = |device| counting(MOUNTS, device);
        assert_eq!(counting("254:0").unwrap(), Path::new("/"));
        assert_eq!(counting("254:1").unwrap(), Path::new("/srv/two"));
        assert_eq!([counting("254:2"), counting("254:3"), counting("254:9")], [None, None, None]);
    }

    #[test]
    fn where_nobody_counts_all_is_as_it_was() {
        let at = tempfile::tempdir().unwrap();
        let (from, to) = (at.path().join("from"), at.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("file"), "text").unwrap();
        // A host below a folder lies on no file system that counts: the tests' is in memory, or the machine's as it is.
        let host = Host::below(at.path());
        if are_held(&host) {
            return;
        }
        with_task(&host, |task| {
            assert!(!begin(task, &from)? && !is_one(&from) && !resize(task, &from, SizeProfile::Small)?);
            assert!(shrink(task, &from, SizeProfile::Small).is_err());
            forget(task, &from)?;
            copy(task, &from, &to)
        })
        .unwrap();
        assert_eq!((fs::read_to_string(to.join("file")).unwrap(), usage(&to)), ("text".to_owned(), None));
    }
}
