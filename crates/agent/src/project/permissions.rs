//! Owners, modes and access lists of a tree, set without ever leaving it.
//!
//! The tree belongs to an account that may change it while we walk: so every step is taken from
//! an open folder, links are never followed, and a file that has other names elsewhere (hard
//! links) is left alone, since by them it may be anybody's.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, RawMode, Stat, Uid, XattrFlags, chownat, fchmod, fchown, fgetxattr,
    fremovexattr, fsetxattr, fstat, openat, statat,
};
use rustix::io::Errno;

use crate::failure::{At, Failure};

/// What is set.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The owner.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// Bits that every folder and file gets; execution only where someone may execute.
    pub add: u32,
    /// Bits that none keeps.
    pub take: u32,
    /// Which accounts may read besides.
    pub readers: Vec<u32>,
    /// Which may write too. Whoever else had access by name has it no more.
    pub writers: Vec<u32>,
}

/// Where Linux keeps access lists: acl(5), `include/uapi/linux/posix_acl_xattr.h`.
const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";
const VERSION: u32 = 2;
const UNDEFINED: u32 = u32::MAX;
/// The kinds of entries, in the order in which they stand.
const OWNER: u16 = 0x01;
const NAMED: u16 = 0x02;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

impl Rule {
    /// The access list for a file of this mode, whose group has what the mode says; none: the mode says it all.
    fn list(&self, mode: u32) -> Option<Vec<u8>> {
        let (all, look) = (if mode & EXECUTE == 0 { 0o6 } else { 0o7 }, if mode & EXECUTE == 0 { 0o4 } else { 0o5 });
        let mut named: Vec<(u32, u32)> = self.writers.iter().map(|id| (*id, all)).collect();
        named.extend(self.readers.iter().filter(|id| !self.writers.contains(id)).map(|id| (*id, look)));
        named.sort_unstable();
        named.dedup();
        let mask = named.iter().fold(mode >> 3 & 0o7, |mask, (_, may)| mask | may);
        let mut bytes = VERSION.to_le_bytes().to_vec();
        let mut entry = |kind: u16, may: u32, id: u32| {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(u16::try_from(may).unwrap_or_default().to_le_bytes());
            bytes.extend(id.to_le_bytes());
        };
        entry(OWNER, mode >> 6 & 0o7, UNDEFINED);
        for (id, may) in &named {
            entry(NAMED, *may, *id);
        }
        entry(GROUP, mode >> 3 & 0o7, UNDEFINED);
        entry(MASK, mask, UNDEFINED);
        entry(OTHERS, mode & 0o7, UNDEFINED);
        (!named.is_empty()).then_some(bytes)
    }
}

/// What the group itself may by an access list: the mode shows the list's mask in its place.
fn group_in(list: &[u8]) -> Option<u32> {
    let (entries, _) = list.get(4..)?.as_chunks::<8>();
    entries
        .iter()
        .find_map(|[kind, high, may, _, ..]| (u16::from_le_bytes([*kind, *high]) == GROUP).then_some(u32::from(*may)))
}

/// The access list of a file; none: there is none, or its file system has none.
fn read(fd: BorrowedFd<'_>, which: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 4 + 8 * 1024];
    let length = fgetxattr(fd, which, &mut bytes[..]).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// The access list is this one, or there is none; tells whether anything had to be done.
fn lists(fd: BorrowedFd<'_>, which: &str, wanted: Option<&[u8]>) -> rustix::io::Result<bool> {
    let is = read(fd, which);
    match wanted {
        Some(wanted) if is.as_deref() == Some(wanted) => Ok(false),
        Some(wanted) => fsetxattr(fd, which, wanted, XattrFlags::empty()).map(|()| true),
        None if is.is_none() => Ok(false),
        None => fremovexattr(fd, which).map(|()| true),
    }
}

/// Deeper folders are left as they are: no open files without bound.
const DEPTH: usize = 200;
const EXECUTE: u32 = 0o111;

/// Sets a tree's owners and modes; tells how many names it changed.
pub fn apply(tree: &Path, rule: &Rule) -> Result<u64, Failure> {
    let root: OwnedFd = File::open(tree).at("open", tree)?.into();
    let mut changed = 0;
    folder(root.as_fd(), rule, 0, &mut changed).at("set owners and modes in", tree)?;
    Ok(changed)
}

fn folder(fd: BorrowedFd<'_>, rule: &Rule, depth: usize, changed: &mut u64) -> rustix::io::Result<()> {
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
    rule: &Rule,
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

fn settle(fd: BorrowedFd<'_>, about: &Stat, rule: &Rule, changed: &mut u64) -> rustix::io::Result<()> {
    let list = read(fd, ACCESS);
    let shown = about.st_mode & 0o7777;
    let mode = list.as_deref().and_then(group_in).map_or(shown, |group| shown & !0o070 | group << 3);
    let folder = FileType::from_raw_mode(about.st_mode) == FileType::Directory;
    let executes = folder || mode & EXECUTE != 0;
    let add = if executes { rule.add } else { rule.add & !EXECUTE };
    let wanted: RawMode = (mode | add) & !rule.take;
    let owned = (about.st_uid, about.st_gid) == (rule.user, rule.group);
    if !owned {
        fchown(fd, Some(Uid::from_raw(rule.user)), Some(Gid::from_raw(rule.group)))?;
    }
    // Who had access by name and has it no more is out first; a mode that is set then is that of owner, group and others.
    let wanted_list = rule.list(wanted);
    let mut differs = !owned || wanted != mode;
    if list.is_some() && list != wanted_list {
        differs |= lists(fd, ACCESS, None)?;
    }
    // Giving a file away takes its set-user-id bit, so the mode comes second.
    if differs {
        fchmod(fd, Mode::from_raw_mode(wanted))?;
    }
    differs |= lists(fd, ACCESS, wanted_list.as_deref())?;
    if folder {
        differs |= lists(fd, DEFAULT, wanted_list.as_deref())?;
    }
    *changed += u64::from(differs);
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
        let rule = Rule { readers: vec![], writers: vec![], ..rule(about.uid(), about.gid()) };
        assert!(apply(&tree, &rule).unwrap() > 0);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&tree.join("a/file")), mode(&tree.join("run"))), (0o640, 0o750));
        assert_eq!((mode(&outside.join("x")), mode(&outside.join("y"))), (0o666, 0o666));
        assert_eq!(apply(&tree, &rule).unwrap(), 0);
    }

    fn rule(user: u32, group: u32) -> Rule {
        Rule { user, group, add: 0o640, take: 0o027, readers: vec![], writers: vec![] }
    }

    #[test]
    fn access_by_name_is_what_it_should_be_and_no_more() {
        // Not every file system has access lists; a folder of the project has.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("sub")).unwrap();
        fs::write(tree.join("sub/file"), "").unwrap();
        let about = fs::metadata(&tree).unwrap();
        let open = |readers: &[u32], writers: &[u32]| Rule {
            readers: readers.to_vec(),
            writers: writers.to_vec(),
            ..rule(about.uid(), about.gid())
        };
        let list = |path: &str, which: &str| read(fs::File::open(tree.join(path)).unwrap().as_fd(), which);
        assert!(apply(&tree, &open(&[1001], &[1002])).unwrap() > 0);
        let file = list("sub/file", ACCESS).unwrap();
        let named: Vec<(u32, u16)> = file[4..]
            .chunks_exact(8)
            .filter(|entry| entry[..2] == NAMED.to_le_bytes())
            .map(|entry| (u32::from_le_bytes(entry[4..].try_into().unwrap()), u16::from_le_bytes([entry[2], entry[3]])))
            .collect();
        assert_eq!(named, [(1001, 0o4), (1002, 0o6)]);
        assert!(list("sub", DEFAULT).is_some(), "what is made there later is open to them too");
        assert_eq!(apply(&tree, &open(&[1001], &[1002])).unwrap(), 0, "once");
        // One of them may no more, and the group never could write.
        assert!(apply(&tree, &open(&[1001], &[])).unwrap() > 0);
        assert_eq!(group_in(&list("sub/file", ACCESS).unwrap()), Some(0o4));
        assert!(apply(&tree, &open(&[], &[])).unwrap() > 0);
        assert_eq!((list("sub/file", ACCESS), list("sub", DEFAULT)), (None, None));
        let mode = |path: &str| fs::metadata(tree.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("sub/file"), mode("sub")), (0o640, 0o750));
    }
}
