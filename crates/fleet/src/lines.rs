//! Bytes from a channel into lines, and the last lines of what an agent complained.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use corpus_domain::plain_line;
use corpus_protocol::MAX_LINE;

/// Cuts a stream of bytes at its newlines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: BytesMut,
    searched: usize,
}

/// A line is longer than [`MAX_LINE`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineTooLong;

impl Lines {
    /// Adds what came.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete line, without its newline.
    pub(super) fn next_line(&mut self) -> Result<Option<Bytes>, LineTooLong> {
        let fresh = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return if self.searched > MAX_LINE { Err(LineTooLong) } else { Ok(None) };
        };
        let line = self.buffer.split_to(self.searched + at).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        if line.len() > MAX_LINE { Err(LineTooLong) } else { Ok(Some(line)) }
    }
}

/// The last 20 lines of a stream, each cut to 200 characters.
#[derive(Debug, Default)]
pub(super) struct Tail {
    lines: VecDeque<String>,
    rest: Vec<u8>,
}

impl Tail {
    /// Adds what came.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.keep();
            } else if self.rest.len() < 800 {
                self.rest.push(*byte);
            }
        }
    }

    fn keep(&mut self) {
        let line = excerpt(&self.rest);
        self.rest.clear();
        if self.lines.len() == 20 {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// What is kept, the oldest first.
    pub(super) fn take(&mut self) -> Vec<String> {
        if !self.rest.is_empty() {
            self.keep();
        }
        self.lines.drain(..).collect()
    }
}

/// Text from bytes of any kind: 200 characters at most, which can be shown.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(800)).unwrap_or_default());
    plain_line(text.trim_end(), 200)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; MAX_LINE]);
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"xx");
        assert_eq!(lines.next_line(), Err(LineTooLong));
    }

    #[test]
    fn the_tail_keeps_the_last_twenty() {
        let mut tail = Tail::default();
        for n in 0..50 {
            tail.push(format!("line {n}\n").as_bytes());
        }
        tail.push(b"no end");
        let kept = tail.take();
        assert_eq!((kept.len(), kept[0].as_str(), kept[19].as_str()), (20, "line 31", "no end"));
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_lines_are_the_same(text in "[a-c\n]{0,60}", cuts in prop::collection::vec(1_usize..7, 60)) {
            let mut lines = Lines::default();
            let (mut got, mut rest) = (Vec::new(), text.as_bytes());
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                lines.push(head);
                while let Some(line) = lines.next_line().unwrap() {
                    got.push(String::from_utf8(line.to_vec()).unwrap());
                }
                rest = tail;
            }
            let whole: Vec<_> = text[..text.len() - rest.len()].split_inclusive('\n').filter(|l| l.ends_with('\n')).map(|l| l.trim_end().to_owned()).collect();
            prop_assert_eq!(got, whole);
        }
    }
}
