//! The files that the process may have open: as many as the system allows.
//!
//! A shell or systemd gives 1,024 unless told otherwise, and each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is left for everything else: the database, the lines to nodes and guests, the log.
const OTHERS: u64 = 512;

/// Raises the limit to the highest there is; tells how many files can be open.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many of so many files can be connections of browsers: half of what is left.
pub(super) fn for_browsers(files: u64) -> usize {
    usize::try_from(files.saturating_sub(OTHERS) / 2).unwrap_or(usize::MAX)
}
