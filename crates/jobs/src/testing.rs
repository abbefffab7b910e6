//! Faults on purpose, to test a kind of job: fail at each step, repeat each, kill at each event.
//!
//! [`Trial::run`] runs one job to its end in a database of its own, with one fault, and returns
//! what became of it; the caller then asserts that the world is as it should be.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use corpus_domain::JobKind;
use futures::future::BoxFuture;
use sqlx::PgPool;

use super::claim::Claimant;
use super::writer::Lease;
use super::{Engine, EngineConfig, JobDetail, JobParams, Jobs, JobsError, NewJob, Registry};
use corpus_database::Db;

/// What goes wrong, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The step fails and its effect did not happen.
    FailBefore(String),
    /// The step fails and its effect did happen.
    FailAfter(String),
    /// The step's effect and its undo are each done twice.
    Repeat(String),
    /// All tries of the step's undo fail: the job is stuck.
    FailUndo(String),
    /// The server dies when it is about to record its n-th event of a saga, from 0.
    KillAt(usize),
    /// The server dies while the step's effect runs, so long after it began.
    KillDuring(String, Duration),
    /// The step fails after its effect, and then the server dies at that event.
    FailAfterAndKillAt(String, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Injected {
    FailBefore,
    FailAfter,
    Repeat,
    Kill(Duration),
}

/// When in a step's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The step is recorded as begun, its effect has not.
    Before,
    /// So long after its effect began; at its end if that comes earlier.
    During(Duration),
    /// The effect has ended well, which is not recorded yet.
    After,
}

/// A place in a job where whoever tests it is called, once. [`Moment::Before`] and
/// [`Moment::After`] wait for the call to return; [`Moment::During`] goes on meanwhile.
#[derive(Clone)]
pub struct Point {
    /// Of jobs of this kind: others may have a step of this name.
    kind: JobKind,
    /// The step.
    step: String,
    /// When in it.
    moment: Moment,
    /// The call.
    reached: Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
    /// Whether it was made. An attempt that fails by itself never comes to [`Moment::After`]; the next one may.
    passed: Arc<AtomicBool>,
}

impl std::fmt::Debug for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Point").field("step", &self.step).field("moment", &self.moment).finish_non_exhaustive()
    }
}

impl Point {
    /// One where nobody was called yet.
    pub fn new(
        kind: JobKind,
        step: String,
        moment: Moment,
        reached: Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
    ) -> Self {
        Self { kind, step, moment, reached, passed: Arc::default() }
    }

    fn call(&self) -> BoxFuture<'static, ()> {
        self.passed.store(true, Ordering::SeqCst);
        (self.reached)()
    }

    pub(super) async fn pass<T, E>(&self, effect: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        match self.moment {
            Moment::Before => {
                self.call().await;
                effect.await
            }
            Moment::During(after) => {
                let mut effect = std::pin::pin!(effect);
                tokio::select! {
                    outcome = &mut effect => {
                        tokio::spawn(self.call());
                        outcome
                    }
                    () = tokio::time::sleep(after) => {
                        tokio::spawn(self.call());
                        effect.await
                    }
                }
            }
            Moment::After => {
                let output = effect.await?;
                self.call().await;
                Ok(output)
            }
        }
    }
}

/// The faults of an engine, and a count of the events it was about to record.
#[derive(Debug, Default)]
pub struct Faults {
    fault: Mutex<Option<Fault>>,
    point: Option<Point>,
    hurry: Option<f64>,
    happened: Mutex<Vec<(String, bool)>>,
    events: AtomicUsize,
    died: AtomicBool,
}

impl Faults {
    /// With this fault to come.
    pub fn new(fault: Fault) -> Self {
        Self { fault: Mutex::new(Some(fault)), ..Self::default() }
    }

    /// With a call at this point.
    pub fn at_point(point: Point) -> Self {
        Self { point: Some(point), ..Self::default() }
    }

    /// With all time limits of steps and of what they ask of hosts multiplied by `factor`, but
    /// none made shorter than 5 s.
    #[must_use]
    pub fn hurried(self, factor: f64) -> Self {
        Self { hurry: Some(factor), ..self }
    }

    pub(super) fn paced(&self, limit: Duration) -> Duration {
        let shortest = Duration::from_secs(5).min(limit);
        self.hurry.map_or(limit, |factor| limit.mul_f64(factor).max(shortest))
    }

    pub(super) fn point(&self, kind: JobKind, name: &str, undoing: bool) -> Option<Point> {
        let here = |point: &&Point| point.kind == kind && point.step == name && !undoing;
        self.point.as_ref().filter(here).filter(|point| !point.passed.load(Ordering::SeqCst)).cloned()
    }

    /// No more faults from here.
    pub fn clear(&self) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How many events sagas were about to record.
    pub fn events(&self) -> usize {
        self.events.load(Ordering::SeqCst)
    }

    fn fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn dies_here(&self) -> bool {
        let event = self.events.fetch_add(1, Ordering::SeqCst);
        let dies = matches!(self.fault(), Some(Fault::KillAt(at) | Fault::FailAfterAndKillAt(_, at)) if at == event);
        if dies {
            self.died();
        }
        dies
    }

    pub(super) fn died(&self) {
        self.died.store(true, Ordering::SeqCst);
    }

    pub(super) fn at(&self, name: &str, undoing: bool) -> Option<Injected> {
        match self.fault()? {
            Fault::FailBefore(step) if step == name && !undoing => Some(Injected::FailBefore),
            Fault::FailAfter(step) | Fault::FailAfterAndKillAt(step, _) if step == name && !undoing => {
                Some(Injected::FailAfter)
            }
            Fault::FailUndo(step) if step == name && undoing => Some(Injected::FailBefore),
            Fault::KillDuring(step, after) if step == name && !undoing => {
                self.first_time(name, undoing).then_some(Injected::Kill(after))
            }
            Fault::Repeat(step) if step == name => self.first_time(name, undoing).then_some(Injected::Repeat),
            _ => None,
        }
    }

    fn first_time(&self, name: &str, undoing: bool) -> bool {
        let mut happened = self.happened.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), undoing);
        let first = !happened.contains(&key);
        if first {
            happened.push(key);
        }
        first
    }
}

/// What became of a trial.
#[derive(Debug)]
pub struct Outcome {
    /// The job at its end.
    pub job: JobDetail,
    /// How many events its sagas were about to record: the range for [`Fault::KillAt`].
    pub events: usize,
}

/// Where a kind of job is tried.
pub struct Trial<S> {
    /// The database.
    pub pool: PgPool,
    /// The kinds of jobs.
    pub registry: Registry<S>,
    /// What the steps use.
    pub services: Arc<S>,
}

impl<S: Send + Sync + 'static> Trial<S> {
    /// An engine's configuration for tests: a lost lease is taken over within two seconds.
    pub fn config(faults: Arc<Faults>) -> EngineConfig {
        EngineConfig {
            lease: Duration::from_millis(1_500),
            heartbeat: Duration::from_millis(150),
            poll: Duration::from_millis(40),
            cancel_grace: Duration::from_millis(200),
            faults,
            ..EngineConfig::default()
        }
    }

    /// Submits the job and waits up to a minute until it is over. When the server "dies" it
    /// forgets the job there and then; its lease is taken from it and the job is taken over from
    /// what is recorded of it, without another fault. No lease runs out by itself, however slow
    /// the machine is.
    pub async fn run<P: JobParams>(&self, job: NewJob<P>, fault: Fault) -> Result<Outcome, JobsError> {
        let jobs = Jobs::open(self.pool.clone().into(), self.registry.outlines()).await?;
        let mut transaction = Db::from(self.pool.clone()).begin().await?;
        let id = jobs.submit(&mut transaction, job).await?.id();
        transaction.commit().await?;
        let faults = Arc::new(Faults::new(fault));
        let config = EngineConfig {
            lease: Duration::from_mins(2),
            heartbeat: Duration::from_secs(1),
            ..Self::config(Arc::clone(&faults))
        };
        let (db, owner) = (self.pool.clone().into(), config.instance);
        let dead = Claimant { db, owner, lease: config.lease, kinds: Vec::new() };
        let engine = Engine::start(jobs.clone(), &self.registry, Arc::clone(&self.services), &config);
        let over = async {
            loop {
                let detail = jobs.get(id).await?;
                if detail.job.state.is_over() {
                    return Ok(Outcome { job: detail, events: faults.events() });
                }
                if faults.died.swap(false, Ordering::SeqCst) {
                    dead.release(&[Lease { job: id, owner, generation: detail.job.generation }]).await?;
                }
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        };
        let outcome = tokio::time::timeout(Duration::from_mins(1), over).await;
        drop(engine);
        outcome.unwrap_or(Err(JobsError::Database(sqlx::Error::PoolTimedOut)))
    }

    /// The names of the steps of a kind of job.
    pub fn steps<P: JobParams>(&self) -> Vec<String> {
        let steps = self.registry.jobs.get(&P::KIND);
        steps.into_iter().flatten().map(|step| step.name.to_owned()).collect()
    }
}
