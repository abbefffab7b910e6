//! pkt-lines, git's framing: four hexadecimal digits of length, the digits included, then the
//! payload; `0000` ends a section. See `gitprotocol-common(5)`.

use std::io::{self, ErrorKind, Read, Write};

/// The longest payload that git sends or takes.
const MAX_PAYLOAD: usize = 65_516;
/// How many lines a section may have: a push of more references than that is refused.
const MAX_LINES: usize = 10_000;

/// Reads a section to its end; nothing when the stream ended before it began.
pub fn read_section(from: &mut impl Read) -> io::Result<Option<Vec<Vec<u8>>>> {
    let mut first = [0];
    if from.read(&mut first)? == 0 {
        return Ok(None);
    }
    let mut from = first.as_slice().chain(from);
    let mut lines = Vec::new();
    while let Some(line) = read(&mut from)? {
        if lines.len() == MAX_LINES {
            return Err(invalid("more than 10,000 lines in a section"));
        }
        lines.push(line);
    }
    Ok(Some(lines))
}

/// Reads a line without its newline; nothing for the end of a section.
fn read(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = std::str::from_utf8(&length).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
    let length = length.ok_or_else(|| invalid("a line whose length is no number"))?;
    if length == 0 {
        return Ok(None);
    }
    let length = length.checked_sub(4).filter(|length| *length <= MAX_PAYLOAD);
    let mut line = vec![0; length.ok_or_else(|| invalid("a line of impossible length"))?];
    from.read_exact(&mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(Some(line))
}

/// Writes a line; what is too long for one is cut.
pub fn write(to: &mut impl Write, line: &[u8]) -> io::Result<()> {
    let line = line.get(..MAX_PAYLOAD).unwrap_or(line);
    write!(to, "{:04x}", line.len() + 4)?;
    to.write_all(line)
}

/// Ends a section.
pub fn end(to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"0000")?;
    to.flush()
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn as_git_writes_them() {
        let mut from = b"0006a\n0005b00000009more\n0000".as_slice();
        assert_eq!(read_section(&mut from).unwrap(), Some(vec![b"a".to_vec(), b"b".to_vec()]));
        assert_eq!(read_section(&mut from).unwrap(), Some(vec![b"more".to_vec()]));
        assert_eq!(read_section(&mut from).unwrap(), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["zz", "zzzz", "0003", "0009ab", "0005a0006", "ffffa"] {
            assert!(read_section(&mut text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(lines in prop::collection::vec("[^\n]{0,40}", 0..5)) {
            let mut text = Vec::new();
            for line in &lines {
                write(&mut text, line.as_bytes()).unwrap();
            }
            end(&mut text).unwrap();
            let read = read_section(&mut text.as_slice()).unwrap().unwrap();
            prop_assert_eq!(read, lines.into_iter().map(String::into_bytes).collect::<Vec<_>>());
        }

        #[test]
        fn no_bytes_crash_it(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read_section(&mut bytes.as_slice());
        }
    }
}
