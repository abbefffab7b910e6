//! Reads what a program says.
//!
//! Of the output the first [`HEAD`] bytes are told as they come and the last [`TAIL`] of each
//! stream at the end; what is between is read away at once and counted. Where lines are short
//! there are fewer bytes of them: the journal keeps so many lines, and the last ones matter most.
//! Secrets are blacked out
//! before a long line is told in parts, so that none is cut in two and missed.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;

use corpus_protocol::Stream;

use crate::project::redact::Redactor;

/// What is told of the output as it comes, in bytes.
pub const HEAD: usize = 1 << 20;
/// What is told of the end of a longer output, in bytes.
pub const TAIL: usize = 256 << 10;
/// What a line counts beside its bytes.
pub const EACH_LINE: usize = 64;
/// Lines of the end of a longer output.
const TAIL_LINES: usize = 4_000;
/// A longer line is told in parts.
const PART: usize = 4096;
const CHUNK: usize = 64 << 10;

/// What is heard of a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Happening {
    /// A line, or a part of a long one.
    Line(Stream, String),
    /// So many bytes are left out.
    Gap(usize),
    /// A pipe came to its end.
    Closed,
    /// The program ended.
    Exited,
}

/// Reads a pipe to its end.
pub fn pump(
    mut pipe: impl Read + Send + 'static,
    stream: Stream,
    room: &Arc<AtomicUsize>,
    redactor: &Redactor,
    tell: &SyncSender<Happening>,
) {
    let (room, redactor, tell) = (Arc::clone(room), redactor.clone(), tell.clone());
    thread::spawn(move || {
        let mut lines = Lines { stream, redactor, held: Vec::new(), left_out: 0, full: false };
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = pipe.read(&mut chunk) {
            let bytes = chunk.get(..read).unwrap_or_default();
            let cost = read + EACH_LINE * (bytes.split(|byte| *byte == b'\n').count() - 1);
            let fits = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(cost)).is_ok();
            if !lines.take(bytes, fits && !lines.full, &tell) {
                return;
            }
        }
        lines.end(&tell);
        let _ = tell.send(Happening::Closed);
    });
}

/// What was read and not told yet.
struct Lines {
    stream: Stream,
    redactor: Redactor,
    held: Vec<u8>,
    left_out: usize,
    full: bool,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], tells: bool, tell: &SyncSender<Happening>) -> bool {
        self.held.extend_from_slice(bytes);
        if tells {
            return self.tell_lines(tell);
        }
        self.full = true;
        if self.held.len() > 2 * TAIL {
            let over = self.held.len() - TAIL;
            self.held.drain(..over);
            self.left_out += over;
        }
        true
    }

    /// Tells the whole lines that are held; false when nobody listens.
    fn tell_lines(&mut self, tell: &SyncSender<Happening>) -> bool {
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_slice();
        let mut listens = true;
        while listens {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let (line, after) = rest.split_at(end);
                listens = say(self.stream, line, tell);
                rest = after.get(1..).unwrap_or_default();
            } else if rest.len() > 4 * PART + self.redactor.reach() {
                let text = self.redactor.text(&String::from_utf8_lossy(rest));
                // Only at the end there may be half of a secret.
                let cut = text.floor_char_boundary(text.len().saturating_sub(self.redactor.reach()));
                let (part, after) = text.split_at(cut);
                self.held = after.as_bytes().to_vec();
                return say(self.stream, part.as_bytes(), tell);
            } else {
                break;
            }
        }
        self.held = rest.to_vec();
        listens
    }

    /// How much of what is held is told no more when it is the end of a longer output.
    fn before_the_end(&self) -> usize {
        let ends = self.held.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        let lines = ends.map(|(at, _)| at + 1).nth(TAIL_LINES).unwrap_or_default();
        lines.max(self.held.len().saturating_sub(TAIL))
    }

    fn end(mut self, tell: &SyncSender<Happening>) {
        if self.full {
            let over = self.before_the_end();
            self.held.drain(..over);
            self.left_out += over;
        }
        if self.left_out > 0 {
            // The first line is half of one, and may begin with half of a secret.
            let torn = self.held.iter().position(|byte| *byte == b'\n').map_or(self.redactor.reach(), |end| end + 1);
            self.held.drain(..torn.min(self.held.len()));
            let _ = tell.send(Happening::Gap(self.left_out + torn));
        }
        self.tell_lines(tell);
        if !self.held.is_empty() {
            say(self.stream, &self.held, tell);
        }
    }
}

fn say(stream: Stream, line: &[u8], tell: &SyncSender<Happening>) -> bool {
    let text = String::from_utf8_lossy(line).trim_end_matches('\r').to_owned();
    tell.send(Happening::Line(stream, text)).is_ok()
}
