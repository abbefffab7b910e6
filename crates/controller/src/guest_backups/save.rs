//! From a snapshot on a node into a repository: the node lists all files, and is asked for those that differ.
//!
//! Two worlds meet here: the line is waited for without a thread, and the repository works with threads that read as from
//! a file. The list is kept on disk meanwhile, since a guest may have millions of files. What a node says is counted: it
//! sends no more than it listed, and lists no more than the guest may have.

use std::io::{self, Read};
use std::pin::pin;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use corpus_backup::{About, Contents, Repository, Saved};
use tokio::sync::mpsc;

use super::aside::aside;
use super::incoming::{Incoming, Listed, Output};
use super::{CarryError, ENDS, Limits, Program};
use crate::nodes::TreeInput;

/// Pieces of one file that wait for who reads it.
pub(crate) const PIECES: usize = 8;

/// Brings all files of a snapshot into a repository. `progress` is told how much of how much has come.
pub(crate) async fn save(
    program: &Program<'_>,
    repository: Repository,
    about: About,
    limits: Limits,
    progress: impl Fn(u64, u64) + Send + Sync,
    cancelled: impl Future<Output = ()>,
) -> Result<Saved, CarryError> {
    let work = move |listed: Listed, contents| {
        repository.save_tree(&about, listed.entries(), contents).map_err(CarryError::from)
    };
    carry(program, limits, work, progress, cancelled).await
}

/// Has a thread work on all files of a snapshot: on the list of them, and on the contents that it opens. `progress` is told
/// how much of how much has come.
pub(super) async fn carry<T: Send + 'static>(
    program: &Program<'_>,
    limits: Limits,
    work: impl FnOnce(Listed, Arc<dyn Contents>) -> Result<T, CarryError> + Send + 'static,
    progress: impl Fn(u64, u64) + Send + Sync,
    cancelled: impl Future<Output = ()>,
) -> Result<T, CarryError> {
    let (input, output) = program.start().await?;
    let mut incoming = Incoming::new(output);
    let mut cancelled = pin!(cancelled);
    let listed = tokio::select! {
        listed = Listed::read(&mut incoming, limits) => listed?,
        () = &mut cancelled => return Err(CarryError::Cancelled),
    };
    let bytes = listed.bytes;
    let (ask, asked) = mpsc::unbounded_channel();
    let work = aside(move || work(listed, Arc::new(Asking(ask))));
    // Dropped with what is asked for, so that who reads a file in the thread sees that nothing comes any more.
    let served = tokio::select! {
        served = serve(input, incoming, asked, bytes, &progress) => served,
        () = &mut cancelled => Err(CarryError::Cancelled),
    };
    let done = tokio::time::timeout(ENDS, work).await.map_err(|_| CarryError::Ended)?.map_err(|_| CarryError::Ended)?;
    // Why a line ended says more than that a file could not be read.
    served?;
    done
}

/// A file that is wanted, and where its pieces go.
struct Wanted {
    number: u64,
    to: mpsc::Sender<Bytes>,
}

/// Asks the node for files, for threads that read them.
struct Asking(mpsc::UnboundedSender<Wanted>);

impl Contents for Asking {
    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>> {
        let (to, from) = mpsc::channel(PIECES);
        self.0.send(Wanted { number, to }).map_err(|_| cut())?;
        Ok(Box::new(Reading::of(from)))
    }
}

/// The line is no more.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "no more is sent")
}

/// One file as a thread reads it.
pub(crate) struct Reading {
    from: mpsc::Receiver<Bytes>,
    piece: Bytes,
    is_over: bool,
}

impl Reading {
    /// Of these pieces, of which the last is an empty one.
    pub const fn of(from: mpsc::Receiver<Bytes>) -> Self {
        Self { from, piece: Bytes::new(), is_over: false }
    }
}

impl Read for Reading {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() && !self.is_over {
            // The last piece is an empty one: without it, the file was cut.
            self.piece = self.from.blocking_recv().ok_or_else(cut)?;
            self.is_over = self.piece.is_empty();
        }
        let count = to.len().min(self.piece.len());
        self.piece.copy_to_slice(to.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

/// Asks for what is wanted and hands on what comes, in the order in which it was asked for, until nobody wants anything.
async fn serve<O: Output>(
    input: TreeInput,
    mut incoming: Incoming<O>,
    mut asked: mpsc::UnboundedReceiver<Wanted>,
    most: u64,
    progress: &(impl Fn(u64, u64) + Send + Sync),
) -> Result<(), CarryError> {
    let (next, mut order) = mpsc::unbounded_channel();
    let asking = async move {
        while let Some(Wanted { number, to }) = asked.recv().await {
            // One that has ended is heard of by the other half.
            if next.send(to).is_err() || input.send(format!("{number}\n").into()).await.is_err() {
                break;
            }
        }
        input.end().await;
        drop(next);
    };
    // What it holds goes when it fails: then nobody waits for what is still asked for.
    let handing = async move {
        let mut come = 0_u64;
        while let Some(to) = order.recv().await {
            hand_on(&mut incoming, &to, most, &mut come, progress).await?;
        }
        Ok(())
    };
    let ((), handed) = tokio::join!(asking, handing);
    handed
}

/// Hands one content on, all of it. Who does not want the rest is no reason not to read it.
async fn hand_on<O: Output>(
    incoming: &mut Incoming<O>,
    to: &mpsc::Sender<Bytes>,
    most: u64,
    come: &mut u64,
    progress: &(impl Fn(u64, u64) + Send + Sync),
) -> Result<(), CarryError> {
    loop {
        let piece = incoming.piece().await?;
        let is_last = piece.is_empty();
        *come = come.saturating_add(piece.len() as u64);
        if *come > most {
            return Err(CarryError::Unclear("more came than was listed".to_owned()));
        }
        progress(*come, most);
        drop(to.send(piece).await);
        if is_last {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
