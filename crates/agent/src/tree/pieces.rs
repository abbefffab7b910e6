//! Lines and pieces, as they come and go on one line.

use std::io::{BufRead, Read, Write};

use corpus_protocol::{KEPT, MAX_PIECE, MAX_TREE_LINE, TreeLine};

use crate::failure::{At, Failure};

/// The longest line that asks for a content, in bytes.
pub const MAX_NUMBER: usize = 32;

/// What the line is called where it fails.
const LINE: &str = "the controller's line";

/// The input ended before what it tells of did.
fn cut() -> Failure {
    Failure::Invalid("the line was cut before all files had come".into())
}

/// Reads a line without its end; none where the input ended before it.
pub fn line(input: &mut impl BufRead, into: &mut Vec<u8>, limit: usize) -> Result<bool, Failure> {
    into.clear();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    input.take(most).read_until(b'\n', into).at("read", LINE)?;
    match into.pop() {
        None => Ok(false),
        Some(b'\n') => Ok(true),
        Some(_) if into.len() >= limit => Err(Failure::Invalid(format!("a line is longer than {limit} bytes"))),
        Some(_) => Err(cut()),
    }
}

/// Reads a line of a tree.
pub fn tree_line(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> Result<TreeLine, Failure> {
    if !line(input, buffer, MAX_TREE_LINE)? {
        return Err(cut());
    }
    serde_json::from_slice(buffer).map_err(|error| Failure::Invalid(format!("a line tells of no file: {error}")))
}

/// How a content begins.
pub enum First {
    /// There is none: what is there is right.
    Kept,
    /// With a piece that was read, or without any.
    Piece(bool),
}

/// Reads how a content begins, and its first piece.
pub fn first(input: &mut impl Read, piece: &mut Vec<u8>) -> Result<First, Failure> {
    match length(input)? {
        KEPT => Ok(First::Kept),
        length => take_long(input, piece, length).map(First::Piece),
    }
}

/// Reads the next piece of a content; tells whether there was one.
pub fn take(input: &mut impl Read, piece: &mut Vec<u8>) -> Result<bool, Failure> {
    let length = length(input)?;
    take_long(input, piece, length)
}

fn length(input: &mut impl Read) -> Result<u32, Failure> {
    let mut length = [0; 4];
    whole(input, &mut length)?;
    Ok(u32::from_be_bytes(length))
}

fn take_long(input: &mut impl Read, piece: &mut Vec<u8>, length: u32) -> Result<bool, Failure> {
    if length > MAX_PIECE {
        return Err(Failure::Invalid(format!("a piece has {length} bytes, more than {MAX_PIECE}")));
    }
    piece.resize(usize::try_from(length).unwrap_or_default(), 0);
    whole(input, piece)?;
    Ok(length > 0)
}

fn whole(input: &mut impl Read, into: &mut [u8]) -> Result<(), Failure> {
    match input.read_exact(into) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(cut()),
        other => other.at("read", LINE),
    }
}

/// Writes a line of a tree; the last one is on its way when this is done.
pub fn say(output: &mut impl Write, line: &TreeLine) -> Result<(), Failure> {
    let mut text = serde_json::to_vec(line).map_err(std::io::Error::from).at("write", LINE)?;
    text.push(b'\n');
    put_all(output, &text)?;
    if matches!(line, TreeLine::Entry(_)) { Ok(()) } else { flush(output) }
}

/// Writes a piece; an empty one ends a content.
pub fn put(output: &mut impl Write, piece: &[u8]) -> Result<(), Failure> {
    let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
    put_all(output, &length.to_be_bytes())?;
    put_all(output, piece)
}

/// Writes bytes.
pub fn put_all(output: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    output.write_all(bytes).at("write", LINE)
}

/// What was written is on its way.
pub fn flush(output: &mut impl Write) -> Result<(), Failure> {
    output.flush().at("write", LINE)
}
