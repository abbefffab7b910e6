//! The line to an agent: standard input and output without what the standard library keeps of them.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;

use corpus_protocol::{BROKEN, MAX_PIECE, TreeLine};

/// What the agent says.
pub struct Input(BufReader<File>);

impl Input {
    /// What comes on standard input.
    pub fn open() -> io::Result<Self> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self(BufReader::with_capacity(MAX_PIECE as usize, input)))
    }

    /// The next line, and what it says.
    pub fn line(&mut self) -> Result<(Vec<u8>, TreeLine), Box<dyn Error>> {
        let mut text = Vec::new();
        self.0.read_until(b'\n', &mut text)?;
        match serde_json::from_slice(&text)? {
            TreeLine::Failed(why) => Err(why.into()),
            line => Ok((text, line)),
        }
    }

    /// The next piece of a content; an empty one ends it.
    pub fn piece(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length == BROKEN || length > MAX_PIECE {
            return Err(io::Error::other("the agent could not read a file"));
        }
        let mut piece = vec![0; length as usize];
        self.0.read_exact(&mut piece)?;
        Ok(piece)
    }
}

/// What goes to the agent. It hears that there is no more when this and its duplicates are dropped.
pub fn output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}
