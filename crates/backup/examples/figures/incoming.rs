//! From an agent into a repository, as the controller does it (`guest_backups::save`), with threads in place of tasks.
//!
//! All files are listed first, and the list lies on disk. Then contents are asked for by the threads that read them, and
//! are handed to them in the order in which they were asked for, eight pieces ahead at most.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

use corpus_backup::{About, Contents, Repository};
use corpus_protocol::{TreeEntry, TreeLine};

use crate::line::{Input, output};

/// Pieces of one file that wait for who reads it, as in the controller.
const PIECES: usize = 8;

/// Saves what the agent on the line tells.
pub fn save(repository: &Repository, about: &About) -> Result<(), Box<dyn Error>> {
    let mut input = Input::open()?;
    let entries = listed(&mut input)?;
    let (ask, asked) = mpsc::channel();
    let (next, order) = mpsc::channel();
    let output = output()?;
    let asking = thread::spawn(move || asking(&asked, &next, output));
    let handing = thread::spawn(move || handing(&order, &mut input));
    let saved = repository.save_tree(about, entries, Arc::new(Asking(ask)));
    let gone = |_| "a thread ended before its time";
    // Why the line ended says more than that a file could not be read.
    asking.join().map_err(gone)??;
    handing.join().map_err(gone)??;
    let saved = saved?;
    eprintln!("{} files of {} bytes, {} bytes added", saved.snapshot.files, saved.snapshot.bytes, saved.added_bytes);
    Ok(())
}

fn listed(
    input: &mut Input,
) -> Result<impl Iterator<Item = Result<TreeEntry, String>> + Send + 'static, Box<dyn Error>> {
    let mut spool = BufWriter::new(tempfile::tempfile()?);
    loop {
        match input.line()? {
            (text, TreeLine::Entry(_)) => spool.write_all(&text)?,
            (_, TreeLine::End { .. }) => break,
            _ => return Err("the agent says what is no list".into()),
        }
    }
    let mut spool = spool.into_inner().map_err(io::IntoInnerError::into_error)?;
    spool.rewind()?;
    let entry = |line: io::Result<String>| match serde_json::from_str(&line.map_err(|error| error.to_string())?) {
        Ok(TreeLine::Entry(entry)) => Ok(*entry),
        Ok(_) => Err("a line of the list is no file".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    Ok(BufReader::new(spool).lines().map(entry))
}

/// A file that is wanted, and where its pieces go.
struct Wanted {
    number: u64,
    to: SyncSender<Vec<u8>>,
}

struct Asking(Sender<Wanted>);

impl Contents for Asking {
    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>> {
        let (to, from) = mpsc::sync_channel(PIECES);
        self.0.send(Wanted { number, to }).map_err(|_| cut())?;
        Ok(Box::new(Reading { from, piece: Vec::new(), at: 0, is_over: false }))
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the agent sends no more")
}

/// One file as a thread reads it.
struct Reading {
    from: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
    is_over: bool,
}

impl Read for Reading {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && !self.is_over {
            self.piece = self.from.recv().map_err(|_| cut())?;
            (self.at, self.is_over) = (0, self.piece.is_empty());
        }
        let count = self.piece.get(self.at..).unwrap_or_default().read(to)?;
        self.at += count;
        Ok(count)
    }
}

fn asking(asked: &Receiver<Wanted>, next: &Sender<SyncSender<Vec<u8>>>, mut output: File) -> io::Result<()> {
    for Wanted { number, to } in asked {
        // One that has ended is heard of by the other thread.
        if next.send(to).is_err() {
            break;
        }
        output.write_all(format!("{number}\n").as_bytes())?;
    }
    Ok(())
}

fn handing(order: &Receiver<SyncSender<Vec<u8>>>, input: &mut Input) -> io::Result<()> {
    for to in order {
        loop {
            let piece = input.piece()?;
            let is_last = piece.is_empty();
            // Who does not want the rest is no reason not to read it.
            drop(to.send(piece));
            if is_last {
                break;
            }
        }
    }
    Ok(())
}
