//! From the lines of a deployment's journal to what pages show of it, without I/O.
//!
//! A guest may write into it without end: its log is cut at a size, and so is what is kept of its
//! recipes and checks. What is cut is said once.

use std::collections::BTreeSet;

use chrono::Utc;
use corpus_domain::{Bytes, DeploymentId, DeploymentState, GuestName, HookSide, Outcome, Phase, ProjectName, Trigger};
use corpus_protocol::{DeploymentEvent, Entry, PhaseReport, Proof, RecipeReport, Report, Stream, Turn};
use serde::Serialize;

use super::belief::Known;
use crate::store::deployment_log::{CUT, LogSize, NewLine};
use crate::store::deployments::DeploymentProgress;

/// Lines of a deployment's log that are kept: the agent ends its own journal at half of it.
const LOG_LINES: u64 = 100_000;
/// Bytes of text of them; a recipe tells 1.3 MB of its output at most.
const LOG_BYTES: u64 = 32 << 20;
/// Notes for the log of the job; a deployment has some dozens.
const NOTES: u32 = 1_000;
/// Bytes of what is kept of recipes and checks while it runs: written again with every batch of lines.
const DETAILS: usize = 512 << 10;
/// How often hooks hear of phases; a deployment has nine, told twice each, and again when the guest began anew.
const PHASES: u32 = 100;
/// How often more storage is asked for: an archive is made once, and again when the guest began anew.
const ROOMS: u32 = 3;
/// How often a guest leaves the balance: once on the way forward and once back, and again when it began anew.
const LEAVINGS: u32 = 4;

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
    known: Known,
    log: LogSize,
    details: usize,
    notes: u32,
    rooms: u32,
    leavings: u32,
    phases: u32,
    refused: BTreeSet<String>,
}

/// What a line means for who watches.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// A line for the log.
    pub line: Option<NewLine>,
    /// Whether anything is to be written down.
    pub is_kept: bool,
    /// A note for the log of the job.
    pub note: Option<String>,
    /// How much more storage the guest needs.
    pub needs_room: Option<Bytes>,
    /// That the guest is to leave the balance, which it waits for.
    pub leaves: Option<Turn>,
    /// The phase that begins or ended well, on that side of it.
    pub phase: Option<(Phase, HookSide)>,
    /// What the guest told that is not believed, or not kept: for the log of the job.
    pub refused: Vec<String>,
}

impl Journal {
    /// Goes on where it was left, with a log of this size.
    pub fn of(
        id: DeploymentId,
        project: &ProjectName,
        guest: &GuestName,
        progress: &DeploymentProgress,
        log: LogSize,
    ) -> Self {
        let begin = || Report {
            id,
            project: project.clone(),
            environment: progress.environment,
            state: DeploymentState::Waiting,
            trigger: progress.trigger,
            by: progress.by.clone(),
            commit: None,
            pillar: None,
            previous: None,
            commits: Vec::new(),
            plain_archive: false,
            warnings: Vec::new(),
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
        let report = progress.report.clone().unwrap_or_else(begin);
        let (known, details) = (Known::of(id, project, guest, progress), weight(&report));
        let (lines, is_over, refused) = (progress.lines, progress.is_final, BTreeSet::new());
        let (notes, rooms, leavings, phases) = (0, 0, 0, 0);
        Self { report, lines, is_over, waits_for: None, known, log, details, notes, rooms, leavings, phases, refused }
    }

    /// Whether it could go live, and waits for the decision.
    pub fn is_prepared(&self) -> bool {
        let last = self.report.phases.last();
        !self.is_over && last.is_some_and(|one| one.phase == Phase::Followers && one.outcome == Outcome::Skipped)
    }

    /// Takes the next line.
    pub fn take(&mut self, entry: Entry) -> News {
        let at = self.known.moment(entry.at_ms, Utc::now());
        let report = &mut self.report;
        let mut news = News { is_kept: true, ..News::default() };
        match entry.event {
            DeploymentEvent::Waiting { what } => {
                report.state = DeploymentState::Waiting;
                news.note = Some(format!("waits for {what}"));
                self.waits_for = Some(what);
            }
            DeploymentEvent::Begun { commit, pillar, previous, commits, plain_archive } => {
                report.plain_archive = plain_archive;
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
                news.phase = Some((phase, HookSide::Before));
                let (outcome, recipes) = (Outcome::Skipped, Vec::new());
                report.phases.push(PhaseReport { phase, outcome, began_ms: Some(at), elapsed_ms: 0, recipes });
            }
            DeploymentEvent::RecipeBegun { phase, name } => self.recipe(phase, begun(name), &mut news),
            DeploymentEvent::Line { stream, text } => {
                news.line = self.line(at, stream, text, &mut news.refused);
                news.is_kept = news.line.is_some();
            }
            DeploymentEvent::RecipeEnded { phase, recipe } => {
                let recipes = &mut of_phase(report, phase).recipes;
                recipes.pop_if(|last| last.name == recipe.name && last.outcome == Outcome::Skipped);
                news.note = recipe.reason.as_ref().map(|why| format!("{phase}: {}: {why}", recipe.name));
                self.recipe(phase, recipe, &mut news);
            }
            DeploymentEvent::Proved { proof } => self.proof(proof, &mut news),
            DeploymentEvent::Warned { text } => self.warned(text, &mut news),
            DeploymentEvent::PhaseEnded { phase, outcome, elapsed_ms } => {
                let ended = of_phase(report, phase);
                (ended.outcome, ended.elapsed_ms) = (outcome, elapsed_ms);
                news.phase = (outcome == Outcome::Done).then_some((phase, HookSide::After));
                news.note = (outcome != Outcome::Skipped).then(|| format!("{phase}: {outcome} in {elapsed_ms} ms"));
            }
            DeploymentEvent::NeedsRoom { bytes } => {
                self.rooms += 1;
                news.needs_room = (self.rooms <= ROOMS).then_some(Bytes(bytes));
            }
            DeploymentEvent::LeavesBalance { turn } => {
                self.leavings += 1;
                news.leaves = (self.leavings <= LEAVINGS).then_some(turn);
            }
            DeploymentEvent::Ended { report: whole } => news.refused = self.end(*whole),
        }
        self.said_once(&mut news);
        news
    }

    /// Takes the guest's report of the end; tells what of it is not believed.
    pub fn end(&mut self, whole: Report) -> Vec<String> {
        let (report, refused) = self.known.end(whole, self.lines, Utc::now());
        self.report = report;
        (self.is_over, self.waits_for) = (true, None);
        refused
    }

    fn line(&mut self, at: u64, stream: Stream, text: String, refused: &mut Vec<String>) -> Option<NewLine> {
        if self.log.is_cut {
            return None;
        }
        let cut = || format!("{CUT}: it has {} lines, {} MiB", self.log.lines, self.log.bytes >> 20);
        let (stream, text) = if self.log.lines < LOG_LINES && self.log.bytes < LOG_BYTES {
            (stream, text)
        } else {
            refused.push(cut());
            self.log.is_cut = true;
            (Stream::Note, CUT.to_owned())
        };
        self.log.bytes = self.log.bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.log.lines += 1;
        self.lines += 1;
        self.report.lines = self.lines;
        Some(line(self.lines, at, stream, text))
    }

    fn recipe(&mut self, phase: Phase, recipe: RecipeReport, news: &mut News) {
        if self.fits(&recipe) {
            of_phase(&mut self.report, phase).recipes.push(recipe);
        } else {
            news.refused.push("more of its recipes is not kept until it ends".to_owned());
        }
    }

    fn proof(&mut self, proof: Proof, news: &mut News) {
        let word = if proof.passed { "passed" } else { "failed" };
        news.note = Some(format!("{}: {word}, {}", proof.check, proof.seen));
        if self.fits(&proof) {
            self.report.proofs.push(proof);
        } else {
            news.refused.push("more of its checks is not kept until it ends".to_owned());
        }
    }

    fn warned(&mut self, text: String, news: &mut News) {
        if self.report.warnings.contains(&text) {
            return;
        }
        news.note = Some(format!("warning: {text}"));
        if self.fits(&text) {
            self.report.warnings.push(text);
        } else {
            news.refused.push("more of what is odd is not kept until it ends".to_owned());
        }
    }

    fn fits(&mut self, part: &impl Serialize) -> bool {
        self.details = self.details.saturating_add(weight(part));
        self.details <= DETAILS
    }

    /// The job's log hears each refusal once, and is not filled by notes.
    fn said_once(&mut self, news: &mut News) {
        news.refused.retain(|line| self.refused.insert(line.clone()));
        self.phases = self.phases.saturating_add(u32::from(news.phase.is_some()));
        if self.phases > PHASES {
            news.phase = None;
        }
        self.notes = self.notes.saturating_add(u32::from(news.note.is_some()));
        if self.notes > NOTES {
            news.note = None;
        }
    }
}

fn weight(part: &impl Serialize) -> usize {
    serde_json::to_vec(part).map_or(0, |json| json.len())
}

/// A recipe of which no end was told yet.
fn begun(name: String) -> RecipeReport {
    RecipeReport {
        name,
        outcome: Outcome::Skipped,
        elapsed_ms: 0,
        reason: None,
        lines: None,
        failing_line: None,
        states: Vec::new(),
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
    use chrono::DateTime;
    use corpus_domain::Environment;
    use corpus_protocol::{Fault, Moment, Proof};

    use super::*;

    /// When it was ordered, and when the guest tells of it.
    const ORDERED: i64 = 1_767_225_600_000;
    const NOW: u64 = 1_767_225_660_000;

    fn started() -> Journal {
        let progress = DeploymentProgress {
            number: 7,
            leader: None,
            project: uuid::Uuid::nil().into(),
            environment: Environment::Dev,
            guest: uuid::Uuid::nil().into(),
            trigger: Trigger::Push,
            ordered: None,
            by_id: Some(uuid::Uuid::nil().into()),
            by: "mia".to_owned(),
            ordered_at: DateTime::from_timestamp_millis(ORDERED).unwrap(),
            followed_since: None,
            state: DeploymentState::Waiting,
            report: None,
            is_final: false,
            journal_next: 0,
            lines: 0,
            job: None,
        };
        let (project, guest) = ("shop".parse().unwrap(), "web1.test".parse().unwrap());
        Journal::of(uuid::Uuid::nil().into(), &project, &guest, &progress, LogSize::default())
    }

    fn take(journal: &mut Journal, event: DeploymentEvent) -> News {
        journal.take(Entry { at_ms: NOW, event })
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
        let mut journal = started();
        take(&mut journal, DeploymentEvent::Waiting { what: "#6 of bob".to_owned() });
        assert_eq!(journal.waits_for.as_deref(), Some("#6 of bob"));
        take(
            &mut journal,
            DeploymentEvent::Begun {
                commit: None,
                pillar: None,
                previous: None,
                commits: Vec::new(),
                plain_archive: true,
            },
        );
        assert_eq!((journal.report.state, journal.waits_for.is_none()), (DeploymentState::Running, true));
        assert!(journal.report.plain_archive, "the followers do as the leader does");
        take(&mut journal, DeploymentEvent::PhaseBegun { phase: Phase::Install });
        take(&mut journal, DeploymentEvent::RecipeBegun { phase: Phase::Install, name: "10_app".to_owned() });
        let running = journal.report.phases.last().unwrap();
        assert_eq!((running.phase, running.outcome, running.began_ms), (Phase::Install, Outcome::Skipped, Some(NOW)));
        assert_eq!(running.recipes.len(), 1);
        let news = take(&mut journal, DeploymentEvent::Line { stream: Stream::Err, text: "oops".to_owned() });
        let line = news.line.unwrap();
        assert_eq!((line.number, line.at_ms, line.stream, line.text.as_str()), (1, NOW.cast_signed(), "err", "oops"));
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
    fn hooks_hear_of_a_phase_that_begins_and_of_one_that_ended_well() {
        let mut journal = started();
        let begun = take(&mut journal, DeploymentEvent::PhaseBegun { phase: Phase::Install });
        assert_eq!(begun.phase, Some((Phase::Install, HookSide::Before)));
        let mut ended = |outcome| {
            take(&mut journal, DeploymentEvent::PhaseEnded { phase: Phase::Install, outcome, elapsed_ms: 1 }).phase
        };
        assert_eq!(ended(Outcome::Done), Some((Phase::Install, HookSide::After)));
        assert_eq!((ended(Outcome::Failed), ended(Outcome::Skipped)), (None, None));
        let told = (0..PHASES * 2).filter_map(|_| ended(Outcome::Done)).count();
        assert_eq!(told, usize::try_from(PHASES).unwrap() - 2, "a guest can't have hooks run without end");
    }

    #[test]
    fn a_journal_goes_on_where_it_was_left_and_ends_with_the_guests_own_report() {
        let mut journal = started();
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
        (whole.ordered_ms, whole.ended_ms) = (NOW, NOW);
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
