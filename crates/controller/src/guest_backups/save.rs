//! From a snapshot on a node into a repository: the node lists all files, and is asked for those that differ.
//!
//! Two worlds meet here: the line is waited for without a thread, and the repository works with threads that read as from
//! a file. The list is kept on disk meanwhile, since a guest may have millions of files. What a node says is counted: it
//! sends no more than it listed, and lists no more than the guest may have.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::pin::pin;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use corpus_backup::{About, Contents, Repository, Saved};
use corpus_protocol::{BROKEN, MAX_ENTRIES, MAX_PIECE, MAX_TREE_LINE, TreeEntry, TreeLine};
use tokio::sync::mpsc;

use super::{CarryError, ENDS, Program};
use crate::nodes::{TreeInput, TreeOutput};

/// Pieces of one file that wait for who reads it.
const PIECES: usize = 8;

/// What a guest's files may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How much there may be in them, in bytes.
    pub bytes: u64,
}

/// Brings all files of a snapshot into a repository. `progress` is told how much of how much has come.
pub(crate) async fn save(
    program: &Program<'_>,
    repository: Repository,
    about: About,
    limits: Limits,
    progress: impl Fn(u64, u64) + Send + Sync,
    cancelled: impl Future<Output = ()>,
) -> Result<Saved, CarryError> {
    let (input, output) = program.start().await?;
    let mut incoming = Incoming::new(output);
    let mut cancelled = pin!(cancelled);
    let listed = tokio::select! {
        listed = Listed::read(&mut incoming, limits) => listed?,
        () = &mut cancelled => return Err(CarryError::Cancelled),
    };
    let bytes = listed.bytes;
    let (ask, asked) = mpsc::unbounded_channel();
    let work = tokio::task::spawn_blocking(move || {
        repository.save_tree(&about, listed.entries(), Arc::new(Asking(ask))).map_err(CarryError::from)
    });
    // Dropped with what is asked for, so that who reads a file in the thread sees that nothing comes any more.
    let served = tokio::select! {
        served = serve(input, incoming, asked, bytes, &progress) => served,
        () = &mut cancelled => Err(CarryError::Cancelled),
    };
    let saved =
        tokio::time::timeout(ENDS, work).await.map_err(|_| CarryError::Ended)?.map_err(|_| CarryError::Ended)?;
    // Why a line ended says more than that a file could not be read.
    served?;
    saved
}

/// The files of a snapshot as they were listed, in a file that nobody else sees.
struct Listed {
    spool: File,
    bytes: u64,
}

impl Listed {
    async fn read<O: Output>(from: &mut Incoming<O>, limits: Limits) -> Result<Self, CarryError> {
        let mut spool = BufWriter::new(tempfile::tempfile()?);
        let (mut count, mut bytes) = (0_u64, 0_u64);
        loop {
            let line = from.line().await?;
            match serde_json::from_slice(&line) {
                Ok(TreeLine::Entry(entry)) => {
                    (count, bytes) = (count + 1, bytes.saturating_add(entry.size));
                    if count > MAX_ENTRIES || bytes > limits.bytes {
                        let most = corpus_domain::Bytes(limits.bytes).gb();
                        return Err(CarryError::Told(format!(
                            "the guest has more in its files than is backed up: {MAX_ENTRIES} files and {most} at most"
                        )));
                    }
                    spool.write_all(&line)?;
                    spool.write_all(b"\n")?;
                }
                Ok(TreeLine::End { entries }) if entries == count => break,
                Ok(TreeLine::End { entries }) => {
                    return Err(CarryError::Unclear(format!("{entries} files were listed, and {count} came")));
                }
                Ok(TreeLine::Failed(why)) => return Err(CarryError::Told(short(&why))),
                Err(error) => return Err(CarryError::Unclear(error.to_string())),
            }
        }
        let mut spool = spool.into_inner().map_err(io::IntoInnerError::into_error)?;
        spool.rewind()?;
        Ok(Self { spool, bytes })
    }

    fn entries(self) -> impl Iterator<Item = Result<TreeEntry, String>> + Send + 'static {
        let entry = |line: io::Result<String>| match serde_json::from_str(&line.map_err(|error| error.to_string())?) {
            Ok(TreeLine::Entry(entry)) => Ok(*entry),
            Ok(_) => Err("a line of the list is no file".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        BufReader::new(self.spool).lines().map(entry)
    }
}

/// What is told of a failure at most.
fn short(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(500).collect()
}

/// Where bytes come from: a node's program, or a test.
trait Output: Send {
    /// What it wrote next; nothing when it has ended well.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, CarryError>> + Send;
}

impl Output for TreeOutput {
    async fn next(&mut self) -> Result<Option<Bytes>, CarryError> {
        Ok(Self::next(self).await?)
    }
}

/// What comes from the node, cut into what it consists of.
struct Incoming<O> {
    output: O,
    kept: BytesMut,
}

impl<O: Output> Incoming<O> {
    fn new(output: O) -> Self {
        Self { output, kept: BytesMut::new() }
    }

    /// So much at least is there. Nothing more comes where it ends before.
    async fn fill(&mut self, least: usize) -> Result<(), CarryError> {
        while self.kept.len() < least {
            let more = self.output.next().await?;
            let more = more.ok_or_else(|| CarryError::Unclear("it ended in the middle".to_owned()))?;
            self.kept.extend_from_slice(&more);
        }
        Ok(())
    }

    async fn line(&mut self) -> Result<Bytes, CarryError> {
        let mut looked = 0;
        loop {
            let fresh = self.kept.get(looked..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let line = self.kept.split_to(looked + end).freeze();
                self.kept.advance(1);
                return Ok(line);
            }
            looked = self.kept.len();
            if looked > MAX_TREE_LINE {
                return Err(CarryError::Unclear(format!("a line is longer than {MAX_TREE_LINE} bytes")));
            }
            self.fill(looked + 1).await?;
        }
    }

    /// The next piece of a content; an empty one ends it.
    async fn piece(&mut self) -> Result<Bytes, CarryError> {
        self.fill(4).await?;
        let length = self.kept.get_u32();
        if length == BROKEN {
            let why = self.line().await?;
            return Err(CarryError::Told(short(&String::from_utf8_lossy(&why))));
        }
        if length > MAX_PIECE {
            return Err(CarryError::Unclear(format!("a piece of {length} bytes")));
        }
        let length = length as usize;
        self.fill(length).await?;
        Ok(self.kept.split_to(length).freeze())
    }
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
        Ok(Box::new(Reading { from, piece: Bytes::new(), is_over: false }))
    }
}

/// The line is no more.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the node sends no more")
}

/// One file as a thread reads it.
struct Reading {
    from: mpsc::Receiver<Bytes>,
    piece: Bytes,
    is_over: bool,
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
