//! What can go wrong while a request is served, and what of it the controller is told.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::{Bytes, Invalid, JobId};
use corpus_protocol::{ErrorKind, RequestError};
use thiserror::Error;

/// Why a request failed.
#[derive(Debug, Error)]
pub enum Failure {
    /// The request makes no sense, now or ever.
    #[error("{0}")]
    Invalid(String),
    /// A name in the request is none.
    #[error(transparent)]
    Name(#[from] Invalid),
    /// A later request of the job was here.
    #[error(
        "request {} of generation {} of job {job} comes too late: request {} of generation {} was here already",
        given.1, given.0, seen.1, seen.0
    )]
    Fenced {
        /// The job.
        job: JobId,
        /// The request's generation and number.
        given: (i64, u64),
        /// The latest ones seen.
        seen: (i64, u64),
    },
    /// A later plan is in force.
    #[error("revision {given} of the node's plan comes too late: revision {applied} is in force")]
    OldPlan {
        /// The request's revision.
        given: i64,
        /// The one in force.
        applied: i64,
    },
    /// Another request holds the lock.
    #[error("another request is working on {0}; try again")]
    Busy(String),
    /// The controller ended it.
    #[error("cancelled")]
    Cancelled,
    /// A command could not be started.
    #[error("can't start {program}")]
    Start {
        /// Its name.
        program: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A command failed.
    #[error("{program} ended with {status}{}", Tail(.tail))]
    Command {
        /// Its name.
        program: &'static str,
        /// Its exit status, in words.
        status: String,
        /// The last lines of its standard error.
        tail: Vec<String>,
    },
    /// A command took too long.
    #[error("{program} took longer than {} s and was ended{}", .limit.as_secs(), Tail(.tail))]
    TimedOut {
        /// Its name.
        program: &'static str,
        /// What it was given.
        limit: Duration,
        /// The last lines of its standard error.
        tail: Vec<String>,
    },
    /// Processes of a command that was to end outlived SIGKILL.
    #[error("{program} was to end and still runs after SIGKILL: pid {}", Pids(.left))]
    Survived {
        /// Its name.
        program: &'static str,
        /// The processes that are left.
        left: Vec<i32>,
    },
    /// A checker refused what we rendered.
    #[error("{file} was refused by its checker, and the old configuration stays in force{}", Tail(.tail))]
    CheckFailed {
        /// The rendered file.
        file: &'static str,
        /// What the checker said.
        tail: Vec<String>,
    },
    /// The disk is too full.
    #[error("not enough room in {}: {} are free, {} are needed", .folder.display(), .free.gb(), .needed.gb())]
    NoSpace {
        /// A folder on that disk, or the pool of volumes.
        folder: PathBuf,
        /// What is free.
        free: Bytes,
        /// What is needed.
        needed: Bytes,
    },
    /// Something that the request needs is not there.
    #[error("{0}")]
    Missing(String),
    /// Reading or writing failed.
    #[error("can't {action} {}", .path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// The end of a command's output, shown after a colon.
struct Tail<'a>(&'a [String]);

impl std::fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0.join("\n")) }
    }
}

/// Numbers of processes, the first few of them.
struct Pids<'a>(&'a [i32]);

impl std::fmt::Display for Pids<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pids: Vec<String> = self.0.iter().take(10).map(ToString::to_string).collect();
        f.write_str(&pids.join(", "))
    }
}

impl Failure {
    /// The kind that the controller decides by.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::Name(_) => ErrorKind::Invalid,
            Self::Fenced { .. } | Self::OldPlan { .. } => ErrorKind::Fenced,
            Self::Busy(_) => ErrorKind::Busy,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => ErrorKind::Missing,
            Self::Command { tail, .. } if tail.iter().any(|line| line.contains("No space left on device")) => {
                ErrorKind::NoSpace
            }
            Self::Start { .. } | Self::Command { .. } | Self::Survived { .. } => ErrorKind::Command,
            Self::TimedOut { .. } => ErrorKind::TimedOut,
            Self::CheckFailed { .. } => ErrorKind::CheckFailed,
            Self::NoSpace { .. } => ErrorKind::NoSpace,
            Self::Missing(_) => ErrorKind::Missing,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => ErrorKind::NoSpace,
            Self::Io { .. } => ErrorKind::Io,
        }
    }

    /// What happened, with what caused it.
    pub fn in_full(&self) -> String {
        let mut message = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        message
    }
}

impl From<Failure> for RequestError {
    fn from(failure: Failure) -> Self {
        Self { kind: failure.kind(), message: failure.in_full() }
    }
}

/// Says what was tried when a system call fails.
pub trait At<T> {
    /// Turns the error into [`Failure::Io`] for `action` on `path`.
    fn at(self, action: &'static str, path: impl AsRef<Path>) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, action: &'static str, path: impl AsRef<Path>) -> Result<T, Failure> {
        self.map_err(|error| Failure::Io { action, path: path.as_ref().to_owned(), source: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart() {
        let full: Result<(), _> = Err(io::Error::from(io::ErrorKind::StorageFull));
        let error = RequestError::from(full.at("write", "/var/lib/x").unwrap_err());
        assert_eq!(error.kind, ErrorKind::NoSpace);
        assert!(error.message.starts_with("can't write /var/lib/x: "), "{}", error.message);
        let tar = Failure::Command {
            program: "tar",
            status: "exit status 2".into(),
            tail: vec!["tar: x: No space left on device".into()],
        };
        assert_eq!(tar.kind(), ErrorKind::NoSpace);
    }
}
