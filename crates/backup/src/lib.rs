//! Repositories of backups, in restic's format.
//!
//! What is backed up must be had again when Corpus is gone, and whoever holds the disk that it lies on must not read
//! it. So the format is none of ours: encrypted, deduplicated, and read by any restic with the repository's password.
//! `rustic_core` writes and reads it; nothing of it is seen outside of this crate.
//!
//! Everything here works with files and blocks its thread: callers run it on one of their own.

mod contents;
mod error;
mod gate;
mod node;
mod read;
mod repository;
mod retention;
#[cfg(test)]
mod tests;
mod tree;
mod walk;

pub use contents::Contents;
pub use error::BackupError;
pub use read::TreeSink;
pub use repository::{Reading, Repository, Saved, Snapshot, Which};
pub use retention::Keep;
pub use tree::About;
