//! From a repository to a node: all files of a backup, as the node's agent is to write them.

use std::io;
use std::pin::pin;

use bytes::{BufMut, Bytes, BytesMut};
use corpus_backup::{BackupError, Repository, TreeSink};
use corpus_protocol::{MAX_TREE_LINE, TreeDigest, TreeEntry, TreeKind, TreeLine, TreeSums};
use tokio::sync::mpsc;

use super::{CarryError, ENDS, Program};
use crate::nodes::{TreeInput, TreeOutput};

/// What goes at once, in bytes: small files go together.
const AT_ONCE: usize = 256 << 10;
/// So many of these wait for the node.
const WAITING: usize = 8;

/// Brings all files of a backup to a node. `progress` is told how much has gone. With a digest, tells what all of them come
/// to.
pub(crate) async fn bring(
    program: &Program<'_>,
    (repository, snapshot): (Repository, String),
    digest: Option<TreeDigest>,
    progress: impl Fn(u64) + Send + Sync,
    cancelled: impl Future<Output = ()>,
) -> Result<TreeSums, CarryError> {
    let (input, output) = program.start().await?;
    let (to, pieces) = mpsc::channel(WAITING);
    let work = tokio::task::spawn_blocking(move || {
        let mut out = Outgoing { to, kept: BytesMut::new(), entries: 0, digest };
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
        (Ok((sent, sums)), Ok(written)) if sent == written => Ok(sums),
        (Ok((sent, _)), Ok(written)) => {
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

/// What files on a node come to, as the node says.
pub(crate) async fn sums(program: &Program<'_>, cancelled: impl Future<Output = ()>) -> Result<TreeSums, CarryError> {
    // An input that is dropped ends the program.
    let (_input, output) = program.start().await?;
    let said = tokio::select! {
        said = last(output) => said?,
        () = cancelled => return Err(CarryError::Cancelled),
    };
    match said {
        TreeLine::Sums(sums) => Ok(sums),
        _ => Err(CarryError::Unclear("no word of what the files come to".to_owned())),
    }
}

/// How many files the agent has written.
pub(super) async fn answer(output: TreeOutput) -> Result<u64, CarryError> {
    match last(output).await? {
        TreeLine::End { entries } => Ok(entries),
        _ => Err(CarryError::Unclear("no word of how it ended".to_owned())),
    }
}

/// The one line that the agent says when it has ended.
async fn last(mut output: TreeOutput) -> Result<TreeLine, CarryError> {
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
        Ok(line) => ended.map(|()| line).map_err(CarryError::from),
        Err(_) => {
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
    digest: Option<TreeDigest>,
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

    fn end(mut self) -> io::Result<(u64, TreeSums)> {
        let entries = self.entries;
        self.line(&TreeLine::End { entries })?;
        self.flush()?;
        Ok((entries, self.digest.map(TreeDigest::end).unwrap_or_default()))
    }
}

impl TreeSink for Outgoing {
    fn entry(&mut self, entry: &TreeEntry) -> io::Result<()> {
        self.entries += 1;
        if let Some(digest) = &mut self.digest {
            let path = digest.entry(entry);
            if entry.kind == TreeKind::File {
                digest.content_begins(&path);
            }
        }
        self.line(&TreeLine::Entry(Box::new(entry.clone())))
    }

    fn content(&mut self, piece: &[u8]) -> io::Result<()> {
        if let Some(digest) = &mut self.digest {
            digest.content(piece);
        }
        self.room(piece.len() + 4)?;
        let length = u32::try_from(piece.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.kept.put_u32(length);
        self.kept.extend_from_slice(piece);
        Ok(())
    }

    fn content_ends(&mut self) -> io::Result<()> {
        if let Some(digest) = &mut self.digest {
            digest.content_ends();
        }
        self.room(4)?;
        self.kept.put_u32(0);
        Ok(())
    }
}
