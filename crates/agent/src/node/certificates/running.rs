//! The certificates in the running proxy: changed by its admin socket, so that no connection is cut and no handshake fails.
//!
//! What comes is there before what goes is taken away: a name is shown its old certificate or its new one, never the
//! default. haproxy takes each command whole or not at all; one that it refuses, or that is too large for its socket, is an
//! error, and the caller reloads the proxy instead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sha1::{Digest, Sha1};

use super::list::Entry;
use super::pem;
use crate::digest::hexadecimal;
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::node::live::{ask, refused};

/// A command with all that belongs to it must fit into a buffer of haproxy (16,384 bytes) with room for its own use.
const MAX_COMMAND: usize = 15 << 10;
/// As many certificates are asked about in one command: 80 bytes each.
const ASKED_AT_ONCE: usize = 100;

/// One thing to do in the running proxy.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    /// The file is not known to it yet.
    Make(&'a Entry),
    /// What the file holds is what is shown, from the next handshake on.
    Load(&'a Entry),
    /// It is shown for its names.
    Show(&'a Entry),
    /// It is not shown any more for those names for which it was shown before these steps.
    Hide(&'a Entry),
    /// It forgets the file, and the key.
    Forget(&'a Entry),
}

/// What leads from one list to another.
fn steps<'a>(old: &'a [Entry], new: &'a [Entry]) -> Vec<Step<'a>> {
    let by_file = |entries: &'a [Entry]| -> BTreeMap<&'a str, &'a Entry> {
        entries.iter().map(|entry| (entry.file.as_str(), entry)).collect()
    };
    let (before, after) = (by_file(old), by_file(new));
    let mut steps = Vec::new();
    for entry in new {
        match before.get(entry.file.as_str()) {
            None => steps.extend([Step::Make(entry), Step::Load(entry), Step::Show(entry)]),
            Some(was) => {
                steps.extend((was.digest != entry.digest).then_some(Step::Load(entry)));
                steps.extend((was.names != entry.names).then_some(Step::Show(entry)));
            }
        }
    }
    for entry in old {
        match after.get(entry.file.as_str()) {
            None => steps.extend([Step::Hide(entry), Step::Forget(entry)]),
            Some(is) => steps.extend((is.names != entry.names).then_some(Step::Hide(entry))),
        }
    }
    steps
}

/// The running proxy serves the new entries of its list instead of the old ones.
pub fn change(host: &Host, list: &Path, old: &[Entry], new: &[Entry]) -> Result<(), Failure> {
    let steps = steps(old, new);
    if steps.is_empty() {
        return Ok(());
    }
    let lines = lines(host, list)?;
    steps.iter().try_for_each(|step| take(host, list, step, &lines))
}

fn take(host: &Host, list: &Path, step: &Step<'_>, lines: &[Line]) -> Result<(), Failure> {
    let list = list.display();
    match step {
        Step::Make(Entry { file, .. }) => {
            expect(host, &format!("new ssl cert {file}\n"), "New empty certificate store")
        }
        Step::Load(Entry { file, .. }) => {
            let text = files::read(Path::new(file))?.ok_or_else(|| Failure::Missing(format!("{file} is gone")))?;
            let set = format!("set ssl cert {file} <<\n{}\n", pem::payload(&text));
            expect(host, &set, "Transaction created")?;
            expect(host, &format!("commit ssl cert {file}\n"), "Success!")
        }
        Step::Show(entry) => expect(host, &format!("add ssl crt-list {list} <<\n{}\n\n", entry.line()), "Success!"),
        Step::Hide(Entry { file, .. }) => {
            let mut there = lines.iter().filter(|line| line.file == *file);
            there.try_for_each(|line| {
                expect(host, &format!("del ssl crt-list {list} {file}:{}\n", line.number), "deleted in crtlist")
            })
        }
        Step::Forget(Entry { file, .. }) => expect(host, &format!("del ssl cert {file}\n"), "deleted!"),
    }
}

fn expect(host: &Host, command: &str, wanted: &str) -> Result<(), Failure> {
    if command.len() > MAX_COMMAND {
        return Err(refused("a certificate is larger than its admin socket takes"));
    }
    let answer = ask(host, command)?;
    if answer.contains(wanted) { Ok(()) } else { Err(refused(&answer)) }
}

/// A line of the list in the running proxy.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    file: String,
    number: u32,
    names: String,
}

fn lines(host: &Host, list: &Path) -> Result<Vec<Line>, Failure> {
    let answer = ask(host, &format!("show ssl crt-list -n {}\n", list.display()))?;
    // The first line names the list; another one says that there is none.
    if !answer.starts_with('#') {
        return Err(refused(&answer));
    }
    Ok(read_lines(&answer))
}

/// `FILE:NUMBER NAME NAME`
fn read_lines(answer: &str) -> Vec<Line> {
    let read = |line: &str| {
        let (place, names) = line.split_once(' ').unwrap_or((line, ""));
        let (file, number) = place.rsplit_once(':')?;
        Some(Line { file: file.to_owned(), number: number.parse().ok()?, names: names.trim().to_owned() })
    };
    answer.lines().filter(|line| !line.starts_with('#')).filter_map(read).collect()
}

/// What the running proxy shows, as lines of its list; those of `default` left out.
pub fn shown(host: &Host, list: &Path, default: &Path) -> Result<BTreeSet<String>, Failure> {
    let default = default.display().to_string();
    let lines = lines(host, list)?.into_iter().filter(|line| line.file != default);
    Ok(lines.map(|line| format!("{} {}", line.file, line.names)).collect())
}

/// Files that the running proxy knows with another certificate than they hold.
pub fn outdated<'a>(host: &Host, entries: &'a [Entry]) -> Result<Vec<&'a str>, Failure> {
    let mut loaded = BTreeMap::new();
    for part in entries.chunks(ASKED_AT_ONCE) {
        let commands: Vec<String> = part.iter().map(|entry| format!("show ssl cert {}", entry.file)).collect();
        loaded.extend(fingerprints(&ask(host, &format!("{}\n", commands.join(";")))?));
    }
    let differs = |entry: &&'a Entry| {
        let leaf = files::read(Path::new(&entry.file)).ok().flatten().and_then(|text| pem::leaf(&text).ok());
        leaf.is_none_or(|leaf| loaded.get(&entry.file) != Some(&hexadecimal(&Sha1::digest(&leaf)).to_uppercase()))
    };
    Ok(entries.iter().filter(differs).map(|entry| entry.file.as_str()).collect())
}

/// By file, from what `show ssl cert` tells.
fn fingerprints(answer: &str) -> BTreeMap<String, String> {
    let mut file = "";
    let mut found = BTreeMap::new();
    for line in answer.lines() {
        file = line.strip_prefix("Filename: ").unwrap_or(file);
        if let Some(print) = line.strip_prefix("SHA1 FingerPrint: ") {
            found.entry(file.to_owned()).or_insert_with(|| print.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(file: &str, digest: &str, names: &str) -> Entry {
        Entry { file: file.into(), digest: digest.into(), names: names.into() }
    }

    #[test]
    fn what_comes_is_there_before_what_goes() {
        let old = [entry("a", "1", "x"), entry("b", "1", "y"), entry("c", "1", "z"), entry("d", "1", "w")];
        let new = [entry("a", "2", "x"), entry("b", "1", "y z"), entry("d", "1", "w"), entry("e", "1", "v")];
        assert_eq!(
            steps(&old, &new),
            [
                Step::Load(&new[0]),
                Step::Show(&new[1]),
                Step::Make(&new[3]),
                Step::Load(&new[3]),
                Step::Show(&new[3]),
                Step::Hide(&old[1]),
                Step::Hide(&old[2]),
                Step::Forget(&old[2]),
            ]
        );
        assert_eq!(steps(&new, &new), []);
    }

    #[test]
    fn what_the_proxy_tells_is_read() {
        let answer = "# /etc/corpus/certificates.list\n/etc/corpus/default.pem:1\n/c/a.pem:3 x.org *.y.org\n\n";
        let lines = read_lines(answer);
        let line = |file: &str, number, names: &str| Line { file: file.into(), number, names: names.into() };
        assert_eq!(lines, [line("/etc/corpus/default.pem", 1, ""), line("/c/a.pem", 3, "x.org *.y.org")]);
        let answer = "Filename: /c/a.pem\nStatus: Used\nSHA1 FingerPrint: AB01\nSubject: /CN=SHA1\n\n\
                      Can't display the certificate: Not found or the certificate is a bundle!\n\n\
                      Filename: /c/b.pem\nSHA1 FingerPrint: CD\nChain Subject: x\nSHA1 FingerPrint: EF\n";
        let told = fingerprints(answer);
        assert_eq!((told.len(), told["/c/a.pem"].as_str(), told["/c/b.pem"].as_str()), (2, "AB01", "CD"));
    }
}
