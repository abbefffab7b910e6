//! The gate before a repository: what is written goes through it.
//!
//! `rustic_core` tells of a file that it can't read in its log and goes on: what it makes then looks like a backup and is
//! none. So the first thing that goes wrong is noted here, by whoever saw it, and from then on no snapshot is written.
//! What was written before it lies there unused: the next save finds it, or the next [`prune`](crate::Repository::prune)
//! removes it.
//!
//! And what it writes has its name before all of it is there: a snapshot that a power failure left so would keep anybody
//! from listing the others. Only of packs nobody knows before they are whole, so all else gets its name at the end here.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rustic_core::{
    BytesList, ErrorKind, FileType, Id, ReadBackend, RepositoryBackends, RusticError, RusticResult, WriteBackend,
};

use crate::BackupError;

/// The first thing that went wrong, known to all who take part in saving.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<BackupError>>>);

impl Fault {
    /// Notes what went wrong, unless something has before.
    pub(crate) fn set(&self, error: BackupError) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take(&self) -> Option<BackupError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

struct Gate {
    place: PathBuf,
    to: Arc<dyn WriteBackend>,
    fault: Fault,
}

/// The repository in a folder, to which no snapshot is written once something went wrong.
pub(crate) fn gated(backends: &RepositoryBackends, place: &Path, fault: &Fault) -> RepositoryBackends {
    let gate = Gate { place: place.to_owned(), to: backends.repository(), fault: fault.clone() };
    RepositoryBackends::new(Arc::new(gate), None)
}

impl ReadBackend for Gate {
    fn location(&self) -> String {
        self.to.location()
    }

    fn list_with_size(&self, tpe: FileType) -> RusticResult<Vec<(Id, u32)>> {
        self.to.list_with_size(tpe)
    }

    fn list(&self, tpe: FileType) -> RusticResult<Vec<Id>> {
        self.to.list(tpe)
    }

    fn read_full(&self, tpe: FileType, id: &Id) -> RusticResult<Bytes> {
        self.to.read_full(tpe, id)
    }

    fn read_partial(&self, tpe: FileType, id: &Id, cacheable: bool, offset: u32, length: u32) -> RusticResult<Bytes> {
        self.to.read_partial(tpe, id, cacheable, offset, length)
    }

    fn warmup_path(&self, tpe: FileType, id: &Id) -> String {
        self.to.warmup_path(tpe, id)
    }
}

impl WriteBackend for Gate {
    fn create(&self) -> RusticResult<()> {
        self.to.create()
    }

    fn write_bytes(&self, tpe: FileType, id: &Id, cacheable: bool, content: BytesList) -> RusticResult<()> {
        if tpe == FileType::Snapshot && self.fault.is_set() {
            return Err(RusticError::new(ErrorKind::Backend, "what was read is not whole"));
        }
        let written = if tpe == FileType::Pack {
            self.to.write_bytes(tpe, id, cacheable, content)
        } else {
            self.write_whole(tpe, id, content).map_err(|source| {
                RusticError::with_source(ErrorKind::InputOutput, "Failed to write a file of the repository", source)
            })
        };
        written.inspect_err(|error| {
            self.fault.set(BackupError::Failed { what: "writing to the repository", why: error.display_log() });
        })
    }

    fn remove(&self, tpe: FileType, id: &Id, cacheable: bool) -> RusticResult<()> {
        self.to.remove(tpe, id, cacheable)
    }
}

impl Gate {
    fn write_whole(&self, tpe: FileType, id: &Id, content: BytesList) -> io::Result<()> {
        let (folder, name) = match tpe {
            FileType::Config => (self.place.clone(), tpe.dirname().to_owned()),
            _ => (self.place.join(tpe.dirname()), id.to_hex().to_string()),
        };
        fs::create_dir_all(&folder)?;
        let unnamed = folder.join(format!("{name}-tmp"));
        let written = File::create(&unnamed).and_then(|mut file| {
            io::copy(&mut content.reader(), &mut file)?;
            file.sync_all()?;
            fs::rename(&unnamed, folder.join(name))
        });
        if written.is_err() {
            // It is in nobody's way but takes room, of which there may be none.
            fs::remove_file(&unnamed).ok();
        }
        written?;
        File::open(&folder)?.sync_all()
    }
}
