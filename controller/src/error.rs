//! What an operation of the controller answers when it does not succeed.
//!
//! Every message is for the person at the page: what happened, to what, what to do next.
//! The cause stays in `source` and goes to the log once.

use corpus_domain::Invalid;
use thiserror::Error;

use crate::authz::Denied;

/// An operation did not succeed.
#[derive(Debug, Error)]
pub enum Error {
    /// Not permitted, or not to be seen.
    #[error(transparent)]
    Denied(#[from] Denied),
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
            sqlx::Error::Database(inner) if inner.is_unique_violation() => Self::field(field, message),
            _ => Self::Database(error),
        }
    }
}

/// A database that has no free connection may have one soon; anything else is a failure.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::Unavailable {
                message: "Corpus has more to do than it can at this moment. Try again in a few seconds.".to_owned(),
                source: Box::new(error),
            },
            error => Self::Database(error),
        }
    }
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;
