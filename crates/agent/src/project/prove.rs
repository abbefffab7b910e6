//! The proofs of a deployment: what answered before it, after it, and after a rollback.

use std::time::Instant;

use corpus_domain::{Outcome, Phase};
use corpus_protocol::{DeploymentEvent, Moment};

use crate::project::configuration::{Check, Configuration};
use crate::project::run::Run;
use crate::project::steps::{Span, Stop};

impl Run<'_> {
    /// The prove phase: every check must pass in its time.
    pub fn prove(&mut self, span: &Span) -> Result<Outcome, Stop> {
        let checks = self.configuration.checks()?;
        if checks.is_empty() {
            self.journal().note("no checks are configured: nothing is proven");
            return Ok(Outcome::Skipped);
        }
        let failed = self.proofs(&checks, Moment::After, true, span.deadline);
        failed.map_or(Ok(Outcome::Done), |text| Err(Stop::new(text)))
    }

    /// Records how what is live answers before anything is changed.
    pub fn prove_before(&mut self) {
        let checks = self.checks_before();
        self.proofs(&checks, Moment::Before, false, Instant::now() + self.configuration.limit(Phase::Prove));
    }

    /// The checks of what was live.
    pub fn checks_before(&self) -> Vec<Check> {
        let live = self.target.previous.as_ref().and_then(|_| Configuration::live(self.layout).ok().flatten());
        live.and_then(|live| live.checks().ok()).unwrap_or_default()
    }

    /// Makes checks; tells the first that fails.
    pub fn proofs(&self, checks: &[Check], moment: Moment, patient: bool, deadline: Instant) -> Option<String> {
        let prover = self.prover(moment == Moment::RolledBack);
        let mut failed = None;
        for check in checks {
            let proof = prover.prove(check, moment, patient, deadline);
            if !proof.passed && failed.is_none() {
                failed = Some(format!("{}: {}", proof.check, proof.seen));
            }
            self.journal().tell(DeploymentEvent::Proved { proof });
        }
        failed
    }
}
