//! What a node tells of the files of a guest: a list of all of them, and the contents that are asked for.
//!
//! The list is kept on disk meanwhile, since a guest may have millions of files. What a node says is counted: it lists no
//! more than the guest may have, and cuts nothing into pieces that are longer than was agreed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};

use bytes::{Buf, Bytes, BytesMut};
use corpus_protocol::{BROKEN, MAX_ENTRIES, MAX_PIECE, MAX_TREE_LINE, TreeEntry, TreeLine};

use super::CarryError;
use crate::nodes::TreeOutput;

/// What a guest's files may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How much there may be in them, in bytes.
    pub bytes: u64,
}

/// The files of a snapshot as they were listed, in a file that nobody else sees.
pub(super) struct Listed {
    spool: File,
    /// How much there is in them.
    pub bytes: u64,
}

impl Listed {
    pub async fn read<O: Output>(from: &mut Incoming<O>, limits: Limits) -> Result<Self, CarryError> {
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
                            "the guest has more in its files than is brought: {MAX_ENTRIES} files and {most} at most"
                        )));
                    }
                    spool.write_all(&line)?;
                    spool.write_all(b"\n")?;
                }
                Ok(TreeLine::End { entries }) if entries == count => break,
                Ok(TreeLine::End { entries }) => {
                    return Err(CarryError::Unclear(format!("{entries} files were listed, and {count} came")));
                }
                Ok(TreeLine::Sums(_)) => return Err(CarryError::Unclear("sums came in place of files".to_owned())),
                Ok(TreeLine::Failed(why)) => return Err(CarryError::Told(short(&why))),
                Err(error) => return Err(CarryError::Unclear(error.to_string())),
            }
        }
        let mut spool = spool.into_inner().map_err(io::IntoInnerError::into_error)?;
        spool.rewind()?;
        Ok(Self { spool, bytes })
    }

    pub fn entries(self) -> impl Iterator<Item = Result<TreeEntry, String>> + Send + 'static {
        let entry = |line: io::Result<String>| match serde_json::from_str(&line.map_err(|error| error.to_string())?) {
            Ok(TreeLine::Entry(entry)) => Ok(*entry),
            Ok(_) => Err("a line of the list is no file".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        BufReader::new(self.spool).lines().map(entry)
    }
}

#[cfg(test)]
impl Listed {
    /// What a node would have told.
    pub fn of(entries: Vec<TreeEntry>) -> Self {
        let mut spool = tempfile::tempfile().unwrap();
        let bytes = entries.iter().map(|entry| entry.size).sum();
        for entry in entries {
            serde_json::to_writer(&mut spool, &TreeLine::Entry(Box::new(entry))).unwrap();
            spool.write_all(b"\n").unwrap();
        }
        spool.rewind().unwrap();
        Self { spool, bytes }
    }
}

/// What is told of a failure at most.
pub(super) fn short(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(500).collect()
}

/// Where bytes come from: a node's program, or a test.
pub(super) trait Output: Send {
    /// What it wrote next; nothing when it has ended well.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, CarryError>> + Send;
}

impl Output for TreeOutput {
    async fn next(&mut self) -> Result<Option<Bytes>, CarryError> {
        Ok(Self::next(self).await?)
    }
}

/// What comes from the node, cut into what it consists of.
pub(super) struct Incoming<O> {
    output: O,
    pub(super) kept: BytesMut,
}

impl<O: Output> Incoming<O> {
    pub fn new(output: O) -> Self {
        Self { output, kept: BytesMut::new() }
    }

    /// So much at least is there. Nothing more comes where it ends before.
    pub(super) async fn fill(&mut self, least: usize) -> Result<(), CarryError> {
        while self.kept.len() < least {
            let more = self.output.next().await?;
            let more = more.ok_or_else(|| CarryError::Unclear("it ended in the middle".to_owned()))?;
            self.kept.extend_from_slice(&more);
        }
        Ok(())
    }

    pub async fn line(&mut self) -> Result<Bytes, CarryError> {
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
    pub async fn piece(&mut self) -> Result<Bytes, CarryError> {
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
