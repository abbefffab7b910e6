//! A deployment for a terminal: a line a phase and recipe with its time, output indented below.
//!
//! ```text
//! sync      done  0.1 s
//! install   10_venv
//!     Collecting flask
//! install   10_venv  done  9.9 s
//! ```

use corpus_domain::{Bytes, DeploymentState, Outcome, Phase};
use corpus_protocol::{DeploymentEvent, Entry, Moment, Proof, Report, Stream};

/// Turns entries into lines.
#[derive(Debug, Default)]
pub struct Render {
    phase: Option<Phase>,
}

impl Render {
    /// The lines of an entry; none for what people need not read.
    pub fn lines(&mut self, entry: &Entry) -> Vec<String> {
        match &entry.event {
            DeploymentEvent::Waiting { what } => vec![format!("waiting for {what}")],
            DeploymentEvent::Begun { commit, previous, commits, .. } => {
                let commit = commit.as_ref().map_or("no commit", |commit| commit.short());
                let was = previous.as_ref().map_or("nothing was live".into(), |was| format!("{} is live", was.short()));
                let mut lines = vec![format!("deploying {commit}; {was}")];
                lines.extend(
                    commits.iter().take(10).map(|commit| format!("    {} {}", commit.id.short(), commit.subject)),
                );
                lines
            }
            DeploymentEvent::PhaseBegun { phase } => {
                self.phase = Some(*phase);
                Vec::new()
            }
            DeploymentEvent::RecipeBegun { phase, name } => vec![format!("{:<13} {name}", phase.as_str())],
            DeploymentEvent::Line { stream, text } => {
                let mark = if *stream == Stream::Note { "  " } else { "    " };
                vec![format!("{mark}{text}")]
            }
            DeploymentEvent::RecipeEnded { phase, recipe } => {
                let reason = recipe.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                vec![ended(*phase, Some(&recipe.name), recipe.outcome, recipe.elapsed_ms) + &reason]
            }
            DeploymentEvent::Proved { proof } => vec![proved(proof)],
            DeploymentEvent::Warned { text } => vec![format!("warning: {text}")],
            DeploymentEvent::NeedsRoom { bytes } => vec![format!("waiting for {} more storage", Bytes(*bytes).gib())],
            DeploymentEvent::LeavesBalance { .. } => vec!["leaving the balance; its visitors go elsewhere".to_owned()],
            DeploymentEvent::PhaseEnded { phase, outcome, elapsed_ms } => {
                vec![ended(*phase, None, *outcome, *elapsed_ms)]
            }
            DeploymentEvent::Ended { report } => result(report),
        }
    }
}

fn ended(phase: Phase, recipe: Option<&str>, outcome: Outcome, elapsed_ms: u64) -> String {
    let recipe = recipe.map_or(String::new(), |name| format!("{name}  "));
    format!("{:<13} {recipe}{outcome}  {}", phase.as_str(), seconds(elapsed_ms))
}

fn proved(proof: &Proof) -> String {
    let moment = match proof.moment {
        Moment::Before => "before",
        Moment::After => "after",
        Moment::RolledBack => "rolled back",
    };
    let passed = if proof.passed { "passed" } else { "failed" };
    format!("  check {moment}: {}: {passed}, {}", proof.check, proof.seen)
}

fn result(report: &Report) -> Vec<String> {
    let commit = report.commit.as_ref().map_or("no commit", |commit| commit.short());
    let took = seconds(report.ended_ms.saturating_sub(report.began_ms));
    let mut lines = Vec::new();
    if let Some(fault) = &report.fault {
        let recipe = fault.recipe.as_ref().map_or(String::new(), |name| format!(" at {name}"));
        lines.push(format!("{} failed{recipe}: {}", fault.phase, fault.message));
    }
    let live = report.live.as_ref().and_then(|live| live.commit.as_ref());
    let is_live = live.map_or("nothing is live".into(), |commit| format!("{} is live", commit.short()));
    lines.push(match report.state {
        DeploymentState::Live => format!("{commit} is live after {took}"),
        DeploymentState::RolledBack => format!("{commit} was rolled back after {took}; {is_live}"),
        DeploymentState::Superseded => format!("{commit} was superseded: a later deployment waits; {is_live}"),
        state => format!("{commit} is {state} after {took}: the rollback failed too, look at the guest"),
    });
    lines
}

fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_with_their_times() {
        let mut render = Render::default();
        let event = DeploymentEvent::PhaseEnded { phase: Phase::Install, outcome: Outcome::Done, elapsed_ms: 9950 };
        assert_eq!(render.lines(&Entry { at_ms: 0, event }), ["install       done  9.9 s"]);
        let event = DeploymentEvent::Line { stream: Stream::Out, text: "hello".into() };
        assert_eq!(render.lines(&Entry { at_ms: 0, event }), ["    hello"]);
    }
}
