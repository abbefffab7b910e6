//! How a command ends: a number that a script can tell apart, and a text for a person.

use std::fmt;
use std::process::ExitCode;

use corpus_api::Problem;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It was done.
    Done = 0,
    /// It was refused, or the request failed.
    Refused = 1,
    /// The command was not understood; clap ends with the same.
    Usage = 2,
    /// The job failed, and what it had done was undone.
    Undone = 3,
    /// The job is stuck: something may be left, and somebody must decide.
    Stuck = 4,
    /// It was not over in time; it goes on.
    TimedOut = 5,
    /// Corpus was not reached.
    Unreachable = 6,
}

impl Exit {
    /// Of the ends of several jobs: one that somebody must decide about before one that was undone, and that before one
    /// that goes on.
    pub fn is_worse_than(self, other: Self) -> bool {
        let rank = |exit| [Self::Done, Self::TimedOut, Self::Undone, Self::Stuck].iter().position(|one| *one == exit);
        rank(self) > rank(other)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// For `corpus --help`.
pub const HELP: &str = "Exit codes: 0 done, 1 refused, 2 not understood, 3 undone (the job failed), 4 stuck, \
                        5 not over in time, 6 Corpus was not reached.";

/// Why it did not end well.
#[derive(Debug)]
pub struct Failure {
    /// What a script is told.
    pub exit: Exit,
    text: String,
}

impl Failure {
    /// With a text for a person.
    pub fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into() }
    }

    /// The command is not what it should be.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// All fields that are wrong, a line each.
impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let wrong = problem.errors.iter().map(|wrong| match wrong.field.as_str() {
            "" => format!("\n  {}", wrong.detail),
            field => format!("\n  {field}{}: {}", wrong.pointer, wrong.detail),
        });
        Self::new(Exit::Refused, format!("{}{}", problem.text(), wrong.collect::<String>()))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Refused, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_jobs_the_one_that_needs_somebody_counts() {
        let ends = [Exit::Stuck, Exit::Undone, Exit::TimedOut, Exit::Done];
        for (at, end) in ends.iter().enumerate() {
            assert!(ends[at + 1..].iter().all(|less| end.is_worse_than(*less) && !less.is_worse_than(*end)), "{end:?}");
            assert!(!end.is_worse_than(*end));
        }
    }
}
