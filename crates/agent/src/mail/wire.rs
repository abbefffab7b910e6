//! A connection of which nothing is waited for without end, and of which no more than a line is kept.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// The longest line of a dialogue, its end included (RFC 5321, 4.5.3.1.6).
const MAX_LINE: usize = 1000;
const PART: usize = 16 << 10;

/// A line, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// One that ended with CR and LF, and has neither in it.
    Whole(Vec<u8>),
    /// One that did not.
    Malformed,
    /// One that is longer than may be; its rest is still to come.
    TooLong,
}

/// A connection.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Wire {
    /// On this connection.
    pub fn new(stream: TcpStream) -> Self {
        // Answers are short, and waited for.
        let _ = stream.set_nodelay(true);
        Self { stream, unread: Vec::new() }
    }

    /// The next line, by then at last.
    pub fn line(&mut self, end: Instant) -> io::Result<Line> {
        loop {
            if let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.unread.drain(..=at).collect();
                let is_short = line.len() <= MAX_LINE;
                line.pop();
                let is_whole = line.pop() == Some(b'\r') && !line.iter().any(|byte| matches!(byte, b'\r' | 0));
                return Ok(match (is_short, is_whole) {
                    (true, true) => Line::Whole(line),
                    (true, false) => Line::Malformed,
                    (false, _) => Line::TooLong,
                });
            }
            if self.unread.len() >= MAX_LINE {
                return Ok(Line::TooLong);
            }
            self.fill(end)?;
        }
    }

    /// What has come in, by then at last; never empty.
    pub fn part(&mut self, end: Instant) -> io::Result<&[u8]> {
        if self.unread.is_empty() {
            self.fill(end)?;
        }
        Ok(&self.unread)
    }

    /// So much of the part was used.
    pub fn consume(&mut self, used: usize) {
        self.unread.drain(..used.min(self.unread.len()));
    }

    /// Sends all of it.
    pub fn send(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        self.stream.set_write_timeout(Some(limit))?;
        self.stream.write_all(bytes)
    }

    /// Says that nothing more comes, and lets what was said arrive: a connection that is closed while there is something
    /// unread takes back what the other side has not read yet.
    pub fn close(mut self, limit: Duration) {
        let end = Instant::now() + limit;
        let _ = self.stream.shutdown(Shutdown::Write);
        while self.fill(end).is_ok() {
            self.unread.clear();
        }
    }

    fn fill(&mut self, end: Instant) -> io::Result<()> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut part = [0; PART];
        let length = self.stream.read(&mut part)?;
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend(part.iter().take(length));
        Ok(())
    }
}

/// Whether it was waited for long enough.
pub fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}
