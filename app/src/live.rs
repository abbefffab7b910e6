//! What the event stream of a job says, as the browser reads it, and how states look: the
//! server and the browser show the same words.

use serde::{Deserialize, Serialize};

/// A change of a job; the JSON of the controller's own type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    /// The log has a new line.
    Log(Line),
    /// A step is now like this.
    Step(Step),
    /// The job is now like this.
    State(State),
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Its number.
    pub seq: i64,
    /// When, RFC 3339.
    pub at: String,
    /// `out`, `err` or `note`.
    pub stream: String,
    /// Its text.
    pub text: String,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its place, from 0.
    pub index: i32,
    /// Its stable name.
    pub name: String,
    /// What it does, for people.
    pub title: String,
    /// The word of its state.
    pub state: String,
    /// When it began, RFC 3339.
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    pub ended_at: Option<String>,
    /// Tries so far.
    pub attempts: i32,
    /// Why the effect failed.
    pub error: Option<String>,
    /// Why the undo failed.
    pub undo_error: Option<String>,
    /// How far it is.
    pub progress_done: Option<i64>,
    /// All there is to do.
    pub progress_total: Option<i64>,
    /// When it last changed, reported progress or wrote to the log, RFC 3339.
    pub alive_at: Option<String>,
}

impl Step {
    /// Whether its do or its undo is on its way.
    pub fn is_running(&self) -> bool {
        matches!(self.state.as_str(), "running" | "undoing")
    }

    /// The last sign of life of a step that runs, RFC 3339.
    pub fn last_sign(&self) -> Option<&str> {
        self.alive_at.as_deref().or(self.started_at.as_deref()).filter(|_| self.is_running())
    }

    /// How often it was tried, when more than once, and how far it is.
    pub fn remark(&self) -> String {
        let tries = (self.attempts > 1).then(|| format!("{} tries", self.attempts));
        let running = self.is_running();
        let percent = match (self.progress_done, self.progress_total) {
            (Some(done), Some(total)) if total > 0 && running => Some(format!("{}%", done.saturating_mul(100) / total)),
            _ => None,
        };
        tries.into_iter().chain(percent).collect::<Vec<_>>().join(", ")
    }
}

/// The job itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The word of its state.
    pub state: String,
}

impl State {
    /// Whether nothing more will happen by itself.
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "done" | "undone" | "stuck" | "abandoned")
    }
}

/// The class and the word that show a state of a job or a step.
pub fn look(state: &str) -> (&'static str, &'static str) {
    match state {
        "waiting" => ("status warn", "Waiting"),
        "running" => ("status busy", "Running"),
        "undoing" => ("status busy", "Undoing"),
        "done" => ("status ok", "Done"),
        "undone" => ("status back", "Undone"),
        "stuck" => ("status fail", "Stuck"),
        "abandoned" => ("status off", "Abandoned"),
        "failed" => ("status fail", "Failed"),
        "undo_failed" => ("status fail", "Undo failed"),
        _ => ("status off", "Pending"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_stream_says() {
        let json = r#"{"type":"step","index":1,"name":"spawn","title":"Spawn","state":"running","started_at":null,"ended_at":null,
            "attempts":2,"error":null,"undo_error":null,"progress_done":1,"progress_total":4,"alive_at":"2026-11-21T15:03:02Z","seq":7}"#;
        let Change::Step(step) = serde_json::from_str(json).expect("a step") else { panic!("not a step") };
        assert_eq!(step.remark(), "2 tries, 25%");
        assert_eq!(step.last_sign(), Some("2026-11-21T15:03:02Z"));
        let json = r#"{"type":"state","id":"x","state":"undone","kind":"node_link"}"#;
        assert!(matches!(serde_json::from_str(json), Ok(Change::State(state)) if state.is_over()));
    }
}
