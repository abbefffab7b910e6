//! Repositories of backups, in restic's format.
//!
//! What is backed up must be had again when Corpus is gone, and whoever holds the disk that it lies on must not read
//! it. So the format is none of ours: encrypted, deduplicated, and read by any restic with the repository's password.
//! `rustic_core` writes and reads it; nothing of it is seen outside of this crate. Where it lies is one of the kinds of
//! [`Place`], and makes no difference to who uses it.
//!
//! Everything here works with files or servers and blocks its thread: callers run it on one of their own.

mod contents;
mod error;
mod fault;
mod late;
mod node;
mod place;
mod read;
mod repository;
mod retention;
mod storage;
#[cfg(test)]
mod tests;
mod tree;
mod walk;

pub use contents::Contents;
pub use error::BackupError;
pub use place::{InvalidPlace, Place, S3Place, SftpPlace};
pub use read::TreeSink;
pub use repository::{Reading, Repository, Saved, Snapshot, Which};
pub use retention::Keep;
pub use storage::{Access, InvalidAccess, Room, S3Access, S3Options, SftpAccess, Storage, StorageError};
pub use tree::About;
pub use walk::Walk;
