//! Text of guests, nodes and their programs as it may be shown.
//!
//! Who writes what others read could write to their terminal: an escape sequence sets its title or
//! the clipboard, moves the cursor over a line that was there, a mark of direction turns a line
//! around on a page or in a letter. Here such sequences are taken out whole, and what is left of
//! control and direction characters is shown as `\u{fffd}`, so that it is seen that there was one.

use std::borrow::Cow;

/// A control sequence is no longer, in characters; what follows is text.
const LONGEST_CONTROL: u16 = 64;
/// A string for the terminal (a title, the clipboard) is no longer; what follows is text.
const LONGEST_STRING: u16 = 8_192;
const SHOWN: char = char::REPLACEMENT_CHARACTER;

/// Whether the character does something else to a line than stand in it.
pub fn is_harmful(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => c.is_control(),
    }
}

/// The text, of any number of lines, without what does something else than stand in it.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut filter = Plain::lines();
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| filter.take(c, &mut shown));
    filter.end(&mut shown);
    Cow::Owned(shown)
}

/// The same as one line of at most so many characters: a longer one is cut, and ends with `…`.
pub fn plain_line(text: &str, longest: usize) -> String {
    let line = plain(text);
    let mut cut: String = line.chars().take(longest).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if line.chars().nth(longest).is_some() {
        cut.pop();
        cut.push('…');
    }
    cut
}

/// What is not text but is shown too, such as the names of branches: as long as before, so that what
/// tells its length stays true. A character that is harmful is `_`, once for each of its bytes.
pub fn plain_bytes(bytes: &mut [u8]) {
    let mut at = 0;
    let mut harmful = Vec::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let end = at + c.len_utf8();
            // What stands between a name and what is told of it.
            if is_harmful(c) && c != '\0' {
                harmful.push(at..end);
            }
            at = end;
        }
        for byte in chunk.invalid() {
            // In a terminal of 8 bits these are control characters.
            if (0x80..=0x9f).contains(byte) {
                harmful.push(at..at + 1);
            }
            at += 1;
        }
    }
    for range in harmful {
        bytes.get_mut(range).unwrap_or_default().fill(b'_');
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    Escape,
    Control(u16),
    String(u16),
    StringEscape,
}

/// The same for text that comes in parts, cut anywhere.
#[derive(Debug)]
pub struct Plain {
    state: State,
    keeps_returns: bool,
    returned: bool,
    held: Vec<u8>,
}

impl Plain {
    /// For lines: a carriage return counts before a newline only.
    pub fn lines() -> Self {
        Self { state: State::Text, keeps_returns: false, returned: false, held: Vec::new() }
    }

    /// For lines that may write over themselves, for who shows them so that they write over nothing else.
    pub fn progress() -> Self {
        Self { keeps_returns: true, ..Self::lines() }
    }

    /// What may be shown of the next part. At most 3 bytes wait for the next one.
    pub fn part(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut shown = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|c| self.take(c, &mut shown));
            let torn = chunk.invalid();
            if chunks.peek().is_none() && std::str::from_utf8(torn).is_err_and(|error| error.error_len().is_none()) {
                self.held = torn.to_vec();
            } else if !torn.is_empty() {
                self.take(SHOWN, &mut shown);
            }
        }
        shown
    }

    fn end(&mut self, shown: &mut String) {
        if std::mem::take(&mut self.returned) {
            shown.push(' ');
        }
    }

    fn take(&mut self, c: char, shown: &mut String) {
        self.state = match (self.state, c) {
            (State::Escape, '[') => State::Control(0),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::String(0),
            (State::Escape, ' '..='/') => State::Escape,
            (State::Control(length), ' '..='?') if length < LONGEST_CONTROL => State::Control(length + 1),
            (State::Escape, '0'..='~')
            | (State::Control(_), '@'..='~')
            | (State::String(_), '\u{7}' | '\u{9c}')
            | (State::StringEscape, '\\') => State::Text,
            (State::String(_), '\u{1b}') => State::StringEscape,
            (State::String(length), _) if c != '\n' && length < LONGEST_STRING => State::String(length + 1),
            // A sequence that is none.
            _ => self.text(c, shown),
        };
    }

    fn text(&mut self, c: char, shown: &mut String) -> State {
        let returned = std::mem::take(&mut self.returned);
        if returned && c != '\n' {
            shown.push(' ');
        }
        match c {
            '\u{1b}' => return State::Escape,
            '\u{9b}' => return State::Control(0),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return State::String(0),
            '\r' if self.keeps_returns => shown.push(c),
            '\r' => self.returned = true,
            c if is_harmful(c) => shown.push(SHOWN),
            c => shown.push(c),
        }
        State::Text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_acts_is_taken_out_and_what_is_read_stays() {
        for (given, shown) in [
            ("plain\ttext\nof two lines", "plain\ttext\nof two lines"),
            ("\u{1b}[1;32mgreen\u{1b}[0m", "green"),
            ("\u{1b}]52;c;cm0gLXJmIC8=\u{7}copied", "copied"),
            ("\u{1b}]0;a title\u{1b}\\titled", "titled"),
            ("\u{1b}Pq#0\u{1b}\\drawn", "drawn"),
            ("\u{9d}52;c;eA==\u{9c}of eight bits", "of eight bits"),
            ("\u{9b}2Jcleared", "cleared"),
            ("\u{1b}(Bset", "set"),
            ("\u{1b}creset", "reset"),
            ("\u{1b}]52;c;no end\nnext", "\nnext"),
            ("\u{1b}[31", ""),
            ("all is well\rit is not", "all is well it is not"),
            ("a\r\nb", "a\nb"),
            ("back\u{8}\u{8}space\0", "back\u{fffd}\u{fffd}space\u{fffd}"),
            ("\u{202e}turned\u{2066}", "\u{fffd}turned\u{fffd}"),
            ("ü, 日本, 👩‍💻", "ü, 日本, 👩‍💻"),
        ] {
            assert_eq!(plain(given), shown, "{given:?}");
        }
        assert_eq!(plain(&format!("\u{1b}]{}", "x".repeat(10_000))).len(), 10_000 - usize::from(LONGEST_STRING));
        assert_eq!(plain_line("one\ntwo", 100), "one two");
        assert_eq!(plain_line("abcdef", 4), "abc…");
    }

    #[test]
    fn what_is_no_text_keeps_its_length() {
        let mut name = "refs/heads/a\u{202e}b\u{1b}[2J\u{9b}\0report-status\n".as_bytes().to_vec();
        name.extend([0x9b, 0xe9]);
        let before = name.len();
        plain_bytes(&mut name);
        assert_eq!(name, b"refs/heads/a___b_[2J__\0report-status\n_\xe9");
        assert_eq!(name.len(), before);
    }

    #[test]
    fn progress_writes_over_itself_only() {
        let mut filter = Plain::progress();
        assert_eq!(filter.part(b"10%\r20%\r\x1b[Adone\n"), "10%\r20%\rdone\n");
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left_however_it_is_cut(
            bytes in prop::collection::vec(prop_oneof![
                any::<u8>(), Just(0x1b), Just(b'['), Just(b']'), Just(b'\r'), Just(b'\n'), Just(0x07), Just(0xe2), Just(0x80), Just(0xae), Just(0xc2),
            ], 0..60),
            cuts in prop::collection::vec(1_usize..7, 60),
        ) {
            let whole = Plain::lines().part(&bytes);
            prop_assert!(!whole.contains(is_harmful), "{whole:?}");
            let (mut filter, mut parts, mut rest) = (Plain::lines(), String::new(), bytes.as_slice());
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                parts += &filter.part(head);
                rest = tail;
            }
            parts += &filter.part(rest);
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn no_length_changes_and_nothing_harmful_is_left(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut after = bytes.clone();
            plain_bytes(&mut after);
            prop_assert_eq!(after.len(), bytes.len());
            prop_assert!(!after.iter().any(|b| matches!(b, 1..=8 | 11..=31 | 127)), "{after:?}");
        }
    }
}
