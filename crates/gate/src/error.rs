//! What an operation of the controller answers when it does not succeed.
//!
//! Every message is for the person at the page: what happened, to what, what to do next.
//! The cause stays in `source` and goes to the log once.

use corpus_api::{Denied, Problem, Wrong};
use corpus_domain::Invalid;
use thiserror::Error;

/// An operation did not succeed.
#[derive(Debug, Error)]
pub enum Error {
    /// Not permitted, or not to be seen.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// It can be seen, and takes a role that they don't have: which, and who has it, for a person.
    #[error("{0}")]
    Forbidden(String),
    /// A value is not what its field takes.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// One field of the request can't be accepted: `field` is its name in the form.
    #[error("{message}")]
    Field {
        /// The form field.
        field: &'static str,
        /// Why, for a person.
        message: String,
    },
    /// Several fields can't be accepted.
    #[error("{}", Problem::wrong(.0.clone()))]
    Fields(Vec<Wrong>),
    /// Something of this name, or with this value, is there already.
    #[error("{message}")]
    Taken {
        /// The form field.
        field: &'static str,
        /// Of what, and what to do, for a person.
        message: String,
    },
    /// It was changed since it was read: by whom, and what to do, for a person.
    #[error("{0}")]
    Changed(String),
    /// A later release can do it.
    #[error("{0}")]
    NotYet(String),
    /// The request is not what it should be, for another reason than a field of it.
    #[error("{}", .0.text())]
    Refused(Box<Problem>),
    /// The thing is in a state in which this can't be done.
    #[error("{0}")]
    Conflict(String),
    /// Something that is needed does not answer now.
    #[error("{message}")]
    Unavailable {
        /// What, and what to do.
        message: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database failed.
    #[error("the database did not do what was asked; try again")]
    Database(#[source] sqlx::Error),
    /// A fault in Corpus itself.
    #[error("{message}")]
    Internal {
        /// What was being done.
        message: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// An error at a form field.
    pub fn field(field: &'static str, message: impl Into<String>) -> Self {
        Self::Field { field, message: message.into() }
    }

    /// Turns the breach of a unique rule into an error at a field; anything else stays what it is.
    pub fn taken(error: sqlx::Error, field: &'static str, message: impl Into<String>) -> Self {
        match &error {
            sqlx::Error::Database(inner) if inner.is_unique_violation() => {
                Self::Taken { field, message: message.into() }
            }
            _ => Self::from(error),
        }
    }
}

/// A database that has no free connection may have one soon, and one that is away comes back; anything else is a failure.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::Unavailable {
                message: "Corpus has more to do than it can at this moment. Try again in a few seconds.".to_owned(),
                source: Box::new(error),
            },
            error if corpus_database::is_away(&error) => Self::Unavailable {
                message: "The database does not answer. Try again in a moment.".to_owned(),
                source: Box::new(error),
            },
            error => Self::Database(error),
        }
    }
}

/// What a door says of an error. What is Corpus's own fault is told as such, and its cause only to the log.
impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let text = sentence(&error.to_string());
        match error {
            Error::Denied(Denied::NotFound) => Self::not_found(""),
            Error::Denied(Denied::Forbidden) => Self::forbidden(""),
            Error::Forbidden(_) | Error::Denied(Denied::Robot | Denied::Bounded(_)) => Self::forbidden(text),
            Error::Denied(Denied::Token(_)) => Self::token_too_weak(text),
            Error::Invalid(_) => Self::fields(text),
            Error::Field { field, .. } => Self::wrong(vec![Wrong::new(field, text)]),
            Error::Fields(wrong) => Self::wrong(wrong.clone()),
            Error::Taken { field, .. } => Self { errors: vec![Wrong::new(field, text)], ..Self::taken("") },
            Error::Changed(_) => Self::changed(text),
            Error::NotYet(_) => Self::not_yet(text),
            Error::Refused(problem) => Self::clone(problem),
            Error::Conflict(_) => Self::conflict(text),
            Error::Unavailable { .. } => Self::unavailable(text),
            Error::Database(_) | Error::Internal { .. } => Self::internal(text),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// Begins with a capital letter, unless with a name or a number, and ends with a full stop.
pub fn sentence(text: &str) -> String {
    let plain = text.split_whitespace().next().is_some_and(|word| word.chars().all(char::is_alphabetic));
    let mut letters = text.chars();
    let first = letters.next().filter(|_| plain);
    let mut sentence = first.map_or_else(|| text.to_owned(), |first| first.to_uppercase().chain(letters).collect());
    if !sentence.is_empty() && !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;
