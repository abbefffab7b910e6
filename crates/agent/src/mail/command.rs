//! What a guest says, as far as it is understood. Everything that is passed on to the relay is made anew from it.

/// The longest address, its brackets aside (RFC 5321, 4.5.3.1.3).
const MAX_PATH: usize = 254;
const MAX_NAME: usize = 255;

const NO_PATH: &str = "501 5.1.7 That is no address: it stands in angle brackets, in plain ASCII and without spaces";
const NO_PARAMETER: &str = "555 5.5.4 SIZE and BODY are understood, and nothing else";

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// EHLO, or HELO.
    Hello {
        /// What the guest calls itself.
        name: String,
        /// Whether it was EHLO.
        extended: bool,
    },
    /// MAIL FROM.
    Mail {
        /// The sender; empty for what must not be answered.
        from: String,
        /// The size of the message, if it was told.
        size: Option<u64>,
        /// Whether it has bytes beyond ASCII.
        eight_bit: bool,
    },
    /// RCPT TO.
    Recipient(String),
    /// DATA.
    Data,
    /// RSET.
    Reset,
    /// NOOP.
    Noop,
    /// VRFY: nobody is told who there is.
    Verify,
    /// QUIT.
    Quit,
}

/// Reads a line without its end, or tells the answer to it.
pub fn parse(line: &[u8]) -> Result<Command, &'static str> {
    let line = std::str::from_utf8(line).ok().filter(|text| text.is_ascii());
    let line = line.ok_or("500 5.5.2 Commands are plain ASCII")?;
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let alone = |command: Command| {
        if rest.trim().is_empty() { Ok(command) } else { Err("501 5.5.4 That command takes no words") }
    };
    match verb.to_ascii_uppercase().as_str() {
        "EHLO" => hello(rest, true),
        "HELO" => hello(rest, false),
        "MAIL" => mail(rest),
        "RCPT" => recipient(rest),
        "DATA" => alone(Command::Data),
        "RSET" => alone(Command::Reset),
        "QUIT" => alone(Command::Quit),
        "NOOP" => Ok(Command::Noop),
        "VRFY" => Ok(Command::Verify),
        "AUTH" | "STARTTLS" | "EXPN" | "HELP" | "TURN" | "ETRN" | "BDAT" => Err("502 5.5.1 That is not offered"),
        _ => Err("500 5.5.2 That is no command"),
    }
}

/// The name becomes part of a line of the message: letters, digits and what addresses are written with.
fn hello(name: &str, extended: bool) -> Result<Command, &'static str> {
    let name = name.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(Command::Hello { name: name.to_owned(), extended });
    }
    Err("501 5.5.4 Say your name: EHLO NAME")
}

fn mail(rest: &str) -> Result<Command, &'static str> {
    let (from, parameters) = path(rest, "FROM:")?;
    let (mut size, mut eight_bit) = (None, false);
    for parameter in parameters {
        let (name, value) = parameter.split_once('=').ok_or(NO_PARAMETER)?;
        match (name.to_ascii_uppercase().as_str(), value.to_ascii_uppercase().as_str()) {
            ("SIZE", digits) if digits.bytes().all(|b| b.is_ascii_digit()) && digits.len() <= 20 => {
                // More than a number can hold is more than anybody takes.
                size = Some(digits.parse().unwrap_or(u64::MAX));
            }
            ("BODY", "8BITMIME") => eight_bit = true,
            ("BODY", "7BIT") => {}
            _ => return Err(NO_PARAMETER),
        }
    }
    Ok(Command::Mail { from, size, eight_bit })
}

fn recipient(rest: &str) -> Result<Command, &'static str> {
    let (to, mut parameters) = path(rest, "TO:")?;
    if parameters.next().is_some() {
        return Err("555 5.5.4 A recipient has no parameters here");
    }
    if to.is_empty() { Err("501 5.1.3 A recipient has an address") } else { Ok(Command::Recipient(to)) }
}

/// The address behind a word, and what follows it.
fn path<'a>(rest: &'a str, word: &str) -> Result<(String, impl Iterator<Item = &'a str>), &'static str> {
    let (given, rest) = rest.split_at_checked(word.len()).ok_or(NO_PATH)?;
    let inner = rest.trim_start().strip_prefix('<').filter(|_| given.eq_ignore_ascii_case(word));
    let (path, parameters) = inner.and_then(|inner| inner.split_once('>')).ok_or(NO_PATH)?;
    let is_apart = parameters.is_empty() || parameters.starts_with(' ');
    // A route (`@here:user@there`) is nothing that anybody sends any more.
    if !is_apart || path.len() > MAX_PATH || path.starts_with('@') || !path.bytes().all(is_plain) {
        return Err(NO_PATH);
    }
    Ok((path.to_owned(), parameters.split_ascii_whitespace()))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"<>\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_understood() {
        let from = |from: &str, size, eight_bit| Command::Mail { from: from.into(), size, eight_bit };
        for (line, command) in [
            ("EHLO web.example.org", Command::Hello { name: "web.example.org".into(), extended: true }),
            ("helo [10.5.0.10]", Command::Hello { name: "[10.5.0.10]".into(), extended: false }),
            ("MAIL FROM:<>", from("", None, false)),
            ("mail from: <a@b.example> SIZE=12 BODY=8bitmime", from("a@b.example", Some(12), true)),
            ("MAIL FROM:<a@b.example> SIZE=99999999999999999999", from("a@b.example", Some(u64::MAX), false)),
            ("RCPT TO:<\"a+b\"@c.example>", Command::Recipient("\"a+b\"@c.example".into())),
            ("NOOP x", Command::Noop),
            ("DATA ", Command::Data),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(command), "{line}");
        }
    }

    #[test]
    fn what_is_not() {
        for (line, code) in [
            ("EHLO", "501"),
            ("EHLO a b", "501"),
            ("EHLO (x)", "501"),
            ("MAIL FROM:a@b.example", "501"),
            ("MAIL FROM:<a b@c.example>", "501"),
            ("MAIL FROM:<a@b.example>SIZE=1", "501"),
            ("MAIL FROM:<a@b.example> AUTH=<>", "555"),
            ("MAIL FROM:<a@b.example> SMTPUTF8", "555"),
            ("MAIL TO:<a@b.example>", "501"),
            ("RCPT TO:<>", "501"),
            ("RCPT TO:<@x.example:a@b.example>", "501"),
            ("RCPT TO:<a@b.example> NOTIFY=NEVER", "555"),
            ("DATA now", "501"),
            ("AUTH PLAIN AGEAYg==", "502"),
            ("STARTTLS", "502"),
            ("BDAT 5 LAST", "502"),
            ("GET / HTTP/1.1", "500"),
            ("EHLO \u{e9}", "500"),
        ] {
            assert!(parse(line.as_bytes()).is_err_and(|answer| answer.starts_with(code)), "{line}");
        }
        assert!(parse(format!("RCPT TO:<{}@b.example>", "a".repeat(250)).as_bytes()).is_err());
        assert!(parse(b"EHLO \xff").is_err());
    }

    proptest! {
        #[test]
        fn nothing_is_passed_on_that_is_more_than_a_word(line in "(?i)(EHLO |MAIL FROM:<|RCPT TO:<).{0,40}>?.{0,9}") {
            let word = match parse(line.as_bytes()) {
                Ok(Command::Hello { name: word, .. } | Command::Mail { from: word, .. } | Command::Recipient(word)) => word,
                _ => String::new(),
            };
            prop_assert!(word.bytes().all(|b| b.is_ascii_graphic() && b != b'<' && b != b'>'));
        }
    }
}
