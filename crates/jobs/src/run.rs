//! One run of a job on this server: from taking the lease to the end, or to losing it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use corpus_domain::{JobId, JobKind, UserId};
use corpus_protocol::JobRef;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::around::Around;
use super::queue::Lock;
use super::writer::Writer;

/// What of a step a saga node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodePart {
    /// Nothing; its undo is the step's undo.
    Guard,
    /// The effect.
    Effect,
}

/// What all steps of a run share. Without the services' type, so that the store can hold it.
#[derive(Debug)]
pub(super) struct Run {
    pub kind: JobKind,
    pub created_by: Option<UserId>,
    pub params: Value,
    pub locks: Vec<Lock>,
    pub writer: Arc<Writer>,
    /// Saga node to step.
    pub nodes: BTreeMap<u32, (i32, NodePart)>,
    /// Step name to its row.
    pub steps: HashMap<String, i32>,
    pub outputs: Mutex<HashMap<String, Value>>,
    /// How many requests were made of hosts.
    pub requests: AtomicU64,
    /// Someone asked to cancel the job.
    pub cancel: CancellationToken,
    /// This run must do nothing more: the lease is lost, or given back.
    pub halt: CancellationToken,
    /// The server shuts down: the run halts before its next effect.
    pub drain: CancellationToken,
    /// How long a step has to end by itself after a cancel.
    pub grace: Duration,
    #[cfg(any(test, feature = "testing"))]
    pub faults: Arc<super::testing::Faults>,
}

impl Run {
    pub fn id(&self) -> JobId {
        self.writer.lease().job
    }

    /// The next request's mark.
    pub fn next_request(&self) -> JobRef {
        let lease = self.writer.lease();
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        JobRef { id: lease.job, generation: lease.generation, request }
    }

    /// A time limit as this run keeps it: tests hurry.
    #[cfg(any(test, feature = "testing"))]
    pub fn paced(&self, limit: Duration) -> Duration {
        self.faults.paced(limit)
    }

    /// A time limit as this run keeps it.
    #[cfg(not(any(test, feature = "testing")))]
    #[expect(clippy::unused_self, reason = "in tests a run may hurry")]
    pub fn paced(&self, limit: Duration) -> Duration {
        limit
    }

    /// Whether the graph of this job has a guard for the step.
    pub fn has_guard(&self, step: &str) -> bool {
        let index = self.steps.get(step);
        self.nodes.values().any(|(node, part)| Some(node) == index && *part == NodePart::Guard)
    }

    pub fn output(&self, step: &str) -> Option<Value> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).get(step).cloned()
    }

    pub fn keep_output(&self, step: &str, output: Value) {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).insert(step.to_owned(), output);
    }

    /// Never returns: the saga stays where it is, for whoever has the lease now.
    pub async fn stay_halted(&self) -> ! {
        self.halt.cancel();
        loop {
            std::future::pending::<()>().await;
        }
    }
}

/// A run with the services that its steps use: steno's context.
pub(super) struct Live<S> {
    pub run: Arc<Run>,
    pub services: Arc<S>,
    pub around: Option<Arc<dyn Around<S>>>,
}

impl<S> std::fmt::Debug for Live<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("run", &self.run).finish_non_exhaustive()
    }
}

/// Ties steno's types to ours.
pub(super) struct Saga<S>(std::marker::PhantomData<fn() -> S>);

impl<S> std::fmt::Debug for Saga<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Saga")
    }
}

impl<S: Send + Sync + 'static> steno::SagaType for Saga<S> {
    type ExecContextType = Live<S>;
}
