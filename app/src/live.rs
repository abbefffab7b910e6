//! What the event stream of a job says, and how the page shows the same: one shape for both.

use serde::{Deserialize, Serialize};

/// A line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvent {
    /// Its place in the log; also the id of the event.
    pub seq: i64,
    /// When, RFC 3339.
    pub at: String,
    /// The step that wrote it.
    pub step: Option<String>,
    /// `out`, `err` or `note`.
    pub stream: String,
    /// The line.
    pub text: String,
}

/// A job with its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEvent {
    /// The word of its state.
    pub state: String,
    /// Whether nothing more will happen by itself.
    pub over: bool,
    /// In order.
    pub steps: Vec<StepEvent>,
}

/// A step of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEvent {
    /// Its stable name.
    pub name: String,
    /// What it does, for people.
    pub title: String,
    /// The word of its state.
    pub state: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it began, RFC 3339.
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    pub ended_at: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

/// The class and the word that show a state of a job or a step.
pub fn look(state: &str) -> (&'static str, &'static str) {
    match state {
        "waiting" => ("status warn", "Waiting"),
        "running" => ("status busy", "Running"),
        "undoing" => ("status busy", "Undoing"),
        "done" => ("status ok", "Done"),
        "undone" => ("status fail", "Undone"),
        "stuck" => ("status fail", "Stuck"),
        "abandoned" => ("status off", "Abandoned"),
        "failed" => ("status fail", "Failed"),
        "undo_failed" => ("status fail", "Undo failed"),
        _ => ("status off", "Pending"),
    }
}
