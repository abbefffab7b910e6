//! The conversation of `git receive-pack` with its `proc-receive` hook, version 1; see
//! `githooks(5)`. The hook is told which references a push wants changed and answers, for each,
//! whether it is done, refused, or git's to do.

use std::io::{self, ErrorKind, Read, Write};

use corpus_domain::CommitId;

use super::pkt;

/// A reference that a push wants changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it is, as the pusher knew it; none when it is to be made.
    pub old: Option<CommitId>,
    /// What it is to be; none when it is to be deleted.
    pub new: Option<CommitId>,
    /// Its full name: `refs/heads/main`.
    pub name: String,
}

/// What becomes of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Done,
    /// Git may do it.
    Git,
    /// It is refused, for this reason: one line, for people.
    Refused(String),
}

/// What a push asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Push {
    /// Its commands, in git's order.
    pub commands: Vec<Command>,
    /// Whether all or none of them are to be done.
    pub atomic: bool,
    /// What was said with it: `git push -o …`.
    pub options: Vec<String>,
}

const ATOMIC: &str = "atomic";
const PUSH_OPTIONS: &str = "push-options";
/// What the hook knows of what git offers.
const KNOWN: [&str; 2] = [ATOMIC, PUSH_OPTIONS];

/// Negotiates the version and reads what is asked for; nothing when git went away.
pub fn ask(from: &mut impl Read, to: &mut impl Write) -> io::Result<Option<Push>> {
    let Some(offer) = pkt::read_section(from)? else { return Ok(None) };
    let offer = offer.first().map(|line| String::from_utf8_lossy(line).into_owned()).unwrap_or_default();
    let (version, features) = offer.split_once('\0').unwrap_or((&offer, ""));
    if version != "version=1" {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("git offers {version:?}, known is version=1")));
    }
    let taken: Vec<&str> = features.split_whitespace().filter(|feature| KNOWN.contains(feature)).collect();
    let (atomic, has_options) = (taken.contains(&ATOMIC), taken.contains(&PUSH_OPTIONS));
    let answer = if taken.is_empty() { version.to_owned() } else { format!("{version}\0{}", taken.join(" ")) };
    pkt::write(to, answer.as_bytes())?;
    pkt::end(to)?;
    let Some(lines) = pkt::read_section(from)? else { return Ok(None) };
    let commands = lines.iter().map(|line| command(line)).collect::<Option<Vec<_>>>();
    let commands = commands.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "git sent no command of a push"))?;
    let mut options = Vec::new();
    if has_options {
        let Some(said) = pkt::read_section(from)? else { return Ok(None) };
        options = said.iter().map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect();
    }
    Ok(Some(Push { commands, atomic, options }))
}

fn command(line: &[u8]) -> Option<Command> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.splitn(3, ' ');
    let mut id = || words.next()?.parse::<CommitId>().ok();
    let (old, new) = (id()?, id()?);
    let some = |id: CommitId| (id.as_str().bytes().any(|digit| digit != b'0')).then_some(id);
    Some(Command { old: some(old), new: some(new), name: words.next()?.to_owned() })
}

/// Answers.
pub fn report(to: &mut impl Write, verdicts: &[(Command, Verdict)]) -> io::Result<()> {
    for (Command { name, .. }, verdict) in verdicts {
        match verdict {
            Verdict::Done => pkt::write(to, format!("ok {name}").as_bytes())?,
            Verdict::Git => {
                pkt::write(to, format!("ok {name}").as_bytes())?;
                pkt::write(to, b"option fall-through")?;
            }
            Verdict::Refused(reason) => pkt::write(to, format!("ng {name} {}", one_line(reason)).as_bytes())?,
        }
    }
    pkt::end(to)
}

/// The longest reason, in characters: it stands in one line of a terminal.
const REASON: usize = 200;

fn one_line(reason: &str) -> String {
    let line = reason.split(|c: char| c.is_control()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(REASON).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "1111111111111111111111111111111111111111";
    const NEW: &str = "2222222222222222222222222222222222222222";
    const ZERO: &str = "0000000000000000000000000000000000000000";

    fn section(lines: &[&str]) -> Vec<u8> {
        let mut text = Vec::new();
        for line in lines {
            pkt::write(&mut text, line.as_bytes()).unwrap();
        }
        pkt::end(&mut text).unwrap();
        text
    }

    #[test]
    fn a_push_is_read() {
        let commands = [
            format!("{OLD} {NEW} refs/heads/main"),
            format!("{ZERO} {NEW} refs/heads/a b"),
            format!("{OLD} {ZERO} refs/heads/x"),
        ];
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let options = section(&["plain-archive\n", "a b"]);
        let git = [section(&["version=1\0push-options atomic pull"]), section(&commands), options].concat();
        let mut said = Vec::new();
        let push = ask(&mut git.as_slice(), &mut said).unwrap().unwrap();
        assert_eq!(said, section(&["version=1\0push-options atomic"]));
        assert!(push.atomic);
        assert_eq!(push.options, ["plain-archive", "a b"]);
        let id = |id: &str| id.parse::<CommitId>().ok();
        assert_eq!(push.commands[0], Command { old: id(OLD), new: id(NEW), name: "refs/heads/main".into() });
        assert_eq!((push.commands[1].old.clone(), push.commands[1].name.as_str()), (None, "refs/heads/a b"));
        assert_eq!(push.commands[2].new, None);
    }

    #[test]
    fn only_what_git_offers_is_taken() {
        let git = [section(&["version=1"]), section(&[])].concat();
        let mut said = Vec::new();
        assert_eq!(ask(&mut git.as_slice(), &mut said).unwrap(), Some(Push::default()));
        assert_eq!(said, section(&["version=1"]));
        assert_eq!(ask(&mut b"".as_slice(), &mut said).unwrap(), None);
        let newer = section(&["version=2"]);
        assert!(ask(&mut newer.as_slice(), &mut said).unwrap_err().to_string().contains("version=2"));
        let nonsense = [section(&["version=1"]), section(&["delete everything"])].concat();
        assert!(ask(&mut nonsense.as_slice(), &mut said).is_err());
    }

    #[test]
    fn verdicts_are_told_in_one_line_each() {
        let command = |name: &str| Command { old: None, new: None, name: name.into() };
        let verdicts = [
            (command("refs/heads/main"), Verdict::Refused("install failed\nat 20_migrate\0 ".into())),
            (command("refs/heads/a"), Verdict::Done),
            (command("refs/tags/b"), Verdict::Git),
        ];
        let mut said = Vec::new();
        report(&mut said, &verdicts).unwrap();
        let lines = [
            "ng refs/heads/main install failed at 20_migrate  ",
            "ok refs/heads/a",
            "ok refs/tags/b",
            "option fall-through",
        ];
        assert_eq!(String::from_utf8(said).unwrap(), String::from_utf8(section(&lines)).unwrap());
        assert_eq!(one_line(&"ä".repeat(300)).chars().count(), 201);
    }
}
