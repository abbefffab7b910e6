//! What a guest tells of a deployment, against what is known of it here.
//!
//! The guest decides how its deployment ends: nobody else can know. But root in it can write into
//! the journal what they like, so it is not believed in what it could gain by: whose deployment it
//! is, who set it off and how, when it was, how much of it there is. What is known here counts; what
//! can't be is put right, and said. It never fails the job: that would leave the deployment open.

use chrono::{DateTime, Utc};
use corpus_domain::{DeploymentId, DeploymentState, Environment, GuestName, Phase, ProjectName, Trigger, plain_line};
use corpus_protocol::{Fault, Millis, Report};

use crate::store::deployments::DeploymentProgress;

/// A deployment that was pushed while Corpus was away is found later.
const EARLIEST: chrono::Duration = chrono::Duration::days(31);
/// A guest's clock is its node's, which may be ahead a little.
const AHEAD: chrono::Duration = chrono::Duration::minutes(10);

/// What is known of a deployment here.
#[derive(Debug, Clone)]
pub struct Known {
    id: DeploymentId,
    project: ProjectName,
    environment: Environment,
    guest: GuestName,
    trigger: Trigger,
    by: String,
    /// Whether it was ordered here, or pushed by a key of a member's.
    ours: bool,
    ordered_at: DateTime<Utc>,
}

impl Known {
    /// By its row.
    pub fn of(id: DeploymentId, project: &ProjectName, guest: &GuestName, progress: &DeploymentProgress) -> Self {
        Self {
            id,
            project: project.clone(),
            environment: progress.environment,
            guest: guest.clone(),
            trigger: progress.trigger,
            by: progress.by.clone(),
            ours: progress.ordered.is_some() || progress.by_id.is_some(),
            ordered_at: progress.ordered_at,
        }
    }

    /// A moment when this deployment can have been; the nearest one instead of one that is none.
    pub fn moment(&self, told: Millis, now: DateTime<Utc>) -> Millis {
        let millis = |at: DateTime<Utc>| u64::try_from(at.timestamp_millis()).unwrap_or_default();
        told.clamp(millis(self.ordered_at.min(now) - EARLIEST), millis(now + AHEAD))
    }

    /// The report of its end as it is believed, of a log of so many lines, and what is not believed.
    pub fn end(&self, told: Report, lines: u64, now: DateTime<Utc>) -> (Report, Vec<String>) {
        let mut belief = Belief { known: self, report: told, refused: Vec::new() };
        belief.whose();
        belief.who();
        belief.state();
        belief.when(now);
        belief.lines(lines);
        (belief.report, belief.refused)
    }

    fn refusal(&self, what: &str) -> String {
        format!("{} told {what}: that is not believed", self.guest)
    }
}

struct Belief<'a> {
    known: &'a Known,
    report: Report,
    refused: Vec<String>,
}

impl Belief<'_> {
    fn refuse(&mut self, what: &str) {
        self.refused.push(self.known.refusal(what));
    }

    fn whose(&mut self) {
        let Known { id, project, environment, .. } = self.known;
        if self.report.id != *id {
            self.refuse(&format!("of another deployment, {}", self.report.id));
        }
        if (&self.report.project, self.report.environment) != (project, *environment) {
            self.refuse(&format!("of {} in {}", self.report.project, self.report.environment));
        }
        (self.report.id, self.report.environment) = (*id, *environment);
        self.report.project.clone_from(project);
    }

    /// Of what was pushed to the guest itself only the guest can tell who it was, and it is said that it did.
    fn who(&mut self) {
        let Known { trigger, by, ours, guest, .. } = self.known;
        let told = (self.report.trigger, self.report.by.clone());
        self.report.trigger = match told.0 {
            // By hand on the guest itself; a drill, which counts in no statistics, is begun here only.
            hand @ (Trigger::Push | Trigger::Hand | Trigger::Restore) if !ours => hand,
            _ => *trigger,
        };
        self.report.by = if *ours { by.clone() } else { told_by(&told.1, guest) };
        if self.report.trigger != told.0 {
            self.refuse(&format!("that it was set off by {}, which was {}", told.0, self.report.trigger));
        }
        if *ours && *by != told.1 {
            self.refuse(&format!("that it was by {}, which was {by}", plain_line(&told.1, 100)));
        }
    }

    fn state(&mut self) {
        let state = self.report.state;
        if state.is_over() {
            return;
        }
        self.refuse(&format!("that it is over and {state}"));
        self.report.state = DeploymentState::Broken;
        let phase = self.report.phases.last().map_or(Phase::Notify, |last| last.phase);
        let message = format!("the guest told its end as {state}, which is none; a person must look at the guest");
        self.report.fault = Some(Fault { phase, recipe: None, message, line: None });
    }

    fn when(&mut self, now: DateTime<Utc>) {
        let told = (self.report.ordered_ms, self.report.began_ms, self.report.ended_ms);
        let moment = |told| self.known.moment(told, now);
        let ended = moment(told.2);
        // What never began has no such moment.
        let began = if told.1 == 0 { 0 } else { moment(told.1).min(ended) };
        let report = &mut self.report;
        (report.ordered_ms, report.began_ms, report.ended_ms) = (moment(told.0).min(ended), began, ended);
        let phases = report.phases.iter_mut().filter_map(|phase| phase.began_ms.as_mut());
        phases.for_each(|at| *at = moment(*at));
        let latest = moment(Millis::MAX);
        report.commits.iter_mut().for_each(|commit| commit.at_ms = commit.at_ms.min(latest));
        report.archives.iter_mut().for_each(|archive| archive.at_ms = archive.at_ms.min(latest));
        report.live.iter_mut().for_each(|live| live.since_ms = live.since_ms.min(latest));
        if (report.ordered_ms, report.began_ms, report.ended_ms) != told {
            self.refuse("of a time when it can't have been");
        }
    }

    /// A page leads to the lines that are named.
    fn lines(&mut self, lines: u64) {
        let there = |line: &mut Option<u64>| *line = line.filter(|line| (1..=lines).contains(line));
        self.report.lines = lines;
        if let Some(fault) = &mut self.report.fault {
            there(&mut fault.line);
        }
        for recipe in self.report.phases.iter_mut().flat_map(|phase| &mut phase.recipes) {
            there(&mut recipe.failing_line);
            recipe.lines = recipe.lines.filter(|(first, last)| 1 <= *first && first <= last && *last <= lines);
        }
    }
}

/// A name that only the guest vouches for is no member's.
fn told_by(by: &str, guest: &GuestName) -> String {
    if by.is_empty() { String::new() } else { format!("{} (as {guest} tells)", plain_line(by, 100)) }
}
