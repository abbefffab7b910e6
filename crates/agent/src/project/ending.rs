//! The end of a deployment: everybody is told, the report is written, what is old goes.

use corpus_domain::{DeploymentState, Outcome, Phase, Trigger};
use corpus_protocol::{DeploymentEvent, Fault, Live, Report, Source};

use crate::failure::Failure;
use crate::files;
use crate::project::archive::{self, Archive};
use crate::project::rotation::{FailedTree, Retention};
use crate::project::run::Run;
use crate::project::{git, order, saved};
use crate::task::Cancel;

/// The records of older deployments go.
const MAX_RECORDS: usize = 100;

impl Run<'_> {
    /// The notify phase; what it does decides nothing.
    pub fn tell_everyone(&mut self, state: DeploymentState, fault: Option<&Fault>) {
        if !self.wants(Phase::Notify) {
            return;
        }
        self.cancel = std::sync::Arc::new(Cancel::default());
        let report = self.report(state, fault.cloned());
        let path = self.notify_path();
        self.ending = Some(state);
        let _ = saved::write(&path, &report);
        let told = self.phase(Phase::Notify, |run, span| {
            run.say_result(state, fault);
            run.recipes(span, &run.found()?, Phase::Notify)?;
            Ok(Outcome::Done)
        });
        let _ = files::remove(&path);
        if let Err(fault) = told {
            self.journal().note(format!("notify failed, which changes nothing else: {}", fault.message));
        }
    }

    /// The report for the notify recipe.
    pub fn notify_path(&self) -> std::path::PathBuf {
        self.layout.deployment(self.id()).join("notify.json")
    }

    fn say_result(&self, state: DeploymentState, fault: Option<&Fault>) {
        let commit = self.target.commit.as_ref().map_or("no commit", |commit| commit.short());
        let text = match (state, fault) {
            (DeploymentState::Live, _) => format!("{commit} is live"),
            (_, Some(fault)) => format!("{commit} is not live: {} failed: {}", fault.phase, fault.message),
            _ => format!("{commit} is not live"),
        };
        self.journal().note(text);
    }

    /// Writes the end: the branch first, so that it follows what is live whoever watches.
    pub fn end(&mut self, state: DeploymentState, fault: Option<Fault>) -> Result<(), Failure> {
        let id = self.id();
        self.use_reserve();
        let _ = files::remove(&self.layout.deployment(id).join("configuration.json"));
        let calm = Cancel::default();
        let report = self.report(state, fault);
        if let Err(failure) = self.with_task(&calm, |task| git::settle(self.layout, &report, task)) {
            self.journal().note(format!("the branch could not be set: {failure}"));
        }
        if matches!(self.ordered.order.source, Source::Release { .. })
            && let Err(failure) = self.with_task(&calm, |task| git::forget_release(self.layout, id, task))
        {
            self.journal().note(format!("what was brought for it could not be forgotten: {failure}"));
        }
        self.clean_up(state);
        let mut report = self.report(state, report.fault);
        report.archives = archive::list(self.layout)?;
        self.write_end(&report)?;
        let written = self.journal().progress().report.clone().unwrap_or(report);
        saved::write(&self.layout.report(id), &written)
    }

    /// Writes the end. Should the disk be full, what the failed tree takes is given for it.
    fn write_end(&self, report: &Report) -> Result<(), Failure> {
        let first = self.journal().end(report.clone());
        if first.is_ok() {
            return first;
        }
        files::remove_folder(&Archive::of(self.layout, self.id()).failed())?;
        self.journal().end(Report { failed_tree: None, ..report.clone() })
    }

    /// Removes archives and records that need not be kept.
    fn clean_up(&self, state: DeploymentState) {
        if state == DeploymentState::Superseded {
            return;
        }
        if let Err(failure) = self.sweep_archives(state) {
            self.journal().note(format!("old archives stay for now: {failure}"));
        }
        let id = self.id();
        let mut ids = archive::ids(&self.layout.deployments());
        ids.sort_unstable();
        let over = ids.len().saturating_sub(MAX_RECORDS);
        let mut old = ids.into_iter().take(over).filter(|old| *old != id && order::is_over(self.layout, *old));
        old.by_ref().for_each(|old| drop(files::remove_folder(&self.layout.deployment(old))));
    }

    /// Archives and failed trees that need not be kept go. Everything is decided by now, and on the disk: what this
    /// deployment archived is not needed to put things back any more, unless that went wrong.
    fn sweep_archives(&self, state: DeploymentState) -> Result<(), Failure> {
        let (id, kept) = (self.id(), self.configuration.archives()?);
        let own = Archive::of(self.layout, id);
        let is_broken = state == DeploymentState::Broken;
        let is_asked_for = state == DeploymentState::Live && !self.wants(Phase::ReleaseSync);
        if is_broken || (is_asked_for && self.wants(Phase::Archive)) {
            own.count_alone()?;
        } else if !self.wants(Phase::Archive) {
            own.forget()?;
        }
        if self.ordered.order.trigger == Trigger::Drill {
            // What was broken on purpose tells nobody anything.
            files::remove_folder(&own.failed())?;
        }
        let live: Option<Live> = saved::read(&self.layout.live())?;
        let failed_tree = if kept == 0 { FailedTree::Of(id) } else { FailedTree::Newest };
        let in_use = if is_broken { vec![id] } else { vec![] };
        let rule = Retention { kept, live: live.as_ref(), in_use: &in_use, failed_tree: Some(failed_tree) };
        archive::sweep(self.layout, &rule)
    }

    /// The report as far as it is known.
    pub fn report(&self, state: DeploymentState, fault: Option<Fault>) -> Report {
        let journal = self.journal();
        let progress = journal.progress();
        let (ordered, now) = (&self.ordered.order, saved::now());
        let commits = match &progress.begun {
            Some(DeploymentEvent::Begun { commits, .. }) => commits.clone(),
            _ => Vec::new(),
        };
        let failed = Archive::of(self.layout, ordered.id).failed();
        let failed = failed
            .exists()
            .then(|| failed.strip_prefix(self.layout.home()).ok().map(|path| path.to_string_lossy().into_owned()));
        Report {
            id: ordered.id,
            project: ordered.project.clone(),
            environment: self.plan.environment,
            state,
            trigger: ordered.trigger,
            by: ordered.by.clone(),
            commit: self.target.commit.clone(),
            pillar: self.target.pillar.clone(),
            previous: self.target.previous.as_ref().and_then(|live| live.commit.clone()),
            commits,
            plain_archive: ordered.plain_archive,
            warnings: progress.warnings.clone(),
            ordered_ms: self.ordered.ordered_ms,
            began_ms: progress.began_ms.unwrap_or(now),
            ended_ms: now,
            phases: progress.all_phases(),
            fault,
            proofs: progress.proofs.clone(),
            live: saved::read(&self.layout.live()).ok().flatten(),
            failed_tree: failed.flatten(),
            archives: archive::list(self.layout).unwrap_or_default(),
            lines: progress.lines,
        }
    }
}
