//! Files of the host itself, written whole or not at all.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::Bytes;
use rustix::fs::{IFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::failure::{At, Failure};
use crate::runner::Argv;
use crate::task::Task;

/// For folders that lie in each other tens of thousands deep.
const DEEP: Duration = Duration::from_mins(10);
/// How long something may go on to write where it is removed.
const LAST_WRITES: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The content of a file, or nothing when there is no such file.
pub fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", path),
    }
}

/// Writes a file beside the old one and renames it over; makes its folder.
pub fn write(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).at("make", folder)?;
    }
    let beside = beside(path);
    let _ = fs::remove_file(&beside);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(text.as_bytes()).and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.at("write", path)
}

/// Writes a file unless it is so already; tells whether it wrote.
pub fn ensure(path: &Path, text: &str, mode: u32) -> Result<bool, Failure> {
    if read(path)?.as_deref() == Some(text) {
        return Ok(false);
    }
    write(path, text, mode).map(|()| true)
}

/// Removes a file; tells whether there was one.
pub fn remove(path: &Path) -> Result<bool, Failure> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).at("remove", path),
    }
}

/// There is a folder that nobody but root passes through.
pub fn private(path: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).at("make", path)
}

/// The names in a folder are on the disk.
pub fn sync_folder(path: &Path) -> Result<(), Failure> {
    fs::File::open(path).and_then(|folder| folder.sync_all()).at("write", path)
}

/// Removes a folder and all in it; tells whether there was one.
pub fn remove_folder(path: &Path) -> Result<bool, Failure> {
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).at("remove", path),
    }
}

/// Removes a folder of a guest and all in it; tells whether there was one. Root there may have made files immutable, to
/// outlive the guest, or folders that lie deeper in each other than a process may have open; `rm` goes back up instead.
/// And the copy of an agent that was killed may be writing there still: it ends when its places are gone.
pub fn remove_tree(task: &Task<'_>, folder: &Path) -> Result<bool, Failure> {
    let end = Instant::now() + LAST_WRITES;
    loop {
        match remove_folder(folder) {
            Err(Failure::Io { source, .. })
                if source.kind() == ErrorKind::DirectoryNotEmpty && Instant::now() < end =>
            {
                sleep(POLL_INTERVAL);
            }
            Err(Failure::Io { source, .. }) if source.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
                let argv = Argv::new("rm").args(["-rf", "--one-file-system", "--"]).arg(folder);
                return argv.limit(DEEP).run(task).map(|_| true);
            }
            Err(Failure::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
                make_mutable(folder);
                return remove_folder(folder);
            }
            other => return other,
        }
    }
}

fn make_mutable(path: &Path) {
    let Ok(stat) = fs::symlink_metadata(path) else { return };
    if !stat.is_dir() && !stat.is_file() {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) {
        let _ = rustix::fs::ioctl_setflags(&file, IFlags::empty());
    }
    if stat.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            make_mutable(&entry.path());
        }
    }
}

/// Fails when fewer than `needed` bytes are free in `folder`.
pub fn require_room(folder: &Path, needed: Bytes) -> Result<(), Failure> {
    let disk = rustix::fs::statvfs(folder).at("look at", folder)?;
    let free = Bytes(disk.f_bavail.saturating_mul(disk.f_frsize));
    if free < needed { Err(Failure::NoSpace { folder: folder.to_owned(), free, needed }) } else { Ok(()) }
}

/// A name for the new file, in the same folder and not one that a service would read.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ensure_writes_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        assert!(ensure(&path, "x", 0o640).unwrap());
        assert!(!ensure(&path, "x", 0o640).unwrap());
        assert!(ensure(&path, "y", 0o640).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert!(remove(&path).unwrap() && !remove(&path).unwrap());
    }

    #[test]
    fn room_is_told_in_amounts() {
        let error = require_room(Path::new("/tmp"), Bytes(u64::MAX)).unwrap_err();
        assert!(error.to_string().contains("GB are free"), "{error}");
    }
}
