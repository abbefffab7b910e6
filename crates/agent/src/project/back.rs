//! The rollback: code, pillar and data are as they were, and what is live answers as before.

use corpus_domain::{Bytes, DeploymentState, Outcome, Phase};
use corpus_protocol::{Fault, Moment, Turn};

use crate::failure::Failure;
use crate::files;
use crate::project::archive::{self, Archive};
use crate::project::configuration::Configuration;
use crate::project::run::Run;
use crate::project::steps::{Span, Stop};
use crate::project::{leftovers, restore, saved};

impl Run<'_> {
    /// Puts everything back; tells whether that went well.
    pub fn back(&mut self, fault: &Fault) -> Result<DeploymentState, Failure> {
        if self.is_back() {
            return Ok(DeploymentState::RolledBack);
        }
        self.use_reserve();
        let _ = saved::write(&self.fault_path(), fault);
        leftovers::end_leftovers(&self.id().to_string());
        // What failed has no say in how long it may take to be rid of it.
        if let Ok(Some(live)) = Configuration::live(self.layout) {
            self.configuration = live;
        }
        // Nothing ends a rollback but its own limit.
        self.cancel = std::sync::Arc::default();
        if self.may_be_visited() {
            let _ = self.leave_balance(Turn::Back);
        }
        let gone_back = self.phase(Phase::Rollback, Self::roll_back);
        Ok(match gone_back {
            Ok(()) => DeploymentState::RolledBack,
            Err(fault) => {
                self.journal().note(format!("the rollback failed: {}", fault.message));
                DeploymentState::Broken
            }
        })
    }

    /// Whether a runner before this one put everything back: the archive may be gone since.
    fn is_back(&self) -> bool {
        let journal = self.journal();
        let rolled_back = journal.progress().phases.iter().find(|report| report.phase == Phase::Rollback);
        rolled_back.is_some_and(|report| report.outcome == Outcome::Done)
    }

    fn roll_back(&mut self, span: &Span) -> Result<Outcome, Stop> {
        if Archive::of(self.layout, self.id()).meta()?.is_none() {
            files::remove_folder(&self.layout.archive(self.id()))?;
            self.journal().note("nothing was changed yet");
            return Ok(Outcome::Done);
        }
        let previous = self.target.previous.clone();
        self.with_task(&self.cancel, |task| {
            restore::roll_back(self.layout, self.id(), task)?;
            self.code().forget(task, previous.as_ref().and_then(|live| live.commit.as_ref()))?;
            self.secrets().forget(task, previous.as_ref().and_then(|live| live.pillar.as_ref()))
        })?;
        self.drop_failed_tree_if_full();
        self.hide_secrets();
        self.journal().note(match previous.and_then(|live| live.commit) {
            Some(commit) => format!("code and pillar are back: {} is live", commit.short()),
            None => "code and pillar are back as they were; nothing was live".into(),
        });
        let recipes = self.found()?;
        self.recipes(span, &recipes, Phase::Rollback)?;
        self.recipes(span, &recipes, Phase::Fixperms)?;
        let checks = self.checks_before();
        if let Some(failed) = self.proofs(&checks, Moment::RolledBack, true, span.deadline)
            && !self.answers_as_before()
        {
            return Err(Stop::new(format!("what is live does not answer as before: {failed}")));
        }
        Ok(Outcome::Done)
    }

    /// A tree that filled the disk is not kept.
    fn drop_failed_tree_if_full(&self) {
        let failed = Archive::of(self.layout, self.id()).failed();
        if files::require_room(&self.layout.home(), Bytes(archive::MARGIN)).is_err() && failed.exists() {
            let _ = files::remove_folder(&failed);
            self.journal().note("the tree that failed is not kept: the disk is full");
        }
    }

    /// Whether all checks that passed before pass again.
    pub fn answers_as_before(&self) -> bool {
        let journal = self.journal();
        let proofs = &journal.progress().proofs;
        let failed = |check: &str| {
            proofs.iter().any(|proof| proof.moment == Moment::RolledBack && proof.check == check && !proof.passed)
        };
        !proofs.iter().any(|proof| proof.moment == Moment::Before && proof.passed && failed(&proof.check))
    }
}
