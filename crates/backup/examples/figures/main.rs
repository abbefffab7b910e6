//! What it costs to save a guest and to bring it back, for scripts/backup-figures to measure.
//!
//! A figure that is compared with another tool's must be that of the way by which real backups go. So this program has
//! the controller's end of an agent's line on its standard input and output, and whoever starts it has put the agent's own
//! `read-tree` or `write-tree` at the other end. Processor time and memory are its own: it does one thing and ends.
//!
//!     figures make FOLDER FILES BYTES     a tree of so many files that hold so many bytes, always the same
//!     figures change FOLDER FILES BYTES   another state of that tree: a hundredth rewritten, some added, some removed
//!     figures save REPOSITORY             from an agent that reads a tree
//!     figures restore REPOSITORY          the newest, to an agent that writes a tree
//!     figures check REPOSITORY            what tells where everything lies
//!     figures prune REPOSITORY            all but the newest are removed, and what only they held

mod incoming;
mod line;
mod outgoing;
mod tree;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use corpus_backup::{About, Reading, Repository};

/// What the backups are of.
const LABEL: &str = "figures";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("figures: {}", in_full(&*error));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), Box<dyn Error>> {
    match words {
        ["make", folder, files, bytes] => Ok(tree::make(Path::new(folder), files.parse()?, bytes.parse()?)?),
        ["change", folder, files, bytes] => Ok(tree::change(Path::new(folder), files.parse()?, bytes.parse()?)?),
        ["save", at] => {
            let about = About { label: LABEL.to_owned(), host: "here".to_owned(), tag: LABEL.to_owned() };
            incoming::save(&repository(at), &about)
        }
        ["restore", at] => {
            let repository = repository(at);
            let newest = repository.list(LABEL)?.into_iter().next().ok_or("there is no backup")?;
            outgoing::bring(&repository, &newest.id)
        }
        ["check", at] => Ok(repository(at).check(Reading::Index)?),
        ["prune", at] => {
            let repository = repository(at);
            let old: Vec<String> = repository.list(LABEL)?.into_iter().skip(1).map(|one| one.id).collect();
            repository.remove(&old)?;
            Ok(repository.prune()?)
        }
        _ => Err("make, change, save, restore, check or prune is to be said; see the head of this program".into()),
    }
}

fn repository(at: &str) -> Repository {
    // Of files that chance made, and that are gone in an hour.
    Repository::at(PathBuf::from(at).into(), "figures".to_owned().into())
}

fn in_full(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {}", in_full(cause)))
}
