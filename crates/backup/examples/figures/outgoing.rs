//! From a repository to an agent that writes files, as the controller does it (`guest_backups::bring`).

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use corpus_backup::{Repository, TreeSink};
use corpus_protocol::{TreeEntry, TreeLine};

use crate::line::{Input, output};

/// What goes at once, in bytes, as in the controller.
const AT_ONCE: usize = 256 << 10;

/// Brings a backup to the agent on the line.
pub fn bring(repository: &Repository, id: &str) -> Result<(), Box<dyn Error>> {
    let mut to = Outgoing { to: BufWriter::with_capacity(AT_ONCE, output()?), entries: 0 };
    let brought = repository.read_tree(id, &mut to);
    let sent = to.entries;
    let ended = brought.map_err(Box::<dyn Error>::from).and_then(|_| Ok(to.end()?));
    // The agent says how it ended in any case, and that says more than that it took no more.
    match Input::open()?.line()? {
        (_, TreeLine::End { entries }) if entries == sent => ended,
        _ => Err("not all files were written".into()),
    }
}

struct Outgoing {
    to: BufWriter<File>,
    entries: u64,
}

impl Outgoing {
    fn line(&mut self, line: &TreeLine) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, line)?;
        self.to.write_all(b"\n")
    }

    fn end(mut self) -> io::Result<()> {
        self.line(&TreeLine::End { entries: self.entries })?;
        self.to.flush()
    }
}

impl TreeSink for Outgoing {
    fn entry(&mut self, entry: &TreeEntry) -> io::Result<()> {
        self.entries += 1;
        self.line(&TreeLine::Entry(Box::new(entry.clone())))
    }

    fn content(&mut self, piece: &[u8]) -> io::Result<()> {
        let length = u32::try_from(piece.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.to.write_all(&length.to_be_bytes())?;
        self.to.write_all(piece)
    }

    fn content_ends(&mut self) -> io::Result<()> {
        self.to.write_all(&[0; 4])
    }
}
