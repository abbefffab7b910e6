//! One name in a folder that is held open.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, openat2, unlinkat};
use rustix::io::Errno;

/// To see what a file is, whatever it is.
pub const LOOK: OFlags = OFlags::PATH;
/// To walk on from a folder.
pub const WALK: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// To read a regular file; a pipe in its place keeps nobody waiting.
pub const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// Opens what has this name in the folder itself: no link is followed, and no mount entered.
pub fn open(folder: impl AsFd, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    openat2(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Opens it without a trace in its times.
pub fn open_to_read(folder: impl AsFd, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    open(folder, name, flags | OFlags::NOATIME)
}

/// The names in a folder that was just opened, in the order of their bytes.
pub fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let again = rustix::io::fcntl_dupfd_cloexec(folder, 0)?;
    let mut names = Vec::new();
    for entry in Dir::new(again)? {
        let name = entry?.file_name().to_owned();
        if ![&b"."[..], b".."].contains(&name.as_bytes()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// A folder that is being emptied.
struct Emptied {
    folder: OwnedFd,
    name: CString,
    names: Vec<CString>,
}

/// Removes what has this name, and all that is in it.
pub fn remove(folder: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let mut stack: Vec<Emptied> = Vec::new();
    let mut next = CString::new(name).map_err(|_| Errno::INVAL)?;
    loop {
        let here = stack.last().map_or(folder, |one| &one.folder);
        match unlinkat(here, &next, AtFlags::empty()) {
            Err(Errno::ISDIR) => {
                let folder = open(here, next.as_bytes(), WALK)?;
                let names = names(&folder)?;
                stack.push(Emptied { folder, name: next, names });
            }
            other => other?,
        }
        // Folders that are empty go until there is one with something in it.
        next = loop {
            let Some(last) = stack.last_mut() else { return Ok(()) };
            if let Some(name) = last.names.pop() {
                break name;
            }
            let name = std::mem::take(&mut last.name);
            stack.pop();
            unlinkat(stack.last().map_or(folder, |one| &one.folder), &name, AtFlags::REMOVEDIR)?;
        };
    }
}
