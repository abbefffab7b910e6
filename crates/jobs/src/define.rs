//! How a job is defined: its parameters' type, and its steps in order.

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use corpus_domain::JobKind;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::around::Around;
use super::context::{RawContext, StepContext};
use super::error::StepError;

/// The parameters of a kind of job. Stored and shown to operators: never a secret.
pub trait JobParams: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The kind of job they belong to.
    const KIND: JobKind;
}

/// How often and how quickly a transient failure is tried again.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// Tries in all, the first included; 1 never tries again.
    pub attempts: u32,
    /// The pause before the second try; it doubles each time, with jitter.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Retry {
    /// Tries once only.
    pub const NEVER: Self = Self::times(1);

    /// `attempts` tries, with pauses of 0.2 s to 10 s.
    pub const fn times(attempts: u32) -> Self {
        Self { attempts, first_pause: Duration::from_millis(200), longest_pause: Duration::from_secs(10) }
    }

    /// The pauses between the tries, one less than tries.
    pub(super) fn pauses(self) -> impl Iterator<Item = Duration> + Send {
        ExponentialBuilder::default()
            .with_min_delay(self.first_pause)
            .with_max_delay(self.longest_pause)
            .with_max_times(usize::try_from(self.attempts.saturating_sub(1)).unwrap_or(usize::MAX))
            .with_jitter()
            .build()
    }
}

pub(super) type RawFn<S> = Arc<dyn Fn(RawContext<S>) -> BoxFuture<'static, Result<Value, StepError>> + Send + Sync>;

/// A do or an undo with how it is tried.
pub(super) struct Part<S> {
    pub run: RawFn<S>,
    pub retry: Retry,
    pub limit: Duration,
}

/// A step without its parameter type.
pub(super) struct StepDef<S> {
    pub name: &'static str,
    pub title: &'static str,
    pub act: Part<S>,
    pub undo: Option<Part<S>>,
    pub cancellable: bool,
}

/// One step of a job: an effect, and what takes it back.
pub struct Step<S, P> {
    def: StepDef<S>,
    params: PhantomData<fn() -> P>,
}

fn erase<S, P, F, Fut, T>(act: F) -> RawFn<S>
where
    S: Send + Sync + 'static,
    P: JobParams,
    F: Fn(StepContext<S, P>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, StepError>> + Send + 'static,
    T: Serialize + 'static,
{
    Arc::new(move |raw: RawContext<S>| {
        let running = StepContext::new(raw).map(&act);
        async move {
            let output = running?.await?;
            serde_json::to_value(output)
                .map_err(|error| StepError::permanent("the step's output can't be stored").caused_by(error))
        }
        .boxed()
    })
}

impl<S: Send + Sync + 'static, P: JobParams> Step<S, P> {
    /// A step. `name` is stored and stays the same across releases; `title` is for the page.
    /// What `act` returns is stored, and later steps look it up by `name`: never a secret.
    /// `act` must be repeatable. By default it is tried 3 times, each time up to a minute.
    pub fn new<F, Fut, T>(name: &'static str, title: &'static str, act: F) -> Self
    where
        F: Fn(StepContext<S, P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, StepError>> + Send + 'static,
        T: Serialize + 'static,
    {
        let act = Part { run: erase(act), retry: Retry::times(3), limit: Duration::from_mins(1) };
        Self { def: StepDef { name, title, act, undo: None, cancellable: true }, params: PhantomData }
    }

    /// What takes the effect back; also run when the effect failed or was cut in the middle, so
    /// it must be repeatable and succeed when there is nothing. Tried 5 times, up to a minute each.
    #[must_use]
    pub fn undo<F, Fut>(mut self, undo: F) -> Self
    where
        F: Fn(StepContext<S, P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), StepError>> + Send + 'static,
    {
        self.def.undo = Some(Part { run: erase(undo), retry: Retry::times(5), limit: Duration::from_mins(1) });
        self
    }

    /// How often the effect is tried.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.def.act.retry = retry;
        self
    }

    /// How long one try of the effect may take; then it counts as a transient failure.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.def.act.limit = limit;
        self
    }

    /// How often the undo is tried. Call it after [`Self::undo`].
    #[must_use]
    pub fn undo_retry(mut self, retry: Retry) -> Self {
        if let Some(undo) = &mut self.def.undo {
            undo.retry = retry;
        }
        self
    }

    /// How long one try of the undo may take. Call it after [`Self::undo`].
    #[must_use]
    pub fn undo_limit(mut self, limit: Duration) -> Self {
        if let Some(undo) = &mut self.def.undo {
            undo.limit = limit;
        }
        self
    }

    /// From here there is no way back: a cancel is not seen by this step, it runs to its end.
    /// Mark all steps from the first irreversible one on, so that a cancel then does nothing.
    #[must_use]
    pub fn not_cancellable(mut self) -> Self {
        self.def.cancellable = false;
        self
    }
}

/// The definition of a kind of job.
pub struct Job<S, P> {
    steps: Vec<StepDef<S>>,
    params: PhantomData<fn() -> P>,
}

impl<S: Send + Sync + 'static, P: JobParams> Default for Job<S, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Send + Sync + 'static, P: JobParams> Job<S, P> {
    /// A job without steps yet.
    pub fn new() -> Self {
        Self { steps: Vec::new(), params: PhantomData }
    }

    /// Adds the next step.
    #[must_use]
    pub fn step(mut self, step: Step<S, P>) -> Self {
        self.steps.push(step.def);
        self
    }
}

/// What is known of a step without running it.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepOutline {
    pub name: &'static str,
    pub title: &'static str,
    /// Whether it has a node of its own that holds what is to be undone.
    pub has_guard: bool,
    pub cancellable: bool,
}

/// The steps of each kind of job, enough to submit and show jobs without running any.
#[derive(Debug, Clone, Default)]
pub struct Outlines(pub(super) BTreeMap<JobKind, Vec<StepOutline>>);

/// All kinds of jobs that this server can run.
pub struct Registry<S> {
    pub(super) jobs: BTreeMap<JobKind, Vec<Arc<StepDef<S>>>>,
    pub(super) around: Option<Arc<dyn Around<S>>>,
}

impl<S> Default for Registry<S> {
    fn default() -> Self {
        Self { jobs: BTreeMap::new(), around: None }
    }
}

impl<S: Send + Sync + 'static> Registry<S> {
    /// Knows no jobs yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind of job.
    #[must_use]
    pub fn with<P: JobParams>(mut self, job: Job<S, P>) -> Self {
        self.jobs.insert(P::KIND, job.steps.into_iter().map(Arc::new).collect());
        self
    }

    /// With something around the steps that it covers.
    #[must_use]
    pub fn around(mut self, around: impl Around<S>) -> Self {
        self.around = Some(Arc::new(around));
        self
    }

    /// The names of the steps of each kind of job, in order.
    pub fn names(&self) -> BTreeMap<JobKind, Vec<&'static str>> {
        self.jobs.iter().map(|(kind, steps)| (*kind, steps.iter().map(|step| step.name).collect())).collect()
    }

    /// What [`super::Jobs`] needs to know of them.
    pub fn outlines(&self) -> Outlines {
        let outline = |kind: JobKind, step: &StepDef<S>| StepOutline {
            name: step.name,
            title: step.title,
            has_guard: step.undo.is_some() || self.around.as_ref().is_some_and(|around| around.covers(kind, step.name)),
            cancellable: step.cancellable,
        };
        let outlines = |(kind, steps): (&JobKind, &Vec<Arc<StepDef<S>>>)| {
            (*kind, steps.iter().map(|step| outline(*kind, step)).collect())
        };
        Outlines(self.jobs.iter().map(outlines).collect())
    }
}
