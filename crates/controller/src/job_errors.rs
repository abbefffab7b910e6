//! What a person hears when the jobs did not do what was asked.

use crate::Error;
use crate::jobs::JobsError;
use corpus_api::Denied;

/// A failure of the jobs as an answer to a person.
pub(crate) fn jobs_error(error: JobsError) -> Error {
    match error {
        JobsError::Missing(_) => Denied::NotFound.into(),
        JobsError::WrongState { .. } | JobsError::TooMany(_) | JobsError::Closed(_) => {
            Error::Conflict(error.to_string())
        }
        JobsError::CommentMissing => Error::field("comment", error.to_string()),
        JobsError::Database(error) => Error::from(error),
        other => Error::Internal { message: "the job could not be handled", source: Box::new(other) },
    }
}
