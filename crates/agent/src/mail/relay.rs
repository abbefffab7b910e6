//! The operator's relay, as it is spoken to for one message of a guest.
//!
//! What it answers is what the guest is told, cut to what an answer may be, and without where the relay is.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::Times;
use super::wire::{Line, Wire};

/// Lines of one answer, and characters of a line, that are read or passed on.
const MAX_LINES: usize = 50;
const TOLD_LINES: usize = 10;
const MAX_TEXT: usize = 400;

/// What the relay said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    code: u16,
    lines: Vec<String>,
}

impl Answer {
    /// Whether it did what was asked.
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Whether it waits for the message.
    pub fn is_waiting(&self) -> bool {
        self.code == 354
    }

    /// The same, as the guest is told it.
    pub fn text(&self) -> String {
        // That the relay ends its connection does not end ours.
        let code = if self.code == 421 { 451 } else { self.code };
        let lines = self.lines.get(..TOLD_LINES).unwrap_or(&self.lines);
        let last = lines.len().saturating_sub(1);
        let line = |(at, line): (usize, &String)| format!("{code}{}{line}\r\n", if at == last { ' ' } else { '-' });
        lines.iter().enumerate().map(line).collect()
    }
}

/// A connection to the relay.
#[derive(Debug)]
pub struct Relay {
    wire: Wire,
    address: String,
    limit: Duration,
    takes_size: bool,
    takes_eight_bit: bool,
}

impl Relay {
    /// Greets the relay as `name`; fails unless it takes mail.
    pub fn open(at: SocketAddr, name: &str, times: &Times) -> io::Result<Self> {
        let wire = Wire::new(TcpStream::connect_timeout(&at, times.connect)?);
        let address = at.ip().to_string();
        let mut relay = Self { wire, address, limit: times.relay, takes_size: false, takes_eight_bit: false };
        relay.answer(times.relay).and_then(good)?;
        let extended = relay.ask(&format!("EHLO {name}"))?;
        if extended.is_good() {
            let offers = |word: &str| extended.lines.iter().skip(1).any(|line| first(line) == word);
            (relay.takes_size, relay.takes_eight_bit) = (offers("SIZE"), offers("8BITMIME"));
        } else {
            relay.ask(&format!("HELO {name}")).and_then(good)?;
        }
        Ok(relay)
    }

    /// Begins a message.
    pub fn mail(&mut self, from: &str, size: Option<u64>, eight_bit: bool) -> io::Result<Answer> {
        let size = size.filter(|_| self.takes_size).map_or_else(String::new, |size| format!(" SIZE={size}"));
        let body = if eight_bit && self.takes_eight_bit { " BODY=8BITMIME" } else { "" };
        self.ask(&format!("MAIL FROM:<{from}>{size}{body}")).and_then(decided)
    }

    /// Names one of those it is for.
    pub fn recipient(&mut self, to: &str) -> io::Result<Answer> {
        self.ask(&format!("RCPT TO:<{to}>")).and_then(decided)
    }

    /// Asks whether the message may come.
    pub fn data(&mut self) -> io::Result<Answer> {
        let answer = self.ask("DATA")?;
        if answer.is_waiting() || answer.code >= 400 { Ok(answer) } else { Err(ErrorKind::InvalidData.into()) }
    }

    /// Sends a part of the message.
    pub fn send(&mut self, part: &[u8]) -> io::Result<()> {
        self.wire.send(part, self.limit)
    }

    /// What it says to the whole.
    pub fn end(&mut self, limit: Duration) -> io::Result<Answer> {
        self.answer(limit).and_then(decided)
    }

    /// Takes leave, and waits for no answer.
    pub fn quit(mut self) {
        let _ = self.send(b"QUIT\r\n");
    }

    fn ask(&mut self, command: &str) -> io::Result<Answer> {
        self.send(format!("{command}\r\n").as_bytes())?;
        self.answer(self.limit)
    }

    fn answer(&mut self, limit: Duration) -> io::Result<Answer> {
        let (end, mut lines, mut first) = (Instant::now() + limit, Vec::new(), None);
        loop {
            let Line::Whole(line) = self.wire.line(end)? else { return Err(ErrorKind::InvalidData.into()) };
            let (code, goes_on, text) = parts(&line).ok_or(ErrorKind::InvalidData)?;
            if *first.get_or_insert(code) != code || lines.len() == MAX_LINES {
                return Err(ErrorKind::InvalidData.into());
            }
            lines.push(text.replace(&self.address, "the relay"));
            if !goes_on {
                return Ok(Answer { code, lines });
            }
        }
    }
}

/// `250-text`, `250 text` or `250`.
fn parts(line: &[u8]) -> Option<(u16, bool, String)> {
    let (code, rest) = line.split_at_checked(3)?;
    let code: u16 =
        std::str::from_utf8(code).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    let goes_on = match rest.first() {
        None | Some(b' ') => false,
        Some(b'-') => true,
        Some(_) => return None,
    };
    let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '?' };
    let text = rest.iter().skip(1).take(MAX_TEXT).map(shown).collect();
    (200..600).contains(&code).then_some((code, goes_on, text))
}

fn first(line: &str) -> String {
    line.split(' ').next().unwrap_or_default().to_ascii_uppercase()
}

fn good(answer: Answer) -> io::Result<Answer> {
    if answer.is_good() { Ok(answer) } else { Err(ErrorKind::ConnectionRefused.into()) }
}

/// Yes or no: anything else means that it speaks of something else.
fn decided(answer: Answer) -> io::Result<Answer> {
    if (300..400).contains(&answer.code) { Err(ErrorKind::InvalidData.into()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_cut_to_what_they_may_be() {
        assert_eq!(parts(b"250 2.1.0 Ok"), Some((250, false, "2.1.0 Ok".into())));
        assert_eq!(parts(b"250-a\tb\x1b[0m\xe9"), Some((250, true, "a?b?[0m?".into())));
        assert_eq!(parts(b"250"), Some((250, false, String::new())));
        for bad in ["", "25", "2x0 a", "+50 a", "999 a", "100 a", "250_a"] {
            assert_eq!(parts(bad.as_bytes()), None, "{bad:?}");
        }
        let answer = Answer { code: 421, lines: vec!["a".into(), "b".into()] };
        assert_eq!(answer.text(), "451-a\r\n451 b\r\n");
        let long = Answer { code: 550, lines: vec!["x".into(); 50] };
        assert_eq!(long.text().lines().count(), TOLD_LINES);
        assert!(long.text().ends_with("550 x\r\n"));
    }
}
