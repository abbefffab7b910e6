//! The content of one file as it comes: the file that is there stays where it has the same, and long runs of zeros become
//! holes.
//!
//! A guest is mostly what its image is. What differs is only known when it comes, so the file that is there is compared
//! until then; a new one begins with what both have.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use corpus_protocol::MAX_PIECE;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use super::pieces;
use crate::failure::{At, Failure};

/// What is looked at for zeros at once.
const BLOCK: usize = 4 << 10;
/// Shorter runs of zeros are written.
const HOLE: usize = 64 << 10;
const ZEROS: &[u8] = &[0; HOLE];

/// Where the file is to be.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Its folder.
    pub folder: &'a OwnedFd,
    /// Its name there.
    pub name: &'a [u8],
}

impl Place<'_> {
    /// A new file there; nothing may be there.
    fn make(self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(self.folder, self.name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }
}

/// Takes a content; `same` is the regular file that is there, if it may stay, and `piece` has what came first, if any did.
pub fn take(
    place: Place<'_>,
    same: Option<File>,
    (input, piece): (&mut impl Read, &mut Vec<u8>),
    mut is_more: bool,
) -> Result<File, Failure> {
    let written = "a guest's file";
    let mut content = match same {
        Some(file) => Content::Same { file, at: 0 },
        None => Content::New(Sparse::new(place.make().at("make", written)?)),
    };
    while is_more {
        content = content.with(place, piece).at("write", written)?;
        is_more = pieces::take(input, piece)?;
    }
    content.end(place).at("write", written)
}

enum Content {
    Same { file: File, at: u64 },
    New(Sparse),
}

impl Content {
    fn with(self, place: Place<'_>, piece: &[u8]) -> io::Result<Self> {
        let mut new = match self {
            Self::Same { file, at } if has(&file, at, piece)? => {
                return Ok(Self::Same { file, at: at + piece.len() as u64 });
            }
            Self::Same { file, at } => differs(place, &file, at)?,
            Self::New(new) => new,
        };
        new.write(piece)?;
        Ok(Self::New(new))
    }

    fn end(self, place: Place<'_>) -> io::Result<File> {
        match self {
            Self::Same { file, at } if file.metadata()?.len() == at => Ok(file),
            Self::Same { file, at } => differs(place, &file, at)?.end(),
            Self::New(new) => new.end(),
        }
    }
}

/// Whether the file has this there.
fn has(file: &File, at: u64, piece: &[u8]) -> io::Result<bool> {
    let mut there = vec![0; piece.len()];
    match file.read_exact_at(&mut there, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| there == piece),
    }
}

/// A new file takes the place of one that has only so much of the content.
fn differs(place: Place<'_>, file: &File, same: u64) -> io::Result<Sparse> {
    unlinkat(place.folder, place.name, AtFlags::empty())?;
    let mut new = Sparse::new(place.make()?);
    let mut piece = vec![0; usize::try_from(MAX_PIECE).unwrap_or(BLOCK)];
    let mut at = 0;
    while at < same {
        let length = usize::try_from(same - at).unwrap_or(usize::MAX).min(piece.len());
        let part = piece.get_mut(..length).unwrap_or_default();
        file.read_exact_at(part, at)?;
        new.write(part)?;
        at += length as u64;
    }
    Ok(new)
}

/// A new file, written from its start.
struct Sparse {
    file: File,
    at: u64,
    /// How many zeros come next.
    zeros: u64,
}

impl Sparse {
    const fn new(file: File) -> Self {
        Self { file, at: 0, zeros: 0 }
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut rest = piece;
        while !rest.is_empty() {
            let (zeros, then) = split(rest, true);
            let (bytes, then) = split(then, false);
            self.zeros += zeros.len() as u64;
            if !bytes.is_empty() {
                self.put_zeros()?;
                self.file.write_all_at(bytes, self.at)?;
                self.at += bytes.len() as u64;
            }
            rest = then;
        }
        Ok(())
    }

    fn put_zeros(&mut self) -> io::Result<()> {
        if self.zeros < HOLE as u64 {
            let zeros = ZEROS.get(..usize::try_from(self.zeros).unwrap_or_default()).unwrap_or_default();
            self.file.write_all_at(zeros, self.at)?;
        }
        self.at += std::mem::take(&mut self.zeros);
        Ok(())
    }

    fn end(mut self) -> io::Result<File> {
        self.put_zeros()?;
        self.file.set_len(self.at)?;
        Ok(self.file)
    }
}

/// The first blocks, as far as they are zeros or none is, and the rest.
fn split(piece: &[u8], zeros: bool) -> (&[u8], &[u8]) {
    let is_zeros = |block: &[u8]| ZEROS.get(..block.len()) == Some(block);
    let blocks = piece.chunks(BLOCK).take_while(|block| is_zeros(block) == zeros).count();
    piece.split_at(blocks.saturating_mul(BLOCK).min(piece.len()))
}
