//! From a repository to a node: all files of a backup, as the node's agent is to write them.

use std::io;
use std::pin::pin;

use bytes::{BufMut, Bytes, BytesMut};
use corpus_backup::{BackupError, Repository, TreeSink};
use corpus_protocol::{MAX_TREE_LINE, TreeEntry, TreeLine};
use tokio::sync::mpsc;

use super::{CarryError, ENDS, Program};
use crate::nodes::{TreeInput, TreeOutput};

/// What goes at once, in bytes: small files go together.
const AT_ONCE: usize = 256 << 10;
/// So many of these wait for the node.
const WAITING: usize = 8;

/// Brings all files of a backup to a node. `progress` is told how much has gone.
pub(crate) async fn bring(
    program: &Program<'_>,
    repository: Repository,
    snapshot: String,
    progress: impl Fn(u64) + Send + Sync,
    cancelled: impl Future<Output = ()>,
) -> Result<(), CarryError> {
    let (input, output) = program.start().await?;
    let (to, pieces) = mpsc::channel(WAITING);
    let work = tokio::task::spawn_blocking(move || {
        let mut out = Outgoing { to, kept: BytesMut::new(), entries: 0 };
        repository.read_tree(&snapshot, &mut out)?;
        Ok::<_, CarryError>(out.end()?)
    });
    let sending = send(&input, pieces, &progress);
    // The agent says how it ended in any case: when it fails before all was sent, nothing more is sent.
    let answered = {
        let answered = pin!(async {
            let (mut answer, mut sending) = (pin!(answer(output)), pin!(sending));
            tokio::select! {
                biased;
                answered = &mut answer => answered,
                () = &mut sending => answer.await,
            }
        });
        tokio::select! {
            answered = answered => answered,
            () = cancelled => Err(CarryError::Cancelled),
        }
    };
    // Not before: an input that is dropped ends the program.
    drop(input);
    let read = tokio::time::timeout(ENDS, work).await.map_err(|_| CarryError::Ended)?.map_err(|_| CarryError::Ended)?;
    match (read, answered) {
        // What is wrong with the repository says more than that the rest did not come; that the node took no more does not.
        (Err(CarryError::Repository(error)), _) if !matches!(error, BackupError::Taking(_)) => Err(error.into()),
        (_, Err(error)) | (Err(error), Ok(_)) => Err(error),
        (Ok(sent), Ok(written)) if sent == written => Ok(()),
        (Ok(sent), Ok(written)) => {
            Err(CarryError::Unclear(format!("{sent} files were sent, and {written} were written")))
        }
    }
}

async fn send(input: &TreeInput, mut pieces: mpsc::Receiver<Bytes>, progress: &(impl Fn(u64) + Send + Sync)) {
    let mut gone = 0;
    while let Some(piece) = pieces.recv().await {
        gone += piece.len() as u64;
        if input.send(piece).await.is_err() {
            break;
        }
        progress(gone);
    }
    input.end().await;
}

/// How many files the agent has written.
pub(super) async fn answer(mut output: TreeOutput) -> Result<u64, CarryError> {
    let mut said = BytesMut::new();
    let ended = loop {
        match output.next().await {
            Ok(Some(more)) if said.len() < MAX_TREE_LINE => said.extend_from_slice(&more),
            Ok(Some(_)) => return Err(CarryError::Unclear("an answer without an end".to_owned())),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    match serde_json::from_slice(&said) {
        Ok(TreeLine::Failed(why)) => Err(CarryError::Told(why.chars().filter(|c| !c.is_control()).take(500).collect())),
        Ok(TreeLine::End { entries }) => ended.map(|()| entries).map_err(CarryError::from),
        _ => {
            ended?;
            Err(CarryError::Unclear("no word of how it ended".to_owned()))
        }
    }
}

/// The files of a backup on their way to a node, by a thread that reads them.
struct Outgoing {
    to: mpsc::Sender<Bytes>,
    kept: BytesMut,
    entries: u64,
}

impl Outgoing {
    fn room(&mut self, wanted: usize) -> io::Result<()> {
        if self.kept.len() + wanted > AT_ONCE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the node takes no more");
        if self.kept.is_empty() {
            return Ok(());
        }
        self.to.blocking_send(self.kept.split().freeze()).map_err(|_| gone())
    }

    fn line(&mut self, line: &TreeLine) -> io::Result<()> {
        let text = serde_json::to_vec(line)?;
        self.room(text.len() + 1)?;
        self.kept.extend_from_slice(&text);
        self.kept.put_u8(b'\n');
        Ok(())
    }

    fn end(mut self) -> io::Result<u64> {
        let entries = self.entries;
        self.line(&TreeLine::End { entries })?;
        self.flush()?;
        Ok(entries)
    }
}

impl TreeSink for Outgoing {
    fn entry(&mut self, entry: &TreeEntry) -> io::Result<()> {
        self.entries += 1;
        self.line(&TreeLine::Entry(Box::new(entry.clone())))
    }

    fn content(&mut self, piece: &[u8]) -> io::Result<()> {
        self.room(piece.len() + 4)?;
        let length = u32::try_from(piece.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.kept.put_u32(length);
        self.kept.extend_from_slice(piece);
        Ok(())
    }

    fn content_ends(&mut self) -> io::Result<()> {
        self.room(4)?;
        self.kept.put_u32(0);
        Ok(())
    }
}
