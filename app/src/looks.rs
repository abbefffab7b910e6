//! How jobs and their steps look: the server and the browser show the same words.

use chrono::{DateTime, Utc};
use corpus_api::jobs::JobStep;
use corpus_domain::StepState;

/// The header by which a page is asked for that nobody sees: its window is hidden.
pub const UNSEEN: &str = "corpus-unseen";

/// Whether the do or the undo of a step is on its way.
pub const fn is_running(step: &JobStep) -> bool {
    matches!(step.state, StepState::Running | StepState::Undoing)
}

/// The last sign of life of a step that runs.
pub fn last_sign(step: &JobStep) -> Option<DateTime<Utc>> {
    step.alive_at.or(step.started_at).filter(|_| is_running(step))
}

/// How often a step was tried, when more than once, and how far it is.
pub fn remark(step: &JobStep) -> String {
    let tries = (step.attempts > 1).then(|| format!("{} tries", step.attempts));
    let percent = match (step.progress_done, step.progress_total) {
        (Some(done), Some(total)) if total > 0 && is_running(step) => {
            Some(format!("{}%", done.saturating_mul(100) / total))
        }
        _ => None,
    };
    tries.into_iter().chain(percent).collect::<Vec<_>>().join(", ")
}

/// The class and the word that show a state of a job or a step.
pub fn look(state: &str) -> (&'static str, &'static str) {
    match state {
        "waiting" => ("status wait", "Waiting"),
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
