//! What can go wrong in a step, and what can go wrong with jobs.

use std::fmt;

use corpus_domain::{JobId, JobKind, JobState};
use corpus_protocol::{ErrorKind, RequestError};
use thiserror::Error;

/// Whether trying a step again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepErrorKind {
    /// It may: tried again after a while, as often as the step's [`super::Retry`] says.
    Transient,
    /// It won't: the job is undone.
    Permanent,
    /// The step ended because the job was cancelled: the job is undone.
    Cancelled,
}

/// Why a step failed. The message is for the person who waits: what happened, to what, what
/// to do next; never a secret.
#[derive(Debug)]
pub struct StepError {
    /// Whether trying again may help.
    pub kind: StepErrorKind,
    /// Whether the try counts. It does not while our own database is away, which no step is to blame for: nothing can be
    /// decided, not even that the job is to be undone, until it answers again or this server has lost the job.
    pub counts: bool,
    /// What happened.
    pub message: String,
    /// What the job waits for until the next try: "node node1 to answer".
    pub waiting_for: Option<String>,
    /// The cause, for the server's log.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StepError {
    fn new(kind: StepErrorKind, message: impl Into<String>) -> Self {
        Self { kind, counts: true, message: message.into(), waiting_for: None, source: None }
    }

    /// A failure that may pass by itself.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(StepErrorKind::Transient, message)
    }

    /// A failure that stays.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(StepErrorKind::Permanent, message)
    }

    /// The step ended because the job was cancelled.
    pub fn cancelled() -> Self {
        Self::new(StepErrorKind::Cancelled, "cancelled")
    }

    /// Names what is waited for until the next try.
    #[must_use]
    pub fn while_waiting_for(mut self, what: impl Into<String>) -> Self {
        self.waiting_for = Some(what.into());
        self
    }

    /// Keeps the cause for the server's log.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StepError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<RequestError> for StepError {
    fn from(error: RequestError) -> Self {
        let kind = match error.kind {
            ErrorKind::Cancelled => StepErrorKind::Cancelled,
            ErrorKind::Busy | ErrorKind::TimedOut => StepErrorKind::Transient,
            ErrorKind::Invalid
            | ErrorKind::Fenced
            | ErrorKind::Command
            | ErrorKind::CheckFailed
            | ErrorKind::NoSpace
            | ErrorKind::Missing
            | ErrorKind::Io => StepErrorKind::Permanent,
        };
        Self::new(kind, error.message)
    }
}

impl From<sqlx::Error> for StepError {
    fn from(error: sqlx::Error) -> Self {
        let message = "the database did not do what the step needs";
        if corpus_database::is_away(&error) || matches!(error, sqlx::Error::PoolTimedOut) {
            let away = Self::transient(message).while_waiting_for("the database to answer").caused_by(error);
            return Self { counts: false, ..away };
        }
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        let passes = code.is_some_and(|code| passes_by_itself(&code));
        let kind = if passes { StepErrorKind::Transient } else { StepErrorKind::Permanent };
        Self::new(kind, message).caused_by(error)
    }
}

/// Classes of PostgreSQL's errors that say nothing about the statement: rolled back for others' sake (40), out of
/// resources (53).
fn passes_by_itself(code: &str) -> bool {
    ["40", "53"].iter().any(|class| code.starts_with(class))
}

/// What can go wrong with jobs themselves.
#[derive(Debug, Error)]
pub enum JobsError {
    /// There is no such job.
    #[error("there is no job {0}")]
    Missing(JobId),
    /// No steps are registered for this kind.
    #[error("no job of kind {0} is known to this server")]
    UnknownKind(JobKind),
    /// The parameters can't be written as JSON.
    #[error("the parameters of the job can't be stored")]
    Params(#[source] serde_json::Error),
    /// The steps don't make a saga.
    #[error("the steps of job kind {kind} don't fit together")]
    Steps {
        /// The kind.
        kind: JobKind,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The job is not in a state for that.
    #[error("job {id} is {state}: {expected}")]
    WrongState {
        /// The job.
        id: JobId,
        /// The state it is in.
        state: JobState,
        /// What would have been possible.
        expected: &'static str,
    },
    /// So many jobs of the project wait already.
    #[error("{0} jobs of this project wait already; cancel some, or wait until they have begun")]
    TooMany(i64),
    /// Another job keeps others from what this one needs; the reason is for a person.
    #[error("{0}")]
    Closed(String),
    /// A comment is needed.
    #[error("say in a comment why the job is abandoned")]
    CommentMissing,
    /// A word in the database that this release doesn't know.
    #[error(transparent)]
    Word(#[from] corpus_domain::Invalid),
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
}
