//! Tables that the kernel has once for a node, or counts for all of its guests together.
//!
//! What their defaults allow is soon taken by one guest: user namespaces count what watches files for
//! the node's root too, which owns them all. So there is more of each than any guest's memory can
//! hold, since the kernel charges what stands in them to the guest that takes it. Whoever set one
//! higher keeps it. On a node that is a container itself they are its host's to raise.

use std::fs;
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};

use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;

/// Below /proc/sys.
const TABLES: [(&str, u64); 4] = [
    ("fs/inotify/max_user_instances", 1 << 20),
    ("fs/inotify/max_user_watches", 1 << 26),
    ("fs/aio-max-nr", 1 << 24),
    ("kernel/pty/max", 1 << 18),
];

/// Each is as large as that, or was larger. One that a kernel does not have is no guest's to take.
pub fn raise(host: &Host) -> Result<(), Failure> {
    for (name, least) in TABLES {
        let path = host.path("/proc/sys").join(name);
        let size = files::read(&path)?.and_then(|text| text.trim().parse::<u64>().ok());
        if size.is_none_or(|size| size >= least) {
            continue;
        }
        match fs::write(&path, least.to_string()) {
            Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {}
            written => written.at("write", &path)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_raised_and_large_ones_kept() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let read = |name: &str| files::read(&host.path("/proc/sys").join(name)).unwrap();
        files::write(&host.path("/proc/sys/kernel/pty/max"), "4096\n", 0o644).unwrap();
        files::write(&host.path("/proc/sys/fs/aio-max-nr"), "999999999\n", 0o644).unwrap();
        raise(&host).unwrap();
        assert_eq!(read("kernel/pty/max").as_deref(), Some("262144"));
        assert_eq!(read("fs/aio-max-nr").as_deref(), Some("999999999\n"));
        assert_eq!(read("fs/inotify/max_user_watches"), None);
    }
}
