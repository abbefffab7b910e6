//! The contents of files that are saved, as they come from elsewhere.
//!
//! A line that breaks and a file that ends look alike to who reads on, and the library skips what it can't read. So each
//! content is counted, and what goes wrong with one of them is a [fault](Fault) of the whole save.

use std::io::{self, Read};
use std::sync::Arc;

use rustic_core::{ErrorKind as RusticErrorKind, ReadSourceOpen, RusticError, RusticResult};

use crate::BackupError;
use crate::fault::Fault;

/// The contents of a tree that is saved.
pub trait Contents: Send + Sync {
    /// The content of the regular file that has this number among the entries; the root has 0.
    ///
    /// Called by several threads at a time, and not always with the lower number first. What is opened is read to its end,
    /// or given up when the save has failed.
    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>>;
}

/// A content that may be asked for.
pub(crate) struct Opening {
    pub(crate) contents: Arc<dyn Contents>,
    pub(crate) fault: Fault,
    pub(crate) number: u64,
    /// Where it is, for people.
    pub(crate) path: String,
    /// How long its entry says it is.
    pub(crate) size: u64,
}

impl ReadSourceOpen for Opening {
    type Reader = Content;

    fn open(self) -> RusticResult<Content> {
        let given_up = || RusticError::new(RusticErrorKind::InputOutput, "the save has failed");
        if self.fault.is_set() {
            return Err(given_up());
        }
        match self.contents.open(self.number) {
            Ok(from) => Ok(Content { from, left: self.size, path: self.path, fault: self.fault }),
            Err(source) => {
                self.fault.set(BackupError::Content { path: self.path, source });
                Err(given_up())
            }
        }
    }
}

/// A content that is read, and has to be as long as was said.
pub(crate) struct Content {
    from: Box<dyn Read + Send>,
    left: u64,
    path: String,
    fault: Fault,
}

impl Read for Content {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.fault.is_set() {
            return Err(io::Error::other("the save has failed"));
        }
        let source = match self.from.read(into) {
            Ok(0) if self.left > 0 && !into.is_empty() => io::Error::other("it ends before it is as long as was said"),
            Ok(read) => match self.left.checked_sub(read as u64) {
                Some(left) => {
                    self.left = left;
                    return Ok(read);
                }
                None => io::Error::other("it is longer than was said"),
            },
            // Who reads tries again.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => error,
        };
        let told = io::Error::other(source.to_string());
        self.fault.set(BackupError::Content { path: self.path.clone(), source });
        Err(told)
    }
}
