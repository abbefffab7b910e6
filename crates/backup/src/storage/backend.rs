//! The files of a place as the library of the format wants them, and the gate before them.
//!
//! `rustic_core` tells of a file that it can't read in its log and goes on: what it makes then looks like a backup and is
//! none. So the first thing that goes wrong is noted here, by whoever saw it, and from then on no snapshot is written.
//! What was written before it lies there unused: the next save finds it, or the next [`prune`](crate::Repository::prune)
//! removes it.
//!
//! Two may make the same repository at a time. The one whose configuration is there first has made it; the other takes
//! its key away again, which would open nothing and be found by who looks for the one that does.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rustic_core::{BytesList, ErrorKind, FileType, Id, ReadBackend, RusticError, RusticResult, WriteBackend};

use super::{CONFIG, Files, KEYS, StorageError};
use crate::BackupError;
use crate::fault::Fault;

/// A repository's files.
#[derive(Debug)]
pub(crate) struct Backend {
    files: Arc<dyn Files>,
    fault: Fault,
    /// The keys that were written by this one.
    keys: Mutex<Vec<String>>,
}

impl Backend {
    pub(crate) fn new(files: Arc<dyn Files>, fault: Fault) -> Self {
        Self { files, fault, keys: Mutex::default() }
    }

    pub(crate) fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// Forgets what went wrong.
    pub(crate) fn forget(&self) {
        drop(self.fault.take());
    }

    /// Removes the keys of those who began to make this repository and were not the first; this one was.
    pub(crate) fn made(&self) -> Result<(), StorageError> {
        let ours = self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let all = self.files.list(KEYS)?;
        let others = all.iter().filter(|(name, _)| !ours.contains(name));
        others.map(|(name, _)| format!("{KEYS}/{name}")).try_for_each(|path| self.files.remove(&path))
    }

    fn write(&self, tpe: FileType, id: &Id, content: &[Bytes]) -> Result<(), StorageError> {
        let path = path(tpe, id);
        if tpe == FileType::Key {
            self.keys.lock().unwrap_or_else(PoisonError::into_inner).push(id.to_hex().to_string());
        }
        if tpe != FileType::Config {
            return self.files.write(&path, content);
        }
        if self.files.create(&path, content)? {
            return Ok(());
        }
        let ours = std::mem::take(&mut *self.keys.lock().unwrap_or_else(PoisonError::into_inner));
        ours.iter().try_for_each(|name| self.files.remove(&format!("{KEYS}/{name}")))?;
        Err(StorageError::Taken)
    }
}

impl ReadBackend for Backend {
    fn location(&self) -> String {
        self.files.name()
    }

    fn list_with_size(&self, tpe: FileType) -> RusticResult<Vec<(Id, u32)>> {
        if tpe == FileType::Config {
            let there = self.files.exists(CONFIG).map_err(failed)?;
            return Ok(there.then_some((Id::default(), 0)).into_iter().collect());
        }
        let files = self.files.list(tpe.dirname()).map_err(failed)?;
        let known = files.into_iter().filter_map(|(name, size)| {
            let id = Id::parse_some(&name, tpe)?;
            Some((id, u32::try_from(size).ok()?))
        });
        Ok(known.collect())
    }

    fn read_full(&self, tpe: FileType, id: &Id) -> RusticResult<Bytes> {
        self.files.read(&path(tpe, id)).map_err(failed)
    }

    fn read_partial(&self, tpe: FileType, id: &Id, _: bool, offset: u32, length: u32) -> RusticResult<Bytes> {
        self.files.read_part(&path(tpe, id), offset.into(), length.into()).map_err(failed)
    }

    fn warmup_path(&self, tpe: FileType, id: &Id) -> String {
        path(tpe, id)
    }
}

impl WriteBackend for Backend {
    fn create(&self) -> RusticResult<()> {
        self.files.prepare().map_err(failed)
    }

    fn write_bytes(&self, tpe: FileType, id: &Id, _: bool, content: BytesList) -> RusticResult<()> {
        if tpe == FileType::Snapshot && self.fault.is_set() {
            return Err(RusticError::new(ErrorKind::Backend, "what was read is not whole"));
        }
        self.write(tpe, id, content.slice()).map_err(|source| {
            self.fault.set(BackupError::Storage { what: "writing to the repository", source: source.clone() });
            failed(source)
        })
    }

    fn remove(&self, tpe: FileType, id: &Id, _: bool) -> RusticResult<()> {
        self.files.remove(&path(tpe, id)).map_err(failed)
    }
}

/// Where restic puts a file.
fn path(tpe: FileType, id: &Id) -> String {
    let name = id.to_hex();
    let (folder, name) = (tpe.dirname(), name.as_str());
    match tpe {
        FileType::Config => CONFIG.to_owned(),
        FileType::Pack => format!("{folder}/{}/{name}", name.get(..2).unwrap_or_default()),
        _ => format!("{folder}/{name}"),
    }
}

/// What went wrong, as the library hands it on.
fn failed(source: StorageError) -> Box<RusticError> {
    RusticError::with_source(ErrorKind::Backend, "The place of the repository failed", source)
}
