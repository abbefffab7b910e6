//! What goes wrong with a repository, in words for who operates it.

use std::path::PathBuf;

use rustic_core::RusticError;
use thiserror::Error;

use crate::storage::StorageError;

/// A repository can't be used, or what was asked of it failed.
#[derive(Debug, Error)]
pub enum BackupError {
    /// There is none at its place.
    #[error("there is no repository of backups in {0}")]
    NoRepository(String),
    /// It does not open.
    #[error("the password does not open the repository in {0}")]
    Password(String),
    /// Nothing in it is what was asked for.
    #[error("the repository in {place} holds no backup {which}")]
    NoSnapshot {
        /// The repository.
        place: String,
        /// What was asked for.
        which: String,
    },
    /// What is brought back would lie among other files.
    #[error("{0} is not empty: a backup is brought back into a folder of its own")]
    NotEmpty(PathBuf),
    /// A path that restic's format can't hold.
    #[error("{0} is no text in UTF-8")]
    NotText(PathBuf),
    /// A file of a tree that is to be saved can't be one.
    #[error("the files can't be saved: {path}: {fault}")]
    Entry {
        /// Where it is.
        path: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Not all files of a tree were told.
    #[error("the files that are to be saved can't be listed: {0}")]
    Listing(String),
    /// A file of a tree can't be read.
    #[error("the content of {path} can't be read")]
    Content {
        /// Where it is.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A backup holds no such file.
    #[error("the backup holds no {0}")]
    NoFile(String),
    /// A file of a backup is of another kind.
    #[error("{path} is no {wanted}")]
    Kind {
        /// Where it is.
        path: String,
        /// What it was taken for.
        wanted: &'static str,
    },
    /// A folder holds more files than are looked through for a few of them.
    #[error("a folder holds too many files to be looked through: the whole backup can be brought back")]
    TooMuch,
    /// Who brings a backup back doesn't take what is in it.
    #[error("what is in the backup can't be written")]
    Taking(#[source] std::io::Error),
    /// What was read is not what was written.
    #[error("the repository in {place} is damaged: {found}")]
    Damaged {
        /// The repository.
        place: String,
        /// What was found, the first few.
        found: String,
    },
    /// The place of the repository.
    #[error("{what} failed")]
    Storage {
        /// What was being done.
        what: &'static str,
        /// What is wrong with the place.
        #[source]
        source: StorageError,
    },
    /// Anything else.
    #[error("{what} failed: {why}")]
    Failed {
        /// What was being done.
        what: &'static str,
        /// What the library says.
        why: String,
    },
}

impl BackupError {
    /// What the library said while something was done; of what the place said, that.
    pub(crate) fn of(what: &'static str) -> impl FnOnce(Box<RusticError>) -> Self {
        move |error| {
            place_of(&error).map_or_else(
                || Self::Failed { what, why: error.display_log() },
                |source| Self::Storage { what, source },
            )
        }
    }

    /// What the place said while something was done.
    pub(crate) fn at(what: &'static str) -> impl FnOnce(StorageError) -> Self {
        move |source| Self::Storage { what, source }
    }
}

/// What the place said, if that is what the library's error is about.
fn place_of(error: &RusticError) -> Option<StorageError> {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref::<StorageError>() {
            return Some(found.clone());
        }
        cause = inner.source();
    }
    None
}
