//! Looking into a backup: what is in a folder of it, and its files on their way to who fetches them.
//!
//! To open a repository takes a processor for a moment and its whole index in memory, and whoever looks at a page would
//! open one: so a few are open at a time, and the others wait a little. What is fetched is read by a thread of its own, a few
//! pieces ahead of who takes them. It ends when nobody wants them any more, and when nobody took one for a while.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use corpus_api::Problem;
use corpus_backup::{BackupError, Repository, TreeSink};
use corpus_protocol::TreeEntry;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::archive::Archive;
use crate::services::internal;
use crate::{Error, Result};

/// Looks at a time.
const LOOKS: usize = 2;
/// Fetches at a time.
const FETCHES: usize = 4;
/// How long one waits for a place.
const WAIT: Duration = Duration::from_secs(10);
/// How large a piece is, in bytes.
const PIECE: usize = 64 << 10;
/// So many of them wait for who fetches.
const WAITING: usize = 4;
/// How long a piece waits before who fetches is given up.
const STALLED: Duration = Duration::from_mins(1);

/// The places of those who read backups: each server has its own.
#[derive(Debug)]
pub(crate) struct Readers {
    looks: Arc<Semaphore>,
    fetches: Arc<Semaphore>,
    wait: Duration,
    stalled: Duration,
}

impl Default for Readers {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { looks: places(LOOKS), fetches: places(FETCHES), wait: WAIT, stalled: STALLED }
    }
}

/// What is fetched.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The backup's name in its repository.
    pub snapshot: String,
    /// The names that lead to it.
    pub path: Vec<Vec<u8>>,
    /// Of a folder, what it is called in its archive.
    pub folder: Option<String>,
}

/// What is read of a backup, piece by piece.
#[derive(Debug)]
pub struct Content(mpsc::Receiver<Piece>);

#[derive(Debug)]
enum Piece {
    Begin,
    More(Bytes),
    End(std::result::Result<(), BackupError>),
}

impl Readers {
    /// Reads something small, on a thread of its own.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> std::result::Result<T, BackupError> + Send + 'static,
    ) -> Result<T> {
        let place = self.place(&self.looks, "looked at").await?;
        let looked = tokio::task::spawn_blocking(move || {
            let _until_the_end = place;
            read()
        });
        looked.await.map_err(|error| internal("a backup could not be looked at", error))?.map_err(unreadable)
    }

    /// Begins to read a file, or a folder as an archive; it is there when this returns.
    pub(crate) async fn fetch(&self, repository: Repository, fetched: Fetched) -> Result<Content> {
        let place = self.place(&self.fetches, "fetched").await?;
        let (to, mut pieces) = mpsc::channel(WAITING);
        let pipe = Pipe { to, runtime: Handle::current(), stalled: self.stalled };
        tokio::task::spawn_blocking(move || {
            let _until_the_end = place;
            let read = read(&repository, fetched, Out { pipe: pipe.clone(), kept: BytesMut::new(), begun: false });
            // Where nobody waits for it any more, nobody is told.
            pipe.send(Piece::End(read)).ok();
        });
        match pieces.recv().await {
            Some(Piece::Begin) => Ok(Content(pieces)),
            Some(Piece::End(Err(error))) => Err(unreadable(error)),
            _ => Err(internal("a backup could not be read", io::Error::other("the reader ended without a word"))),
        }
    }

    async fn place(&self, places: &Arc<Semaphore>, what: &str) -> Result<OwnedSemaphorePermit> {
        let place = timeout(self.wait, Arc::clone(places).acquire_owned()).await.ok().and_then(std::result::Result::ok);
        place.ok_or_else(|| {
            let why = format!("As many backups are {what} as can at once. Try again in a moment.");
            Error::Refused(Box::new(Problem::unavailable(why)))
        })
    }
}

impl Content {
    /// The next piece; none when that was all. What can't be read to its end fails.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self.0.recv().await {
            Some(Piece::More(bytes)) => Some(Ok(bytes)),
            Some(Piece::End(Ok(()))) => None,
            Some(Piece::End(Err(error))) => Some(Err(io::Error::other(error))),
            Some(Piece::Begin) | None => Some(Err(io::Error::other("the reader ended without a word"))),
        }
    }
}

fn read(repository: &Repository, fetched: Fetched, mut out: Out) -> std::result::Result<(), BackupError> {
    let Fetched { snapshot, path, folder } = fetched;
    let path: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
    let whole = if let Some(folder) = folder {
        let mut archive = Archive::new(out, folder.into_bytes());
        repository.read_at(&snapshot, &path, &mut archive)?;
        archive.end()
    } else {
        repository.read_at(&snapshot, &path, &mut out)?;
        Ok(out)
    };
    whole.and_then(|mut out| out.flush()).map_err(BackupError::Taking)
}

/// The way to who fetches.
#[derive(Clone)]
struct Pipe {
    to: mpsc::Sender<Piece>,
    runtime: Handle,
    stalled: Duration,
}

impl Pipe {
    fn send(&self, piece: Piece) -> io::Result<()> {
        let sent = self.runtime.block_on(timeout(self.stalled, self.to.send(piece)));
        let sent = sent.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "who fetches takes no more"))?;
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "who fetches is gone"))
    }
}

/// Makes pieces of what is read.
struct Out {
    pipe: Pipe,
    kept: BytesMut,
    begun: bool,
}

impl Out {
    /// It is there, and is read now.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) { Ok(()) } else { self.pipe.send(Piece::Begin) }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        let room = PIECE.saturating_sub(self.kept.len()).min(bytes.len());
        let (now, _) = bytes.split_at(room);
        self.kept.extend_from_slice(now);
        if self.kept.len() >= PIECE {
            self.flush()?;
        }
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.kept.is_empty() { Ok(()) } else { self.pipe.send(Piece::More(self.kept.split().freeze())) }
    }
}

/// One file, as it is.
impl TreeSink for Out {
    fn entry(&mut self, _: &TreeEntry) -> io::Result<()> {
        self.begin()
    }

    fn content(&mut self, piece: &[u8]) -> io::Result<()> {
        self.write_all(piece)
    }

    fn content_ends(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is told to who asked.
fn unreadable(error: BackupError) -> Error {
    match error {
        BackupError::NoFile(_) => {
            Error::Refused(Box::new(Problem::not_found(corpus_gate::sentence(&error.to_string()))))
        }
        BackupError::Kind { .. } => Error::field("path", corpus_gate::sentence(&error.to_string())),
        BackupError::TooMuch => Error::Conflict(error.to_string()),
        _ => Error::Unavailable {
            message: "The backup can't be read now: another one may just be removed from its repository. Try again in \
                      some minutes; the server's log says why."
                .to_owned(),
            source: Box::new(error),
        },
    }
}

#[cfg(test)]
mod tests;
