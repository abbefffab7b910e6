//! Owners and modes of a tree, set without ever leaving it.
//!
//! The tree belongs to an account that may change it while we walk: so every step is taken from
//! an open folder, links are never followed, and a file that has other names elsewhere (hard
//! links) is left alone, since by them it may be anybody's.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, RawMode, Stat, Uid, chownat, fchmod, fchown, fstat, openat, statat,
};
use rustix::io::Errno;

use crate::failure::{At, Failure};

/// What is set.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The owner.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// Bits that every folder and file gets; execution only where someone may execute.
    pub add: u32,
    /// Bits that none keeps.
    pub take: u32,
}

/// Deeper folders are left as they are: no open files without bound.
const DEPTH: usize = 200;
const EXECUTE: u32 = 0o111;

/// Sets a tree's owners and modes; tells how many names it changed.
pub fn apply(tree: &Path, rule: Rule) -> Result<u64, Failure> {
    let root: OwnedFd = File::open(tree).at("open", tree)?.into();
    let mut changed = 0;
    folder(root.as_fd(), rule, 0, &mut changed).at("set owners and modes in", tree)?;
    Ok(changed)
}

fn folder(fd: BorrowedFd<'_>, rule: Rule, depth: usize, changed: &mut u64) -> rustix::io::Result<()> {
    settle(fd, &fstat(fd)?, rule, changed)?;
    if depth > DEPTH {
        return Ok(());
    }
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        match one(fd, name, rule, depth, changed) {
            // It went away, or was swapped for another kind, while we looked.
            Ok(()) | Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NXIO) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn one(
    fd: BorrowedFd<'_>,
    name: &std::ffi::CStr,
    rule: Rule,
    depth: usize,
    changed: &mut u64,
) -> rustix::io::Result<()> {
    let about = statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::Directory => {
            let inner = openat(fd, name, flags | OFlags::DIRECTORY, Mode::empty())?;
            folder(inner.as_fd(), rule, depth + 1, changed)
        }
        FileType::RegularFile => {
            let file = openat(fd, name, flags, Mode::empty())?;
            let about = fstat(&file)?;
            let ours = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile && about.st_nlink == 1;
            if ours { settle(file.as_fd(), &about, rule, changed) } else { Ok(()) }
        }
        FileType::Symlink if (about.st_uid, about.st_gid) != (rule.user, rule.group) => {
            *changed += 1;
            let (user, group) = (Uid::from_raw(rule.user), Gid::from_raw(rule.group));
            chownat(fd, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
        }
        _ => Ok(()),
    }
}

fn settle(fd: BorrowedFd<'_>, about: &Stat, rule: Rule, changed: &mut u64) -> rustix::io::Result<()> {
    let mode = about.st_mode & 0o7777;
    let folder = FileType::from_raw_mode(about.st_mode) == FileType::Directory;
    let executes = folder || mode & EXECUTE != 0;
    let add = if executes { rule.add } else { rule.add & !EXECUTE };
    let wanted: RawMode = (mode | add) & !rule.take;
    let owned = (about.st_uid, about.st_gid) == (rule.user, rule.group);
    if !owned {
        fchown(fd, Some(Uid::from_raw(rule.user)), Some(Gid::from_raw(rule.group)))?;
    }
    // Giving a file away takes its set-user-id bit, so the mode comes second.
    if !owned || wanted != mode {
        fchmod(fd, Mode::from_raw_mode(wanted))?;
        *changed += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, outside) = (folder.path().join("tree"), folder.path().join("outside"));
        fs::create_dir_all(tree.join("a")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        for path in [tree.join("a/file"), tree.join("run"), outside.join("x"), outside.join("y")] {
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        }
        fs::set_permissions(tree.join("run"), fs::Permissions::from_mode(0o777)).unwrap();
        symlink(&outside, tree.join("out")).unwrap();
        symlink(outside.join("x"), tree.join("a/x")).unwrap();
        fs::hard_link(outside.join("y"), tree.join("y")).unwrap();
        let about = fs::metadata(&tree).unwrap();
        let rule = Rule { user: about.uid(), group: about.gid(), add: 0o640, take: 0o027 };
        assert!(apply(&tree, rule).unwrap() > 0);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&tree.join("a/file")), mode(&tree.join("run"))), (0o640, 0o750));
        assert_eq!((mode(&outside.join("x")), mode(&outside.join("y"))), (0o666, 0o666));
        assert_eq!(apply(&tree, rule).unwrap(), 0);
    }
}
