//! Where a message ends, and whether it is one that every mail server reads alike.
//!
//! Two servers that take different line ends for a line's end see different messages in the same bytes: what is text to
//! one is a command to the other. So a message whose lines do not all end with CR and LF is refused as a whole, and
//! what is passed on is passed on byte by byte: the relay sees its end exactly where it was seen here.

/// The longest line of a message, its CR and LF included (RFC 5321, 4.5.3.1.6).
const MAX_LINE: usize = 1000;

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A CR or an LF alone.
    BareNewline,
    /// A line longer than [`MAX_LINE`].
    LongLine,
    /// It is larger than may be.
    TooLarge,
}

impl Fault {
    /// The answer to who sent it.
    pub fn answer(self) -> &'static str {
        match self {
            Self::BareNewline => "554 5.6.0 The message was not taken: its lines must end with CR and LF",
            Self::LongLine => "554 5.6.0 The message was not taken: a line is longer than 1000 bytes",
            Self::TooLarge => "552 5.3.4 The message was not taken: it is too large",
        }
    }
}

/// Where in a line the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    /// After a dot at the start.
    Dot,
    /// After that and a CR.
    DotReturn,
    Text,
    Return,
}

/// How much of a part was the message's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// The bytes that belong to it, its end included.
    pub used: usize,
    /// Whether it has ended.
    pub ended: bool,
}

/// A message while it comes in, as it is sent: with a second dot before lines that begin with one.
#[derive(Debug)]
pub struct Body {
    at: At,
    line: usize,
    /// What has come in, in bytes.
    pub bytes: u64,
    most: u64,
    /// What was found to be wrong first.
    pub fault: Option<Fault>,
}

impl Body {
    /// One of so many bytes at most.
    pub fn new(most: u64) -> Self {
        Self { at: At::Start, line: 0, bytes: 0, most, fault: None }
    }

    /// Reads on. A message that has a fault is read to its end all the same, which is where it would be without.
    pub fn feed(&mut self, part: &[u8]) -> Fed {
        let end = part.iter().position(|byte| self.step(*byte));
        let used = end.map_or(part.len(), |at| at + 1);
        self.bytes = self.bytes.saturating_add(used as u64);
        if self.bytes > self.most {
            self.found(Fault::TooLarge);
        }
        Fed { used, ended: end.is_some() }
    }

    /// Whether this byte ends it.
    fn step(&mut self, byte: u8) -> bool {
        self.line += 1;
        if self.line > MAX_LINE {
            self.found(Fault::LongLine);
        }
        let next = match (self.at, byte) {
            (At::DotReturn, b'\n') => return true,
            (At::Return, b'\n') => {
                self.line = 0;
                At::Start
            }
            (At::Return | At::DotReturn, b'\r') => {
                self.found(Fault::BareNewline);
                At::Return
            }
            (At::Return | At::DotReturn, _) | (_, b'\n') => {
                self.found(Fault::BareNewline);
                At::Text
            }
            (At::Dot, b'\r') => At::DotReturn,
            (_, b'\r') => At::Return,
            (At::Start, b'.') => {
                // It is there for transparency, and does not count.
                self.line = 0;
                At::Dot
            }
            _ => At::Text,
        };
        self.at = next;
        false
    }

    fn found(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(message: &[u8]) -> (Fed, Option<Fault>) {
        let mut body = Body::new(5_000);
        let fed = body.feed(message);
        (fed, body.fault)
    }

    #[test]
    fn a_message_ends_at_a_dot_on_a_line_of_its_own() {
        for (message, rest) in [
            ("Subject: x\r\n\r\nHello\r\n.\r\n", ""),
            (".\r\n", ""),
            ("a\r\n..\r\n..b\r\n.\r\n", ""),
            ("a\r\n.\r\nQUIT\r\n", "QUIT\r\n"),
        ] {
            let (fed, fault) = read(message.as_bytes());
            assert_eq!((&message[fed.used..], fed.ended, fault), (rest, true, None), "{message:?}");
        }
    }

    #[test]
    fn what_others_could_take_for_an_end_is_a_fault() {
        let smuggled = "MAIL FROM:<a@b.example>\r\n";
        for end in ["\n.\n", "\r\n.\n", "\n.\r\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r\n.\r\r\n", "\n.\r", "\n"] {
            let message = format!("Subject: x\r\n\r\nHello{end}{smuggled}more\r\n.\r\n");
            let (fed, fault) = read(message.as_bytes());
            assert_eq!((fed.used, fed.ended, fault), (message.len(), true, Some(Fault::BareNewline)), "{end:?}");
        }
    }

    #[test]
    fn lines_and_messages_have_a_longest() {
        let line = |length: usize| format!("{}\r\n.\r\n", "a".repeat(length));
        assert_eq!(read(line(998).as_bytes()).1, None);
        assert_eq!(read(line(999).as_bytes()).1, Some(Fault::LongLine));
        let long = "abc\r\n".repeat(1_001);
        assert_eq!(read(long.as_bytes()), (Fed { used: long.len(), ended: false }, Some(Fault::TooLarge)));
    }

    proptest! {
        #[test]
        fn where_parts_are_cut_changes_nothing(message in "[.\r\na]{0,40}", cut in 0_usize..40) {
            let whole = message.clone() + "\r\n.\r\n";
            let (fed, fault) = read(whole.as_bytes());
            let mut body = Body::new(5_000);
            let (first, second) = whole.split_at(cut.min(fed.used));
            let begun = body.feed(first.as_bytes());
            let used = if begun.ended { begun.used } else { begun.used + body.feed(second.as_bytes()).used };
            prop_assert_eq!((used, body.fault), (fed.used, fault));
        }

        #[test]
        fn what_is_taken_has_one_end_for_everybody(message in "[.\r\na]{0,40}") {
            let whole = message + "\r\n.\r\n";
            let (fed, fault) = read(whole.as_bytes());
            if fault.is_none() {
                let text = whole[..fed.used].replace("\r\n", "\n");
                prop_assert!(!text.contains('\r'), "a CR alone");
                let ends: Vec<usize> = format!("\n{text}").match_indices("\n.\n").map(|(at, _)| at).collect();
                prop_assert_eq!(ends, vec![text.len() - 2]);
            }
        }
    }
}
