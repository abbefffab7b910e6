//! Tables that the kernel counts for all guests of a node together.
//!
//! User namespaces count what watches files for the node's root too, which owns them all: what the
//! defaults allow is soon taken by one guest. So there is more than any guest's memory can hold, since
//! the kernel charges each watch to the guest that takes it. Whoever set one higher keeps it. On a node
//! that is a container itself they are its host's to raise.
//!
//! Other tables stay as they are on purpose: what stands in `fs.aio-max-nr` and `kernel.pty.max` is not
//! charged to the guest as a whole, so a larger one would give it more of the node's memory.

use std::fs;
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};

use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;

/// Below /proc/sys.
const TABLES: [(&str, u64); 2] = [("fs/inotify/max_user_instances", 1 << 20), ("fs/inotify/max_user_watches", 1 << 26)];

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
        let [(instances, least), (watches, _)] = TABLES;
        files::write(&host.path("/proc/sys").join(instances), "128\n", 0o644).unwrap();
        raise(&host).unwrap();
        assert_eq!(
            (read(instances), read(watches)),
            (Some(least.to_string()), None),
            "one that is not there is not made"
        );
        files::write(&host.path("/proc/sys").join(instances), "999999999\n", 0o644).unwrap();
        raise(&host).unwrap();
        assert_eq!(read(instances).as_deref(), Some("999999999\n"));
    }
}
