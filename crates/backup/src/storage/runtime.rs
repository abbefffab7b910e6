//! The threads on which lines to servers run.
//!
//! Whoever works on a repository blocks its thread, and the library does so on many of its own; lines to servers wait for
//! many things at a time. So they have threads of their own, the same for all repositories of the process, whoever started
//! it and whatever it does else.

use std::future::Future;
use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

use super::{Result, StorageError};

static THREADS: LazyLock<std::io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).thread_name("backup-line").enable_all().build());

/// Waits for it. Not for threads on which others wait for many things.
pub(super) fn wait<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match &*THREADS {
        Ok(threads) => threads.block_on(work),
        Err(error) => Err(StorageError::Runtime(error.to_string())),
    }
}
