//! Faults on purpose, to test a kind of job: fail at each step, repeat each, kill at each event.
//!
//! [`Trial::run`] runs one job to its end in a database of its own, with one fault, and returns
//! what became of it; the caller then asserts that the world is as it should be.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;

use super::{Engine, EngineConfig, JobDetail, JobParams, Jobs, JobsError, NewJob, Registry};

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

/// The faults of an engine, and a count of the events it was about to record.
#[derive(Debug, Default)]
pub struct Faults {
    fault: Mutex<Option<Fault>>,
    happened: Mutex<Vec<(String, bool)>>,
    events: AtomicUsize,
}

impl Faults {
    /// With this fault to come.
    pub fn new(fault: Fault) -> Self {
        Self { fault: Mutex::new(Some(fault)), ..Self::default() }
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
        matches!(self.fault(), Some(Fault::KillAt(at) | Fault::FailAfterAndKillAt(_, at)) if at == event)
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
    /// An engine's configuration for tests: a lost lease is noticed within half a second.
    pub fn config(faults: Arc<Faults>) -> EngineConfig {
        EngineConfig {
            lease: Duration::from_millis(400),
            heartbeat: Duration::from_millis(80),
            poll: Duration::from_millis(40),
            cancel_grace: Duration::from_millis(200),
            faults,
            ..EngineConfig::default()
        }
    }

    /// Submits the job and waits up to a minute until it is over. When the server "dies" it
    /// forgets the job there and then; its lease runs out and the job is taken over from what is
    /// recorded of it, without another fault.
    pub async fn run<P: JobParams>(&self, job: NewJob<P>, fault: Fault) -> Result<Outcome, JobsError> {
        let jobs = Jobs::open(self.pool.clone(), self.registry.outlines()).await?;
        let mut transaction = self.pool.begin().await?;
        let id = jobs.submit(&mut transaction, job).await?.id();
        transaction.commit().await?;
        let faults = Arc::new(Faults::new(fault));
        let config = Self::config(Arc::clone(&faults));
        let engine = Engine::start(jobs.clone(), &self.registry, Arc::clone(&self.services), &config);
        let over = async {
            loop {
                let detail = jobs.get(id).await?;
                if detail.job.state.is_over() {
                    return Ok(Outcome { job: detail, events: faults.events() });
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
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
