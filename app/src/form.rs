//! What a form handler tells the page that answers it: what was typed, what was wrong with it.
//!
//! A form is never lost: a refused one comes back with every value as sent (secrets left out),
//! each error beside its field and in a summary at the top that links to the fields.

use corpus_api::{Denied, Problem};
use corpus_controller::Error;
use serde::{Deserialize, Serialize};

/// A form that is shown again. It is kept as it is here, for the page that shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormState {
    /// Which form of the page; empty when the page has one.
    pub form: String,
    /// What was typed, as sent, without secrets.
    pub values: Vec<(String, String)>,
    /// Field name and message.
    pub errors: Vec<(String, String)>,
    /// What is wrong with the whole of it.
    pub message: Option<String>,
    /// The status of the answer; 0 when no form was sent.
    pub status: u16,
}

impl FormState {
    /// A refused form, by default with the status 422.
    pub fn new(form: impl Into<String>, values: Vec<(String, String)>) -> Self {
        Self { form: form.into(), values, status: 422, ..Self::default() }
    }

    /// Adds an error beside a field.
    #[must_use]
    pub fn error(mut self, field: impl Into<String>, message: impl Into<String>) -> Self {
        self.errors.push((field.into(), message.into()));
        self
    }

    /// Says what is wrong with the whole.
    #[must_use]
    pub fn message(mut self, text: impl Into<String>) -> Self {
        self.message = Some(text.into());
        self
    }

    /// Sets the status of the answer.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Takes over what was answered: each field that is wrong, or what is wrong with the whole.
    #[must_use]
    pub fn with_problem(mut self, problem: &Problem) -> Self {
        for wrong in &problem.errors {
            self.errors.push((wrong.field.clone(), wrong.detail.clone()));
        }
        if self.errors.is_empty() {
            self.message = Some(problem.text().to_owned());
        }
        self.status(problem.status)
    }

    /// The same for an error.
    #[must_use]
    pub fn with_error(self, error: &Error) -> Self {
        self.with_problem(&Problem::from(error))
    }

    /// The first value of a field.
    pub fn value(&self, field: &str) -> Option<&str> {
        self.values.iter().find(|(name, _)| name == field).map(|(_, value)| value.as_str())
    }

    /// All values of a field.
    pub fn all<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a str> {
        self.values.iter().filter(move |(name, _)| name == field).map(|(_, value)| value.as_str())
    }

    /// The error beside a field.
    pub fn error_at(&self, field: &str) -> Option<&str> {
        self.errors.iter().find(|(name, _)| name == field).map(|(_, message)| message.as_str())
    }

    /// Whether it is shown again though nothing refused it: it came when the session had ended.
    pub const fn was_held_up(&self) -> bool {
        self.was_sent() && self.status < 400
    }

    /// The version that the form changes: that of what the person saw, since what another one changed
    /// meanwhile is not to be undone unseen. Once this was said it is that of now.
    pub fn version(&self, now: impl std::fmt::Display) -> String {
        let seen = self.value("version").filter(|seen| !seen.is_empty() && !self.was_too_late());
        seen.map_or_else(|| now.to_string(), str::to_owned)
    }

    /// Whether it was refused since somebody was faster.
    pub const fn was_too_late(&self) -> bool {
        self.status == 412
    }

    /// This state, unless somebody was faster: then what is so now is shown, and not what was chosen.
    #[must_use]
    pub fn unless_too_late(&self) -> Self {
        if self.was_too_late() { Self::default() } else { self.clone() }
    }

    /// Whether a form came back, so that what was typed goes before what is suggested.
    pub const fn was_sent(&self) -> bool {
        self.status != 0
    }

    /// This state if it belongs to `form`, else an empty one.
    #[must_use]
    pub fn of(&self, form: &str) -> Self {
        if self.form == form { self.clone() } else { Self::default() }
    }
}

/// A page that says why there is no other page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The status of the answer.
    pub status: u16,
    /// The heading.
    pub title: String,
    /// What happened, and what to do next.
    pub message: String,
}

/// A page, or why there is none.
pub type Result<T> = std::result::Result<T, Failure>;

impl From<&Problem> for Failure {
    fn from(problem: &Problem) -> Self {
        let title = match problem.status {
            404 => "Not found",
            403 => "Not permitted",
            409 => "Not now",
            422 => "Not accepted",
            503 => "Something does not answer",
            _ => "Something failed",
        };
        Self { status: problem.status, title: title.to_owned(), message: sentence(problem.text()) }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::from(&problem)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self::from(&Problem::from(error))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let problem = Problem::from(&error);
        if problem.status >= 500 {
            tracing::error!(error = &error as &dyn std::error::Error, "a page could not be read");
        }
        Self::from(problem)
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        Self::from(&Problem::from(&Error::from(denied)))
    }
}

/// The HTTP status that says the same as `error`.
pub fn status_of(error: &Error) -> u16 {
    Problem::from(error).status
}

pub use corpus_controller::sentence;

/// What a form answered that holds a secret, shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct Answered(pub serde_json::Value);

impl Answered {
    /// As the answer of an operation; none if it is of another one.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&self.0).ok()
    }
}

impl std::fmt::Debug for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answered(…)")
    }
}

/// What one can sign in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realms {
    /// Whether a directory is configured.
    pub ldap: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_find_their_field() {
        let state = FormState::new("", vec![("name".into(), "x".into())]).with_error(&Error::field("name", "taken"));
        assert_eq!(state.error_at("name"), Some("Taken."));
        assert_eq!((state.status, state.message), (422, None));
    }

    #[test]
    fn what_another_one_changed_is_not_undone_unseen() {
        let sent = FormState::new("", vec![("version".into(), "seen".into())]);
        assert_eq!(FormState::default().version("now"), "now");
        assert_eq!(sent.version("now"), "seen");
        let told = sent.status(412);
        assert_eq!((told.version("now"), told.unless_too_late()), ("now".into(), FormState::default()));
    }

    #[test]
    fn the_status_says_what_happened() {
        let conflict = FormState::new("", vec![]).with_error(&Error::Conflict("a job is on it".into()));
        assert_eq!((conflict.status, conflict.message.as_deref()), (409, Some("A job is on it.")));
        assert_eq!(Failure::from(&Error::Denied(Denied::NotFound)).status, 404);
    }

    #[test]
    fn sentences_leave_names_alone() {
        assert_eq!(sentence("the node is cut"), "The node is cut.");
        assert_eq!(sentence("node-07.example.net did not answer"), "node-07.example.net did not answer.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn an_answered_secret_is_not_logged() {
        assert!(!format!("{:?}", Answered(serde_json::json!("hunter2"))).contains("hunter2"));
    }
}
