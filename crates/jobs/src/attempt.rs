//! One do or undo of a step: its tries, time limit, cancel, panics, and what the page shows.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use corpus_domain::StepState;
use corpus_protocol::Stream;
use futures::FutureExt;
use serde_json::Value;
use tracing::Instrument;

use super::around::Side;
use super::context::{RawContext, StepContext};
use super::define::{Part, Retry, StepDef};
use super::error::{StepError, StepErrorKind};
use super::rows::StepRow;
use super::run::{Live, Run};

/// A do or an undo on its way.
pub(super) struct Attempt<'a, S> {
    step: &'a StepDef<S>,
    part: Option<&'a Part<S>>,
    live: &'a Live<S>,
    index: i32,
    undoing: bool,
}

/// Until the database is asked again that was away.
const AWAY_PAUSE: Duration = Duration::from_millis(500);

/// How often something was tried, and the pauses to come.
struct Tries {
    number: u32,
    of: u32,
    pauses: Box<dyn Iterator<Item = Duration> + Send>,
}

impl Tries {
    fn of(retry: Retry) -> Self {
        Self { number: 1, of: retry.attempts, pauses: Box::new(retry.pauses()) }
    }
}

impl<'a, S: Send + Sync + 'static> Attempt<'a, S> {
    pub fn new(step: &'a StepDef<S>, live: &'a Live<S>, part: Option<&'a Part<S>>, undoing: bool) -> Self {
        let index = live.run.steps.get(step.name).copied().unwrap_or_default();
        Self { step, part, live, index, undoing }
    }

    fn run(&self) -> &Arc<Run> {
        &self.live.run
    }

    /// The outcome; never returns once the run must do nothing more.
    pub async fn until_halted(&self) -> Result<Value, StepError> {
        let span =
            tracing::info_span!("step", job.id = %self.run().id(), job.step = self.step.name, undo = self.undoing);
        tokio::select! {
            biased;
            () = self.run().halt.cancelled() => self.run().stay_halted().await,
            outcome = self.whole().instrument(span) => outcome,
        }
    }

    /// The effect or the undo, with what is around it.
    async fn whole(&self) -> Result<Value, StepError> {
        let (first, last) = if self.undoing { (Side::After, Side::Before) } else { (Side::Before, Side::After) };
        self.aside(first).await?;
        let output = match self.part {
            Some(part) => self.tries(part).await?,
            None => Value::Null,
        };
        self.aside(last).await?;
        Ok(output)
    }

    /// What is done around the step, or is taken back of it.
    async fn aside(&self, side: Side) -> Result<(), StepError> {
        let Some(around) = self.live.around.as_ref().filter(|around| around.covers(self.run().kind, self.step.name))
        else {
            return Ok(());
        };
        let retry = if self.undoing { Retry::times(5) } else { Retry::times(3) };
        let mut tries = Tries::of(retry);
        loop {
            let context = StepContext::around(self.context(tries.number));
            let work = if self.undoing { around.undo(side, context) } else { around.run(side, context) };
            let work = self.caught(async { work.await.map(|()| Value::Null) });
            match self.until_cancelled(work, false).await {
                Ok(_) => return Ok(()),
                Err(error) => self.again(&mut tries, error).await?,
            }
        }
    }

    async fn tries(&self, part: &Part<S>) -> Result<Value, StepError> {
        let mut tries = Tries::of(part.retry);
        loop {
            self.change(|row| row.attempts = i32::try_from(tries.number).unwrap_or(i32::MAX));
            match self.until_cancelled(self.limited(part, tries.number), true).await {
                Ok(output) => {
                    if !self.undoing {
                        self.run().keep_output(self.step.name, output.clone());
                    }
                    return Ok(output);
                }
                Err(error) => self.again(&mut tries, error).await?,
            }
        }
    }

    /// Waits until it is time for the next try; gives the error back when there is none.
    async fn again(&self, tries: &mut Tries, error: StepError) -> Result<(), StepError> {
        let ends = match error.kind {
            StepErrorKind::Permanent => true,
            StepErrorKind::Cancelled => !self.undoing,
            StepErrorKind::Transient => false,
        };
        if ends {
            return Err(error);
        }
        let named = error.waiting_for.as_deref();
        if !error.counts {
            return self.pause(named.unwrap_or("the database to answer"), AWAY_PAUSE).await;
        }
        let Some(pause) = tries.pauses.next() else { return Err(error) };
        tries.number += 1;
        let next = format!("attempt {} of {}", tries.number, tries.of);
        self.note(&format!("{next} in {:.1} s: {}", pause.as_secs_f64(), error.message));
        let what = named.map_or_else(|| format!("{next} of “{}”", self.step.title), |what| format!("{what} ({next})"));
        self.pause(&what, pause).await
    }

    async fn pause(&self, what: &str, pause: Duration) -> Result<(), StepError> {
        self.run().writer.waiting_until(what, Utc::now() + pause);
        self.run().writer.flush_soon();
        let cancelled = tokio::select! {
            () = tokio::time::sleep(pause) => false,
            () = self.run().cancel.cancelled(), if self.cancellable() => true,
        };
        self.run().writer.waiting_for(None);
        self.run().writer.flush_soon();
        if cancelled { Err(StepError::cancelled()) } else { Ok(()) }
    }

    fn cancellable(&self) -> bool {
        self.step.cancellable && !self.undoing
    }

    /// `work`, which has a moment to end by itself when the job is cancelled; `is_effect`: what it returns is kept.
    async fn until_cancelled(
        &self,
        work: impl Future<Output = Result<Value, StepError>>,
        is_effect: bool,
    ) -> Result<Value, StepError> {
        if !self.cancellable() {
            return work.await;
        }
        let cancel = &self.run().cancel;
        if cancel.is_cancelled() {
            return Err(StepError::cancelled());
        }
        let mut work = std::pin::pin!(work);
        tokio::select! {
            outcome = &mut work => if cancel.is_cancelled() { self.too_late(outcome, is_effect) } else { outcome },
            () = cancel.cancelled() => match tokio::time::timeout(self.run().grace, work).await {
                Ok(outcome) => self.too_late(outcome, is_effect),
                Err(_) => Err(StepError::cancelled()),
            },
        }
    }

    /// The step ended while its cancel was on the way: it is undone all the same, and its
    /// output is there for the undo.
    fn too_late(&self, outcome: Result<Value, StepError>, is_effect: bool) -> Result<Value, StepError> {
        match outcome {
            Ok(_) if !is_effect => {}
            Ok(output) => self.run().keep_output(self.step.name, output),
            // Such as that what it ran could not be killed.
            Err(error) if error.kind != StepErrorKind::Cancelled => self.note(&error.message),
            Err(_) => {}
        }
        Err(StepError::cancelled())
    }

    async fn limited(&self, part: &Part<S>, number: u32) -> Result<Value, StepError> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(outcome) = self.with_faults(part, number).await {
            return outcome;
        }
        self.plain(part, number).await
    }

    fn context(&self, number: u32) -> RawContext<S> {
        RawContext {
            run: Arc::clone(self.run()),
            services: Arc::clone(&self.live.services),
            step: self.step.name,
            index: self.index,
            attempt: number,
            cancellable: self.cancellable(),
            undoing: self.undoing,
        }
    }

    async fn caught(&self, work: impl Future<Output = Result<Value, StepError>>) -> Result<Value, StepError> {
        let defect = |_| Err(StepError::permanent("the step ended by a defect of Corpus; the server's log has it"));
        AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(defect)
    }

    async fn plain(&self, part: &Part<S>, number: u32) -> Result<Value, StepError> {
        let context = self.context(number);
        let limit = self.run().paced(part.limit);
        match tokio::time::timeout(limit, self.caught(async { (part.run)(context).await })).await {
            Ok(outcome) => outcome,
            Err(_) => Err(StepError::transient(format!("no end after {:.0} s", limit.as_secs_f64()))),
        }
    }

    #[cfg(any(test, feature = "testing"))]
    async fn with_faults(&self, part: &Part<S>, number: u32) -> Option<Result<Value, StepError>> {
        use super::testing::Injected;
        if let Some(point) = self.run().faults.point(self.run().kind, self.step.name, self.undoing) {
            return Some(point.pass(self.plain(part, number)).await);
        }
        match self.run().faults.at(self.step.name, self.undoing)? {
            Injected::FailBefore => Some(Err(StepError::permanent("injected before the effect"))),
            Injected::FailAfter => match self.plain(part, number).await {
                Ok(_) => Some(Err(StepError::permanent("injected after the effect"))),
                failed => Some(failed),
            },
            Injected::Kill(after) => {
                if let Ok(outcome) = tokio::time::timeout(after, self.plain(part, number)).await {
                    return Some(outcome);
                }
                self.run().faults.died();
                self.run().stay_halted().await
            }
            Injected::Repeat => match self.plain(part, number).await {
                Ok(_) => None,
                failed => Some(failed),
            },
        }
    }

    pub fn change(&self, change: impl FnOnce(&mut StepRow)) {
        self.run().writer.step(self.index, |row| {
            change(row);
            if !matches!(row.state, StepState::Running | StepState::Undoing) {
                row.ended_at = Some(Utc::now());
            }
        });
    }

    fn note(&self, text: &str) {
        self.run().writer.line(Some(self.index), Stream::Note, text);
    }

    pub fn failed(&self, error: &StepError) {
        if error.kind == StepErrorKind::Cancelled {
            self.note("cancelled");
            self.run().writer.error("cancelled");
            self.change(|row| row.state = StepState::Undone);
            return;
        }
        tracing::warn!(job.id = %self.run().id(), job.step = self.step.name, error = error as &dyn std::error::Error, "a step failed");
        self.note(&error.message);
        self.run().writer.error(&format!("{}: {}", self.step.title, error.message));
        self.change(|row| (row.state, row.error) = (StepState::Failed, Some(error.message.clone())));
    }

    /// A step that failed stays shown as failed when it is undone.
    pub fn undone(&self) {
        self.change(|row| {
            row.state = if row.error.is_some() { StepState::Failed } else { StepState::Undone };
            row.undo_error = None;
        });
    }

    pub fn undo_failed(&self, error: &StepError) {
        tracing::error!(job.id = %self.run().id(), job.step = self.step.name, error = error as &dyn std::error::Error, "an undo failed, the job is stuck");
        self.note(&format!("undo failed: {}", error.message));
        self.change(|row| (row.state, row.undo_error) = (StepState::UndoFailed, Some(error.message.clone())));
    }
}
