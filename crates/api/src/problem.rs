//! What went wrong, as RFC 9457 says it: one shape for every door.
//!
//! A problem says what kind it is (stable, for programs), what happened and what to do (for people), and
//! names every field that is at fault, so that a form shows each beside its box.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What kind of problem, stable: `urn:corpus:problem:not_found`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind, for a person.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What happened here, and what to do next.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Every field that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Wrong>,
}

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wrong {
    /// Its name; empty for the whole.
    pub field: String,
    /// Where in the field, as a JSON pointer; empty for the field itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// What is wrong with it, a sentence.
    pub detail: String,
}

impl Wrong {
    /// With the field itself.
    pub fn new(field: &str, detail: impl Into<String>) -> Self {
        Self { field: field.to_owned(), pointer: String::new(), detail: detail.into() }
    }
}

/// A kind of problem that clients can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemKind {
    /// Its name, the end of `type`.
    pub name: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// The title.
    pub title: &'static str,
}

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident $status:literal $title:literal;)+) => {
        impl Problem {
            $($(#[$doc])* pub fn $name(detail: impl Into<String>) -> Self {
                let kind = concat!("urn:corpus:problem:", stringify!($name)).to_owned();
                Self { kind, title: $title.to_owned(), status: $status, detail: detail.into(), errors: Vec::new() }
            })+
        }
        /// All kinds of problems.
        pub const PROBLEMS: &[ProblemKind] =
            &[$(ProblemKind { name: stringify!($name), status: $status, title: $title }),+];
    };
}

problems! {
    /// No JSON, no object, no key of a kind that is taken.
    malformed 400 "The request can't be read";
    /// Nobody is signed in, or the token is none, expired or revoked.
    unauthenticated 401 "Sign in first";
    /// One may see it, and not do this with it.
    forbidden 403 "Your roles do not allow this";
    /// The token is not good for it.
    token_too_weak 403 "The token is not good for this";
    /// Nothing, or nothing that one may see.
    not_found 404 "There is nothing here, or it is not yours to see";
    /// Another method may.
    method_not_allowed 405 "This can't be done here";
    /// A state in which it can't be done.
    conflict 409 "It is not in a state for this";
    /// A name that another thing has.
    taken 409 "It is taken";
    /// The same request is being worked on.
    in_progress 409 "The same request is still being worked on";
    /// Somebody was faster.
    changed 412 "It was changed meanwhile";
    /// More than is taken.
    too_large 413 "The body is too large";
    /// Another type of body.
    media_type 415 "Send another content type";
    /// Fields that are wrong.
    fields 422 "Fields are wrong";
    /// A key of another request.
    key_reused 422 "The idempotency key was used for something else";
    /// A request that must say which version it means.
    version_needed 428 "Say which version is meant, with If-Match";
    /// More requests than one member may send.
    too_many_requests 429 "Too many requests";
    /// A fault of Corpus.
    internal 500 "Something failed";
    /// A later release can.
    not_yet 501 "This release can't do it yet";
    /// Something that is needed does not answer.
    unavailable 503 "Something does not answer";
}

impl Problem {
    /// Fields that are wrong.
    pub fn wrong(errors: Vec<Wrong>) -> Self {
        Self { errors, ..Self::fields("") }
    }

    /// What is said to a person: the detail, else the title.
    pub fn text(&self) -> &str {
        if self.detail.is_empty() { &self.title } else { &self.detail }
    }

    /// The name of its kind.
    pub fn word(&self) -> &str {
        self.kind.rsplit(':').next().unwrap_or_default()
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())?;
        self.errors.iter().try_for_each(|wrong| write!(f, "; {}{}: {}", wrong.field, wrong.pointer, wrong.detail))
    }
}

impl std::error::Error for Problem {}
