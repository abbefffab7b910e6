//! What is done around the steps of jobs, whatever the jobs are: the one place where something that is no part
//! of a job runs as a part of its steps.
//!
//! It runs within the step: when it fails the step fails, and everything is undone as always. Each step that may
//! have something around it gets a guard of its own, so that what was done around it is taken back also when the
//! step failed, or was cut in the middle.

use corpus_domain::JobKind;
use futures::future::BoxFuture;
use serde_json::Value;

use super::context::StepContext;
use super::error::StepError;

/// On which side of a step's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before it.
    Before,
    /// After it, when it succeeded.
    After,
}

/// What is done around steps. Like steps it is repeatable: after a crash it is run again, with the step.
pub trait Around<S>: Send + Sync + 'static {
    /// Whether something may be done around this step. The answer stays the same across releases.
    fn covers(&self, kind: JobKind, step: &str) -> bool;

    /// Does it; the context has the job's parameters as they are stored. It ends soon after a cancel.
    fn run(&self, side: Side, context: StepContext<S, Value>) -> BoxFuture<'static, Result<(), StepError>>;

    /// Takes it back; succeeds when there is nothing. Also called when it never began.
    fn undo(&self, side: Side, context: StepContext<S, Value>) -> BoxFuture<'static, Result<(), StepError>>;
}
