//! Files inside a guest, whose owner may be hostile.
//!
//! A guest's root can place symbolic links, FIFOs and mounts wherever the agent is going to
//! read or write. So every path is resolved by the kernel as if the guest's root were `/`
//! (`openat2` with `RESOLVE_IN_ROOT`), without magic links, and without leaving the root file
//! system itself (`RESOLVE_NO_XDEV`): `/proc`, `/sys`, `/dev` of a running guest are out of
//! reach. A file is written under a fresh name and renamed, so what lay at its path is
//! replaced, never followed or opened.
//!
//! Owners are told and given as the guest has them. Where the files' own ids, as the node has
//! them, are others ([`IdRange`]), they are shifted here, and in [`crate::tree`].

mod layers;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use corpus_domain::{Bytes, IdRange};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid, fchmod, fchown, fstat, fstatvfs, mkdirat,
    openat, openat2, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    move_mount,
};

pub use self::layers::{Durable, view};
use self::layers::{lay, layers, over, shift, to_look};
use crate::failure::{At, Failure};

/// The largest file that is read from a guest, in bytes.
const MAX_READ: u64 = 1 << 20;
const TRIES: u32 = 16;

/// Who owns, as a guest is told, what is no one's there: `nobody`.
pub const NOBODY: u32 = 65_534;

/// The root folder of a guest, running or stopped.
pub struct GuestRoot {
    root: OwnedFd,
    /// What the guest's ids are on the files; the same when there is none.
    ids: Option<IdRange>,
    /// A lock that is let go of after the root.
    _lock: Option<File>,
}

/// A file that was read.
pub struct Found {
    /// Its text.
    pub text: String,
    /// Its owner and permissions.
    pub owner: Owner,
}

/// Owner and permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    uid: u32,
    gid: u32,
    mode: u32,
}

impl Owner {
    /// These, with these permission bits.
    pub const fn of(uid: u32, gid: u32, mode: u32) -> Self {
        Self { uid, gid, mode: mode & 0o777 }
    }

    /// Root's, with these permission bits.
    pub const fn root(mode: u32) -> Self {
        Self { uid: 0, gid: 0, mode: mode & 0o777 }
    }
}

impl GuestRoot {
    /// A stopped guest whose root is a folder.
    pub fn folder(path: &Path) -> Result<Self, Failure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        openat(CWD, path, flags, Mode::empty()).map(Self::of).at("open", path)
    }

    /// A running guest, by a process in it.
    pub fn of_process(pid: i32) -> Result<Self, Failure> {
        let path = format!("/proc/{pid}/root");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, &path, flags, Mode::empty()).map(Self::of).at("open", path)
    }

    /// A stopped guest whose root is an overlay: it is mounted nowhere, only this value holds it.
    ///
    /// The files of `lower` have the guest's ids, whatever those are; `upper` and `work` are its own.
    pub fn overlay(
        lower: &Path,
        upper: &Path,
        work: &Path,
        durable: Durable,
        ids: Option<IdRange>,
    ) -> Result<Self, Failure> {
        over(lower, upper, ids, &|| lay(lower, upper, work, durable))
    }

    /// The same overlay to be looked at only: nothing is written to either, nor made beside them.
    pub fn layers(lower: &Path, upper: &Path, ids: Option<IdRange>) -> Result<Self, Failure> {
        over(lower, upper, ids, &|| layers(lower, upper))
    }

    /// A guest whose root is the btrfs on a block device: it is mounted nowhere, only this value holds it.
    pub fn btrfs(device: &Path) -> Result<Self, Failure> {
        let mount = || {
            let btrfs = fsopen("btrfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_set_string(btrfs.as_fd(), "source", device)?;
            // What is deleted in the guest is given back to the node's disk.
            fsconfig_set_string(btrfs.as_fd(), "discard", "async")?;
            fsconfig_create(btrfs.as_fd())?;
            fsmount(btrfs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NODEV)
        };
        mount().map(Self::of).at("mount", device)
    }

    /// The same files, which have the guest's ids on disk, as the guest's processes are to have them.
    pub fn shifted(self, ids: IdRange) -> Result<Self, Failure> {
        shift(&self.root, ids)?;
        Ok(self.with_ids(Some(ids)))
    }

    /// The same files, which were mounted nowhere, to be looked at only: nothing about them changes, their times neither.
    pub fn protected(self) -> Result<Self, Failure> {
        to_look(&self.root).map(|()| self)
    }

    /// The guest's ids are these on the files.
    #[must_use]
    pub fn with_ids(self, ids: Option<IdRange>) -> Self {
        Self { ids, ..self }
    }

    /// Puts what was mounted nowhere at a place.
    pub fn attach(self, place: &Path) -> Result<(), Failure> {
        let moved = move_mount(self.root.as_fd(), "", CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH);
        moved.at("mount", place)
    }

    const fn of(root: OwnedFd) -> Self {
        Self { root, ids: None, _lock: None }
    }

    /// The root itself, to be walked from.
    pub fn folder_itself(&self) -> Result<OwnedFd, Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.root, ".", flags, Mode::empty()).at("open the guest's", "/")
    }

    /// What the guest's ids are on the files, where they are others.
    pub const fn ids(&self) -> Option<IdRange> {
        self.ids
    }

    /// The same, and a lock that is held as long as this value lives.
    #[must_use]
    pub fn with_lock(self, lock: File) -> Self {
        Self { _lock: Some(lock), ..self }
    }

    /// The size of the file system that the root lies on.
    pub fn size(&self) -> Result<Bytes, Failure> {
        let stat = fstatvfs(&self.root).at("look at the guest's", "/")?;
        Ok(Bytes(stat.f_blocks.saturating_mul(stat.f_frsize)))
    }

    /// What was written to its file system is on disk.
    pub fn sync(&self) -> Result<(), Failure> {
        rustix::fs::syncfs(self.folder_itself()?).at("write the guest's", "/")
    }

    /// A path that leads to the root as long as this value lives, for a command of ours.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.root.as_raw_fd()).into()
    }

    /// The text of a regular file, or nothing when there is no such file.
    pub fn read(&self, path: &GuestPath) -> Result<Option<Found>, Failure> {
        self.read_most(path, MAX_READ)
    }

    /// The same, of so many bytes at most.
    pub fn read_most(&self, path: &GuestPath, most: u64) -> Result<Option<Found>, Failure> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match self.open(path.as_path(), flags) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(error).at("open the guest's", path),
        };
        let stat = fstat(&file).at("look at the guest's", path)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        File::from(file).take(most).read_to_end(&mut bytes).at("read the guest's", path)?;
        Ok(String::from_utf8(bytes).ok().map(|text| Found { text, owner: self.owner(&stat) }))
    }

    /// The file is exactly so; its folders are made as root's, 0755. Tells whether it wrote.
    pub fn ensure(&self, path: &GuestPath, text: &str, owner: Owner) -> Result<bool, Failure> {
        if self.read(path)?.is_some_and(|found| found.text == text && found.owner == owner) {
            return Ok(false);
        }
        let folder = self.ensure_folder(path.parent())?;
        let owner = self.outside(owner).at("find the owner of the guest's", path)?;
        write_beside(&folder, path.name(), text, owner).at("write the guest's", path).map(|()| true)
    }

    /// An owner as the guest has it.
    fn owner(&self, stat: &Stat) -> Owner {
        let inside = |id| self.ids.map_or(id, |ids| ids.inside(id).unwrap_or(NOBODY));
        Owner { uid: inside(stat.st_uid), gid: inside(stat.st_gid), mode: stat.st_mode & 0o7777 }
    }

    /// An owner as the files have it.
    fn outside(&self, owner: Owner) -> Result<Owner, Errno> {
        let Some(ids) = self.ids else { return Ok(owner) };
        let outside = |id| ids.outside(id).ok_or(Errno::OVERFLOW);
        Ok(Owner { uid: outside(owner.uid)?, gid: outside(owner.gid)?, ..owner })
    }

    /// The names in a folder; none when there is no such folder.
    pub fn list(&self, path: &GuestPath) -> Result<Vec<String>, Failure> {
        let folder = match self.open(path.as_path(), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(vec![]),
            Err(error) => return Err(error).at("open the guest's", path),
        };
        let entries = rustix::fs::Dir::read_from(&folder).at("list the guest's", path)?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        Ok(names.filter(|name| name != "." && name != "..").collect())
    }

    /// There is no such file; a folder of that name is an error. Tells whether there was one.
    pub fn remove(&self, path: &GuestPath) -> Result<bool, Failure> {
        let folder = match self.open(path.parent(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(false),
            Err(error) => return Err(error).at("open the guest's", path.parent()),
        };
        match unlinkat(&folder, path.name(), AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error).at("remove the guest's", path),
        }
    }

    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        // The kernel asks to try again when something was renamed while it walked.
        for _ in 0..TRIES {
            match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// What lies at the name by then may be the guest's work, and so is only taken when it is a
    /// folder of this file system.
    fn make_folder(&self, parent: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
        mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let folder = openat2(parent, name, flags, Mode::empty(), resolve)?;
        if self.ids.is_some() {
            let root = self.outside(Owner::root(0))?;
            fchown(&folder, Some(Uid::from_raw(root.uid)), Some(Gid::from_raw(root.gid)))?;
        }
        Ok(folder)
    }

    fn ensure_folder(&self, path: &Path) -> Result<OwnedFd, Failure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut here = self.open(Path::new("/"), flags).at("open the guest's", "/")?;
        let mut walked = PathBuf::from("/");
        for name in path.iter().skip(1) {
            walked.push(name);
            here = match self.open(&walked, flags) {
                Err(Errno::NOENT) => self.make_folder(&here, Path::new(name)),
                other => other,
            }
            .at("make the guest's folder", &walked)?;
        }
        Ok(here)
    }
}

fn write_beside(folder: &OwnedFd, name: &Path, text: &str, owner: Owner) -> std::io::Result<()> {
    let beside = format!(".corpus-{:016x}", fresh());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(folder, &beside, flags, Mode::from_raw_mode(0o600))?;
    let written = (|| {
        let mut file = File::from(fd);
        file.write_all(text.as_bytes())?;
        let stat = fstat(&file)?;
        if (stat.st_uid, stat.st_gid) != (owner.uid, owner.gid) {
            fchown(&file, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?;
        }
        fchmod(&file, Mode::from_raw_mode(owner.mode))?;
        renameat(folder, &beside, folder, name)?;
        Ok(())
    })();
    if written.is_err() {
        let _ = unlinkat(folder, &beside, AtFlags::empty());
    }
    written
}

/// A number that a guest can't foresee: it names a file for a moment.
fn fresh() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

/// An absolute path in a guest: no `..`, no empty part, no control character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestPath(PathBuf);

impl GuestPath {
    fn as_path(&self) -> &Path {
        &self.0
    }

    fn parent(&self) -> &Path {
        self.0.parent().unwrap_or(Path::new("/"))
    }

    fn name(&self) -> &Path {
        self.0.file_name().map_or(Path::new("."), Path::new)
    }
}

impl AsRef<Path> for GuestPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl std::str::FromStr for GuestPath {
    type Err = Failure;
    fn from_str(given: &str) -> Result<Self, Failure> {
        let parts = given.strip_prefix('/').filter(|_| given.len() < 4096 && !given.chars().any(char::is_control));
        match parts {
            Some(parts) if parts.split('/').all(|part| !["", ".", ".."].contains(&part)) => Ok(Self(given.into())),
            _ => {
                let shown: String = given.chars().take(80).collect();
                Err(Failure::Invalid(format!("{shown:?} is no absolute path of a file without `..` and empty parts")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
