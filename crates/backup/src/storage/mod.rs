//! Where the files of repositories lie, whatever kind of place it is.
//!
//! The format of repositories asks little of the place: files of names that are chosen by what is in them, written once and
//! whole, listed, read in part and removed. What a kind of place has for that is in a module of its own; the rest of this
//! crate does not know which it is. Whatever the kind:
//! - a file gets its name when all of it is there, so a writer that dies leaves nothing that others take for whole;
//! - what is wrong is said in the words of the place and with what to do, and never with what opens it.

mod access;
mod backend;
mod error;
mod folder;
mod runtime;
mod s3;
mod sftp;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

pub use access::{Access, InvalidAccess, S3Access, S3Options, SftpAccess};
pub(crate) use backend::Backend;
pub use error::StorageError;

use crate::place::Place;

type Result<T> = std::result::Result<T, StorageError>;

/// The file that a repository has first.
pub(crate) const CONFIG: &str = "config";
/// The folder of the keys, each of which a password opens.
pub(crate) const KEYS: &str = "keys";

/// A place, and what opens it.
#[derive(Clone)]
pub struct Storage {
    place: Place,
    access: Access,
}

/// How much room there is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What may still be written.
    pub free: u64,
    /// What the place has in all.
    pub all: u64,
}

impl Storage {
    /// A place, and what is known of how places are opened.
    pub fn new(place: Place, access: &Access) -> std::result::Result<Self, InvalidAccess> {
        match &place {
            Place::Sftp(_) if access.sftp.is_none() => Err(InvalidAccess::NoSftp),
            Place::S3(_) if access.s3.is_none() => Err(InvalidAccess::NoS3),
            _ => Ok(Self { place, access: access.clone() }),
        }
    }

    /// A folder in this one, by its plain name.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        Self { place: self.place.below(name), access: self.access.clone() }
    }

    /// How much room there is, where the place can tell: S3 servers can't, and not every SFTP server does.
    pub fn room(&self) -> Result<Option<Room>> {
        self.files()?.room()
    }

    /// Removes all that lies in it. What is not there is none to remove.
    pub fn remove(&self) -> Result<()> {
        self.files()?.remove_all()
    }

    /// Opens it.
    pub(crate) fn files(&self) -> Result<Arc<dyn Files>> {
        Ok(match &self.place {
            Place::Folder(path) => Arc::new(folder::Folder::new(path.clone())),
            Place::Sftp(at) => {
                let access = self.access.sftp.clone().ok_or(StorageError::NotConfigured("sftp"))?;
                Arc::new(sftp::Sftp::new(at.clone(), access))
            }
            Place::S3(at) => {
                let access = self.access.s3.clone().ok_or(StorageError::NotConfigured("s3"))?;
                Arc::new(s3::S3::new(at.clone(), access)?)
            }
        })
    }
}

impl From<PathBuf> for Storage {
    fn from(path: PathBuf) -> Self {
        Self { place: Place::Folder(path), access: Access::default() }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({self})")
    }
}

/// The files of one repository. Paths have `/` between their plain names and begin with none.
pub(crate) trait Files: Send + Sync + fmt::Debug {
    /// What it is called, for people.
    fn name(&self) -> String;
    /// Makes what files will lie in.
    fn prepare(&self) -> Result<()>;
    /// Kept while a repository is made, from whoever would make another one there at the same time and can be kept.
    fn lock(&self) -> Result<Option<std::fs::File>>;
    /// The names of files in a folder and the folders in it, with their sizes; none where there is no such folder.
    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>>;
    /// Whether there is a file.
    fn exists(&self, path: &str) -> Result<bool>;
    /// All of a file.
    fn read(&self, path: &str) -> Result<Bytes>;
    /// So many bytes of a file from there on; fewer are an error.
    fn read_part(&self, path: &str, offset: u64, length: u64) -> Result<Bytes>;
    /// Writes a file. One of that name is the same, or what somebody left who did not end.
    fn write(&self, path: &str, content: &[Bytes]) -> Result<()>;
    /// Writes a file unless there is one; whether it did.
    fn create(&self, path: &str, content: &[Bytes]) -> Result<bool>;
    /// Removes a file, if there is one.
    fn remove(&self, path: &str) -> Result<()>;
    /// Removes everything.
    fn remove_all(&self) -> Result<()>;
    /// How much room there is, if that can be known.
    fn room(&self) -> Result<Option<Room>>;
}
