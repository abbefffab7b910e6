//! What a step can see and do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use corpus_domain::{JobId, JobKind, UserId};
use corpus_protocol::{Event, JobRef, Stream};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::define::JobParams;
use super::error::StepError;
use super::queue::Lock;
use super::run::Run;
use corpus_database::Transaction;

/// The context of one try of a step, before the parameters' type is known.
pub(super) struct RawContext<S> {
    pub run: Arc<Run>,
    pub services: Arc<S>,
    pub step: &'static str,
    pub index: i32,
    pub attempt: u32,
    pub cancellable: bool,
    pub undoing: bool,
}

impl<S> Clone for RawContext<S> {
    fn clone(&self) -> Self {
        Self { run: Arc::clone(&self.run), services: Arc::clone(&self.services), ..*self }
    }
}

/// What a do or undo function gets. Cheap to clone.
pub struct StepContext<S, P> {
    raw: RawContext<S>,
    params: Arc<P>,
}

impl<S, P> Clone for StepContext<S, P> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), params: Arc::clone(&self.params) }
    }
}

impl<S, P: JobParams> StepContext<S, P> {
    pub(super) fn new(raw: RawContext<S>) -> Result<Self, StepError> {
        let params = serde_json::from_value(raw.run.params.clone())
            .map_err(|error| StepError::permanent("the job's parameters can't be read").caused_by(error))?;
        Ok(Self { raw, params: Arc::new(params) })
    }
}

impl<S> StepContext<S, Value> {
    /// The context for what is done around a step, with the parameters as they are stored.
    pub(super) fn around(raw: RawContext<S>) -> Self {
        let params = Arc::new(raw.run.params.clone());
        Self { raw, params }
    }
}

impl<S, P> StepContext<S, P> {
    /// The job.
    pub fn job(&self) -> JobId {
        self.raw.run.id()
    }

    /// What kind of job it is.
    pub fn kind(&self) -> JobKind {
        self.raw.run.kind
    }

    /// The name of the step.
    pub fn step(&self) -> &'static str {
        self.raw.step
    }

    /// Whether the step is being undone.
    pub fn is_undoing(&self) -> bool {
        self.raw.undoing
    }

    /// The job's parameters.
    pub fn params(&self) -> &P {
        &self.params
    }

    /// The shared services.
    pub fn services(&self) -> &S {
        &self.raw.services
    }

    /// The mark of the next request to a host; each call gives a later one.
    pub fn next_request(&self) -> JobRef {
        self.raw.run.next_request()
    }

    /// How long something may take that normally may take `limit`.
    pub fn paced(&self, limit: Duration) -> Duration {
        self.raw.run.paced(limit)
    }

    /// Who submitted the job; none for the controller itself.
    pub fn created_by(&self) -> Option<UserId> {
        self.raw.run.created_by
    }

    /// Begins to change rows. Returns only while this server has the job, which nobody can take
    /// from it before the transaction ends: a server that stood still and lost the job meanwhile
    /// changes nothing when it goes on.
    pub async fn begin(&self) -> Result<Transaction, StepError> {
        match self.raw.run.writer.begin().await? {
            Some(transaction) => Ok(transaction),
            None => self.raw.run.stay_halted().await,
        }
    }

    /// Returns only while this server has the job; for what is about to be changed where there
    /// are neither rows nor an agent that would refuse it.
    pub async fn still_ours(&self) -> Result<(), StepError> {
        self.begin().await.map(drop)
    }

    /// The locks that the job holds.
    pub fn locks(&self) -> &[Lock] {
        &self.raw.run.locks
    }

    /// Which try this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.raw.attempt
    }

    /// What an earlier step returned.
    pub fn output<T: DeserializeOwned>(&self, step: &str) -> Result<T, StepError> {
        self.output_if_done(step)?
            .ok_or_else(|| StepError::permanent(format!("step {step} has left no output for this one")))
    }

    /// What a step returned, or none if it has not come that far. For undos, which may ask for
    /// their own step's output too.
    pub fn output_if_done<T: DeserializeOwned>(&self, step: &str) -> Result<Option<T>, StepError> {
        let unreadable = |error: serde_json::Error| {
            StepError::permanent(format!("the output of step {step} can't be read")).caused_by(error)
        };
        self.raw.run.output(step).map(serde_json::from_value).transpose().map_err(unreadable)
    }

    /// Adds a line to the job's log; never a secret.
    pub fn log(&self, text: impl AsRef<str>) {
        self.log_from(Stream::Note, text);
    }

    /// Adds a line of a command's output to the job's log; never a secret.
    pub fn log_from(&self, stream: Stream, text: impl AsRef<str>) {
        self.raw.run.writer.line(Some(self.raw.index), stream, text.as_ref());
    }

    /// Shows how far the step is, in the unit of `total`.
    pub fn progress(&self, done: u64, total: u64) {
        self.raw.run.writer.step(self.raw.index, |row| {
            row.progress_done = i64::try_from(done).ok();
            row.progress_total = i64::try_from(total).ok();
        });
        self.raw.run.writer.flush_soon();
    }

    /// Takes over what an agent reports.
    pub fn report(&self, event: &Event) {
        match event {
            Event::Log { stream, text } => self.log_from(*stream, text),
            Event::Progress { done, total } => self.progress(*done, *total),
            Event::Deployment { .. } | Event::Access { .. } => {}
        }
    }

    /// Shows on the job what it waits for, until the returned value is dropped.
    pub fn waiting_for(&self, what: impl AsRef<str>) -> Waiting {
        self.raw.run.writer.waiting_for(Some(what.as_ref()));
        self.raw.run.writer.flush_soon();
        Waiting(Arc::clone(&self.raw.run))
    }

    /// Whether the job is to be cancelled and this step may end for it.
    pub fn is_cancelled(&self) -> bool {
        self.raw.cancellable && self.raw.run.cancel.is_cancelled()
    }

    /// Returns when the job is to be cancelled; never in an undo.
    pub async fn cancelled(&self) {
        if self.raw.cancellable {
            self.raw.run.cancel.cancelled().await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// `work`, dropped when the job is cancelled.
    pub async fn or_cancelled<T, E: Into<StepError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, StepError> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(StepError::cancelled()),
            result = work => result.map_err(Into::into),
        }
    }
}

/// While this lives the job shows what it waits for.
#[derive(Debug)]
pub struct Waiting(Arc<Run>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.writer.waiting_for(None);
        self.0.writer.flush_soon();
    }
}
