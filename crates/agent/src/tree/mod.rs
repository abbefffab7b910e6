//! All files of a guest at once: read, from a snapshot of it say, or written to be the guest's.
//!
//! The words are those of `corpus_protocol::tree`. Whoever is root in a guest made these files, and their names come back
//! from a backup: so a file is only ever reached by one name in a folder that is held open, which no link and no mount
//! leads away from. Owners, access lists and capabilities are told and given as the guest has them; where the files' own
//! ids are others, they are shifted here.

mod attributes;
mod content;
mod folder;
mod metadata;
mod pieces;
mod places;
mod reader;
mod writer;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write, stdout};

use corpus_domain::{Bytes, GuestName, JobId};
use corpus_protocol::{BROKEN, MAX_PIECE, TreeLine};
use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};

use self::reader::{Reader, Told};
use self::writer::Writer;
use crate::failure::Failure;
use crate::guest_root::GuestRoot;
use crate::host::Host;
use crate::line::SlowLine;
use crate::snapshots::Files;
use crate::task::{Cancel, Task};
use crate::{lock, record, snapshots};

/// How much is read from the line, and written to it, at once.
const BUFFER: usize = MAX_PIECE as usize;
/// How nice is who reads a snapshot to those who serve: as `nice` makes a program.
const NICE: i32 = 5;
/// The longest reason that is told, in characters.
const MAX_REASON: usize = 2_000;

/// Whose files they are, and for which job, in which generation of its lease.
struct For {
    guest: GuestName,
    job: JobId,
    generation: i64,
}

impl For {
    fn parse(guest: &str, job: &str, generation: &str) -> Result<Self, Failure> {
        let number = |_| Failure::Invalid(format!("{generation:?} is to be the number of a generation"));
        Ok(Self { guest: guest.parse()?, job: job.parse()?, generation: generation.parse().map_err(number)? })
    }

    fn admit(&self, host: &Host) -> Result<(), Failure> {
        record::admit_line(host, self.job, self.generation)
    }
}

/// Does what the words ask for on standard input and output, if they are any of a tree.
///
/// A controller that lost its lease may stand still with the line open, and what is held for it is another's to have: so it
/// all ends with the process, as if that were killed, once a later generation of the job was here.
pub fn serve(host: &Host, words: &[&str]) -> Option<Result<(), String>> {
    let &[word @ ("read-tree" | "sum-tree" | "write-tree"), guest, job, generation, ref what @ ..] = words else {
        return None;
    };
    let of = match For::parse(guest, job, generation) {
        Ok(of) => of,
        Err(failure) => return Some(refuse(&failure)),
    };
    if rustix::process::geteuid().is_root() {
        // One that comes too late is told so.
        if let Err(failure) = of.admit(host) {
            return Some(refuse(&failure));
        }
        record::leave_when_overtaken(host.clone(), of.job, of.generation);
    }
    if !matches!((word, what), ("write-tree", _) | (_, ["own" | "written"])) {
        // A guest goes on while a snapshot of it is read, and nobody waits for that.
        let _ = setpriority_process(None, NICE);
    }
    let mut output = BufWriter::with_capacity(BUFFER, stdout().lock());
    Some(match word {
        "read-tree" => read(host, &of, what, &mut BufReader::new(SlowLine), &mut output),
        "sum-tree" => sum(host, &of, what, &mut output),
        _ => write(host, &of, what, &mut BufReader::with_capacity(BUFFER, SlowLine), &mut output),
    })
}

fn refuse(failure: &Failure) -> Result<(), String> {
    let reason = reason(failure);
    let _ = pieces::say(&mut stdout().lock(), &TreeLine::Failed(reason.clone()));
    Err(reason)
}

/// Tells the files that the words are for, and their contents as they are asked for.
fn read(
    host: &Host,
    of: &For,
    files: &[&str],
    input: &mut BufReader<impl Read>,
    output: &mut impl Write,
) -> Result<(), String> {
    let listed = on_host(host, |task| {
        let (lock, root) = open(task, of, files)?;
        let mut reader = Reader::new(&root)?;
        let entries = reader.list(&mut |line| pieces::say(output, line))?;
        Ok((lock, root, reader, entries))
    });
    let (_lock, _root, mut reader, entries) = listed.inspect_err(|reason| {
        let _ = pieces::say(output, &TreeLine::Failed(reason.clone()));
    })?;
    pieces::say(output, &TreeLine::End { entries })
        .and_then(|()| contents(&mut reader, input, output))
        .map_err(|failure| reason(&failure))
}

/// Tells what the files that the words are for come to.
fn sum(host: &Host, of: &For, files: &[&str], output: &mut impl Write) -> Result<(), String> {
    let summed = on_host(host, |task| {
        let (_lock, root) = open(task, of, files)?;
        Reader::new(&root)?.sums()
    });
    let said = match &summed {
        Ok(sums) => TreeLine::Sums(sums.clone()),
        Err(reason) => TreeLine::Failed(reason.clone()),
    };
    let told = pieces::say(output, &said).and_then(|()| pieces::flush(output));
    summed.and_then(|_| told.map_err(|failure| reason(&failure)))
}

/// Opens what the words are for, of which nothing changes meanwhile.
fn open(task: &Task<'_>, of: &For, files: &[&str]) -> Result<(Vec<File>, GuestRoot), Failure> {
    let files = match files {
        ["own"] => Files::Own,
        ["written"] => Files::Written(of.job),
        [snapshot] => Files::Snapshot(snapshot.parse()?),
        _ => return Err(Failure::Invalid(format!("{files:?} is not a snapshot's id, `own` or `written`"))),
    };
    of.admit(task.host)?;
    let lock = match files {
        Files::Snapshot(_) => vec![],
        Files::Own => lock::take(&[lock::stopped(&of.guest)], task)?,
        Files::Written(_) => lock::take(&[lock::written_tree(&of.guest)], task)?,
    };
    Ok((lock, snapshots::open(task, &of.guest, files)?))
}

/// Takes files that are to be the guest's; the words are how many bytes these are about, and perhaps `onto`.
fn write(
    host: &Host,
    of: &For,
    words: &[&str],
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> Result<(), String> {
    let written = on_host(host, |task| {
        let (bytes, is_onto) = match words {
            [bytes] => (*bytes, false),
            [bytes, "onto"] => (*bytes, true),
            _ => return Err(Failure::Invalid("a number of bytes, and `onto` or nothing, are to be said".into())),
        };
        let bytes = bytes.parse().map_err(|_| Failure::Invalid(format!("{bytes:?} is to be a number of bytes")))?;
        of.admit(host)?;
        let _lock = lock::take(&[lock::tree(&of.guest)], task)?;
        // A later generation may have come while this one waited.
        of.admit(host)?;
        let what = (of.job, Bytes(bytes));
        if is_onto {
            snapshots::write_onto(task, &of.guest, what, |root| Writer::new(root)?.keeping().run(input))
        } else {
            snapshots::write(task, &of.guest, what, |root| Writer::new(root)?.run(input))
        }
    });
    let said = match &written {
        Ok(entries) => TreeLine::End { entries: *entries },
        Err(reason) => TreeLine::Failed(reason.clone()),
    };
    let told = pieces::say(output, &said).and_then(|()| pieces::flush(output));
    written.and_then(|_| told.map_err(|failure| reason(&failure)))
}

/// Does what changes this host or sees all of a guest: as root, and with as many open folders as there may be.
fn on_host<T>(host: &Host, act: impl FnOnce(&Task<'_>) -> Result<T, Failure>) -> Result<T, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("files of guests are had by root only".into());
    }
    let most = getrlimit(Resource::Nofile).maximum;
    // Where it is refused, a tree that is too deep for it fails.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
    act(&Task { host, cancel: &Cancel::default(), events: &|_| {} }).map_err(|failure| reason(&failure))
}

/// Answers each number with the content of that file, until no more are asked for.
fn contents(reader: &mut Reader, input: &mut BufReader<impl Read>, output: &mut impl Write) -> Result<(), Failure> {
    let mut line = Vec::new();
    while pieces::line(input, &mut line, pieces::MAX_NUMBER)? {
        let told = match std::str::from_utf8(&line).ok().and_then(|text| text.trim().parse().ok()) {
            Some(number) => reader.content(number, output)?,
            None => Told::Broken(Failure::Invalid("what is asked for is no number of a file".into())),
        };
        if let Told::Broken(failure) = told {
            let broken = [&BROKEN.to_be_bytes(), reason(&failure).as_bytes(), b"\n"].concat();
            pieces::put_all(output, &broken)?;
            pieces::flush(output)?;
            return Err(failure);
        }
        // What is asked next is here already: their answers go together.
        if input.buffer().is_empty() {
            pieces::flush(output)?;
        }
    }
    Ok(())
}

/// A failure as one line.
fn reason(failure: &Failure) -> String {
    let text = failure.in_full();
    text.chars().take(MAX_REASON).map(|one| if one.is_control() { ' ' } else { one }).collect()
}

#[cfg(test)]
mod tests;
