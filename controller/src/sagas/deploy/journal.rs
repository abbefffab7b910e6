//! From the lines of a deployment's journal to what pages show of it, without I/O.

use corpus_domain::{Bytes, DeploymentId, DeploymentState, Outcome, Phase, ProjectName, Trigger};
use corpus_protocol::{DeploymentEvent, Entry, PhaseReport, RecipeReport, Report, Stream};

use crate::store::deployment_log::NewLine;
use crate::store::deployments::Course;

/// How far a deployment has come, by the lines of its journal so far.
#[derive(Debug, Clone)]
pub struct Journal {
    /// The report as far as it has come. While the deployment runs, the last of its phases is
    /// the one that runs, and so is the last recipe of that: `skipped` until they end.
    pub report: Report,
    /// How many log lines there were.
    pub lines: u64,
    /// Whether the last line was there.
    pub is_over: bool,
    /// What it waits for.
    pub waits_for: Option<String>,
}

/// What a line means for who watches.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// A line for the log.
    pub line: Option<NewLine>,
    /// A note for the log of the job.
    pub note: Option<String>,
    /// How much more storage the guest needs.
    pub needs_room: Option<Bytes>,
}

impl Journal {
    /// Goes on where it was left.
    pub fn of(id: DeploymentId, project: &ProjectName, course: &Course) -> Self {
        let begin = || Report {
            id,
            project: project.clone(),
            environment: course.environment,
            state: DeploymentState::Waiting,
            trigger: course.trigger,
            by: course.by.clone(),
            commit: None,
            pillar: None,
            previous: None,
            commits: Vec::new(),
            ordered_ms: 0,
            began_ms: 0,
            ended_ms: 0,
            phases: Vec::new(),
            fault: None,
            proofs: Vec::new(),
            live: None,
            failed_tree: None,
            archives: Vec::new(),
            lines: 0,
        };
        let report = course.report.clone().unwrap_or_else(begin);
        Self { report, lines: course.lines, is_over: course.is_final, waits_for: None }
    }

    /// Whether it could go live, and holds for the other guests.
    pub fn holds(&self) -> bool {
        let last = self.report.phases.last();
        !self.is_over && last.is_some_and(|one| one.phase == Phase::Others && one.outcome == Outcome::Skipped)
    }

    /// Takes the next line.
    pub fn take(&mut self, entry: Entry) -> News {
        let at = entry.at_ms;
        let report = &mut self.report;
        let mut news = News::default();
        match entry.event {
            DeploymentEvent::Waiting { what } => {
                report.state = DeploymentState::Waiting;
                news.note = Some(format!("waits for {what}"));
                self.waits_for = Some(what);
            }
            DeploymentEvent::Begun { commit, pillar, previous, commits } => {
                report.state = DeploymentState::Running;
                report.began_ms = at;
                (report.commit, report.pillar) = (commit, pillar);
                (report.previous, report.commits) = (previous, commits);
                self.waits_for = None;
            }
            DeploymentEvent::PhaseBegun { phase } => {
                if phase == Phase::Rollback {
                    report.state = DeploymentState::RollingBack;
                }
                report.phases.retain(|one| one.phase != phase);
                let (outcome, recipes) = (Outcome::Skipped, Vec::new());
                report.phases.push(PhaseReport { phase, outcome, began_ms: Some(at), elapsed_ms: 0, recipes });
            }
            DeploymentEvent::RecipeBegun { phase, name } => {
                let begun = RecipeReport {
                    name,
                    outcome: Outcome::Skipped,
                    elapsed_ms: 0,
                    reason: None,
                    lines: None,
                    failing_line: None,
                    states: Vec::new(),
                };
                of_phase(report, phase).recipes.push(begun);
            }
            DeploymentEvent::Line { stream, text } => {
                self.lines += 1;
                report.lines = self.lines;
                news.line = Some(line(self.lines, at, stream, text));
            }
            DeploymentEvent::RecipeEnded { phase, recipe } => {
                let recipes = &mut of_phase(report, phase).recipes;
                recipes.pop_if(|last| last.name == recipe.name && last.outcome == Outcome::Skipped);
                news.note = recipe.reason.as_ref().map(|why| format!("{phase}: {}: {why}", recipe.name));
                recipes.push(recipe);
            }
            DeploymentEvent::Proved { proof } => {
                let word = if proof.passed { "passed" } else { "failed" };
                news.note = Some(format!("{}: {word}, {}", proof.check, proof.seen));
                report.proofs.push(proof);
            }
            DeploymentEvent::PhaseEnded { phase, outcome, elapsed_ms } => {
                let ended = of_phase(report, phase);
                (ended.outcome, ended.elapsed_ms) = (outcome, elapsed_ms);
                news.note = (outcome != Outcome::Skipped).then(|| format!("{phase}: {outcome} in {elapsed_ms} ms"));
            }
            DeploymentEvent::NeedsRoom { bytes } => news.needs_room = Some(Bytes(bytes)),
            DeploymentEvent::Ended { report: whole } => {
                *report = *whole;
                (self.is_over, self.waits_for) = (true, None);
            }
        }
        news
    }
}

/// The phase's report; a phase of which no begin was told is added.
fn of_phase(report: &mut Report, phase: Phase) -> &mut PhaseReport {
    let at = report.phases.iter().position(|one| one.phase == phase).unwrap_or(report.phases.len());
    let (outcome, recipes) = (Outcome::Skipped, Vec::new());
    let absent = PhaseReport { phase, outcome, began_ms: None, elapsed_ms: 0, recipes };
    if at == report.phases.len() {
        report.phases.push(absent);
    }
    #[expect(clippy::indexing_slicing, reason = "it was found there or was just added")]
    &mut report.phases[at]
}

fn line(number: u64, at_ms: u64, stream: Stream, text: String) -> NewLine {
    let stream = match stream {
        Stream::Out => "out",
        Stream::Err => "err",
        Stream::Note => "note",
    };
    NewLine { number: signed(number), at_ms: signed(at_ms), stream, text }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Why a deployment did not go live: where it failed, and how.
pub fn reason(report: &Report) -> String {
    let why = report.fault.as_ref().map(|fault| match &fault.recipe {
        Some(recipe) => format!("{}: {recipe}: {}", fault.phase, fault.message),
        None => format!("{}: {}", fault.phase, fault.message),
    });
    why.unwrap_or_else(|| "no reason was told".to_owned())
}

/// How a deployment that ended without going live is told to who waits for it.
pub fn verdict(report: &Report) -> String {
    let why = reason(report);
    match report.state {
        DeploymentState::RolledBack if report.trigger == Trigger::Drill => {
            format!("broken on purpose, and everything is back as it was ({why})")
        }
        DeploymentState::RolledBack => format!("{why}; everything is back as it was"),
        DeploymentState::Broken => format!("{why}; putting things back failed too, a person must look at the guest"),
        DeploymentState::Superseded => "a later deployment came while it waited; it never ran".to_owned(),
        state => format!("it ended {state}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use corpus_domain::Environment;
    use corpus_protocol::{Fault, Moment, Proof};

    use super::*;

    fn begun() -> Journal {
        let course = Course {
            number: 7,
            leader: None,
            project: uuid::Uuid::nil().into(),
            environment: Environment::Dev,
            guest: uuid::Uuid::nil().into(),
            trigger: Trigger::Push,
            ordered: None,
            by: "mia".to_owned(),
            state: DeploymentState::Waiting,
            report: None,
            is_final: false,
            journal_next: 0,
            lines: 0,
            job: None,
        };
        Journal::of(uuid::Uuid::nil().into(), &"shop".parse().unwrap(), &course)
    }

    fn take(journal: &mut Journal, event: DeploymentEvent) -> News {
        journal.take(Entry { at_ms: 5_000, event })
    }

    fn recipe(outcome: Outcome, reason: Option<&str>) -> RecipeReport {
        RecipeReport {
            name: "10_app".to_owned(),
            outcome,
            elapsed_ms: 3,
            reason: reason.map(str::to_owned),
            lines: Some((1, 1)),
            failing_line: None,
            states: Vec::new(),
        }
    }

    #[test]
    fn what_runs_is_the_last() {
        let mut journal = begun();
        take(&mut journal, DeploymentEvent::Waiting { what: "#6 of bob".to_owned() });
        assert_eq!(journal.waits_for.as_deref(), Some("#6 of bob"));
        take(&mut journal, DeploymentEvent::Begun { commit: None, pillar: None, previous: None, commits: Vec::new() });
        assert_eq!((journal.report.state, journal.waits_for.is_none()), (DeploymentState::Running, true));
        take(&mut journal, DeploymentEvent::PhaseBegun { phase: Phase::Install });
        take(&mut journal, DeploymentEvent::RecipeBegun { phase: Phase::Install, name: "10_app".to_owned() });
        let running = journal.report.phases.last().unwrap();
        assert_eq!((running.phase, running.outcome, running.began_ms), (Phase::Install, Outcome::Skipped, Some(5_000)));
        assert_eq!(running.recipes.len(), 1);
        let news = take(&mut journal, DeploymentEvent::Line { stream: Stream::Err, text: "oops".to_owned() });
        let line = news.line.unwrap();
        assert_eq!((line.number, line.at_ms, line.stream, line.text.as_str()), (1, 5_000, "err", "oops"));
        let failed = recipe(Outcome::Failed, Some("exit status 1"));
        let news = take(&mut journal, DeploymentEvent::RecipeEnded { phase: Phase::Install, recipe: failed.clone() });
        assert_eq!(news.note.as_deref(), Some("install: 10_app: exit status 1"));
        assert_eq!(journal.report.phases.last().unwrap().recipes, [failed], "once, not twice");
        let ended = DeploymentEvent::PhaseEnded { phase: Phase::Install, outcome: Outcome::Failed, elapsed_ms: 9 };
        assert_eq!(take(&mut journal, ended).note.as_deref(), Some("install: failed in 9 ms"));
        take(&mut journal, DeploymentEvent::PhaseBegun { phase: Phase::Rollback });
        assert_eq!(journal.report.state, DeploymentState::RollingBack);
    }

    #[test]
    fn a_journal_goes_on_where_it_was_left_and_ends_with_the_guests_own_report() {
        let mut journal = begun();
        take(&mut journal, DeploymentEvent::Line { stream: Stream::Out, text: "one".to_owned() });
        let news = take(&mut journal, DeploymentEvent::Line { stream: Stream::Out, text: "two".to_owned() });
        assert_eq!(news.line.unwrap().number, 2);
        let proof = Proof {
            moment: Moment::After,
            check: "GET http://www.example.org/".to_owned(),
            passed: false,
            seen: "HTTP 502".to_owned(),
            elapsed_ms: 1,
        };
        let news = take(&mut journal, DeploymentEvent::Proved { proof });
        assert_eq!(news.note.as_deref(), Some("GET http://www.example.org/: failed, HTTP 502"));
        let skipped = DeploymentEvent::PhaseEnded { phase: Phase::Sync, outcome: Outcome::Skipped, elapsed_ms: 0 };
        assert_eq!(take(&mut journal, skipped).note, None);
        assert_eq!(journal.report.phases.last().unwrap().began_ms, None);
        let mut whole = journal.report.clone();
        whole.state = DeploymentState::RolledBack;
        let message = "exit status 1".to_owned();
        whole.fault = Some(Fault { phase: Phase::Install, recipe: Some("10_app".to_owned()), message, line: Some(1) });
        take(&mut journal, DeploymentEvent::Ended { report: Box::new(whole.clone()) });
        assert!(journal.is_over);
        assert_eq!(journal.report, whole);
        assert_eq!(verdict(&whole), "install: 10_app: exit status 1; everything is back as it was");
        whole.trigger = Trigger::Drill;
        assert!(verdict(&whole).starts_with("broken on purpose"));
        whole.state = DeploymentState::Broken;
        assert!(verdict(&whole).contains("a person must look"));
    }
}
