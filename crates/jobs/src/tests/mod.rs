//! The engine against a real database, with a world of things that steps make and take away.

mod around;
mod cancel;
mod crash;
mod ends;
mod fairness;
mod faults;
mod feed;
mod happy;
mod locks;
mod measure;
mod queue;
mod silence;
mod stuck;
mod waiting;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corpus_domain::{JobId, JobKind, JobState};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::testing::{Faults, Trial};
use super::{
    Engine, EngineConfig, Job, JobDetail, JobParams, Jobs, NewJob, Registry, Retry, Step, StepContext, StepError,
};

/// What steps work on.
#[derive(Debug)]
pub struct World {
    pub made: Mutex<BTreeSet<String>>,
    pub story: Mutex<Vec<String>>,
    pub transient_failures: AtomicU32,
    pub times_without_database: AtomicU32,
    pub undo_broken: AtomicBool,
    /// Step "middle" takes one permit when its job asks for it.
    pub gate: Semaphore,
}

impl Default for World {
    fn default() -> Self {
        Self {
            made: Mutex::default(),
            story: Mutex::default(),
            transient_failures: AtomicU32::new(0),
            times_without_database: AtomicU32::new(0),
            undo_broken: AtomicBool::new(false),
            gate: Semaphore::new(0),
        }
    }
}

impl World {
    pub fn tell(&self, what: impl Into<String>) {
        self.story.lock().unwrap().push(what.into());
    }

    pub fn story(&self) -> Vec<String> {
        self.story.lock().unwrap().clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.story().iter().filter(|told| *told == what).count()
    }

    pub fn made(&self) -> Vec<String> {
        self.made.lock().unwrap().iter().cloned().collect()
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Make {
    /// "middle" waits for the gate.
    pub gated: bool,
    /// "middle" tells the job's name when it runs.
    pub name: String,
    /// "last" fails for good.
    pub fails: bool,
}

impl JobParams for Make {
    const KIND: JobKind = JobKind::GuestCreate;
}

type Ctx = StepContext<World, Make>;

async fn choose(ctx: Ctx) -> Result<u32, StepError> {
    ctx.services().tell("choose");
    ctx.log("chose 7");
    Ok(7)
}

async fn first(ctx: Ctx) -> Result<String, StepError> {
    let chosen: u32 = ctx.output("choose")?;
    ctx.services().tell("first");
    ctx.services().made.lock().unwrap().insert("first".into());
    Ok(format!("first-{chosen}"))
}

async fn middle(ctx: Ctx) -> Result<(), StepError> {
    let world = ctx.services();
    world.tell("middle");
    if !ctx.params().name.is_empty() {
        world.tell(format!("run {}", ctx.params().name));
    }
    world.made.lock().unwrap().insert("middle".into());
    if world.transient_failures.load(Ordering::SeqCst) > 0 {
        world.transient_failures.fetch_sub(1, Ordering::SeqCst);
        return Err(StepError::transient("no answer").while_waiting_for("node node1 to answer"));
    }
    if world.times_without_database.load(Ordering::SeqCst) > 0 {
        world.times_without_database.fetch_sub(1, Ordering::SeqCst);
        return Err(sqlx::Error::PoolTimedOut.into());
    }
    for _ in (0..5_000).take_while(|_| ctx.params().name == "loud") {
        ctx.log_from(corpus_protocol::Stream::Out, "x".repeat(4_096));
        tokio::task::yield_now().await;
    }
    if ctx.params().gated {
        let passed =
            async { world.gate.acquire().await.map(SemaphorePermit::forget).map_err(|_| StepError::cancelled()) };
        ctx.or_cancelled(passed).await?;
    }
    Ok(())
}

async fn last(ctx: Ctx) -> Result<(), StepError> {
    let first: String = ctx.output("first")?;
    assert_eq!(first, "first-7");
    ctx.services().tell("last");
    ctx.services().made.lock().unwrap().insert("last".into());
    if ctx.params().fails { Err(StepError::permanent("the disk is full")) } else { Ok(()) }
}

fn unmake(ctx: &Ctx, name: &str) -> Result<(), StepError> {
    if name == "first" && ctx.services().undo_broken.load(Ordering::SeqCst) {
        return Err(StepError::permanent("the node refuses"));
    }
    ctx.services().tell(format!("undo {name}"));
    ctx.services().made.lock().unwrap().remove(name);
    Ok(())
}

pub fn quick(attempts: u32) -> Retry {
    Retry { attempts, first_pause: Duration::from_millis(20), longest_pause: Duration::from_millis(40) }
}

pub fn registry() -> Registry<World> {
    let job = Job::new()
        .step(Step::new("choose", "Choose a number", choose))
        .step(
            Step::new("first", "Make the first", first)
                .undo(async |ctx: Ctx| unmake(&ctx, "first"))
                .undo_retry(quick(2)),
        )
        .step(
            Step::new("middle", "Make the middle", middle)
                .undo(async |ctx: Ctx| unmake(&ctx, "middle"))
                .retry(quick(3)),
        )
        .step(Step::new("last", "Make the last", last).undo(async |ctx: Ctx| unmake(&ctx, "last")));
    Registry::new().with(job).with(measure::empty())
}

/// One server and its world.
pub struct Server {
    pub jobs: Jobs,
    pub world: Arc<World>,
    pub engine: Engine,
}

pub fn config() -> EngineConfig {
    Trial::<World>::config(Arc::new(Faults::default()))
}

pub async fn server(pool: &PgPool) -> Server {
    server_with(pool, &Arc::default(), &config()).await
}

pub async fn server_with(pool: &PgPool, world: &Arc<World>, config: &EngineConfig) -> Server {
    let jobs = Jobs::open(pool.clone().into(), registry().outlines()).await.unwrap();
    let engine = Engine::start(jobs.clone(), &registry(), Arc::clone(world), config);
    Server { jobs, world: Arc::clone(world), engine }
}

pub fn make() -> NewJob<Make> {
    NewJob::new("Make it", Make::default())
}

pub fn gated() -> NewJob<Make> {
    NewJob::new("Make it slowly", Make { gated: true, ..Make::default() })
}

pub async fn submit<P: JobParams>(jobs: &Jobs, job: NewJob<P>) -> JobId {
    let mut transaction = jobs.db().begin().await.unwrap();
    let id = jobs.submit(&mut transaction, job).await.unwrap().id();
    transaction.commit().await.unwrap();
    id
}

pub async fn cancel(jobs: &Jobs, id: JobId) -> JobState {
    let mut transaction = jobs.db().begin().await.unwrap();
    let was = jobs.cancel(&mut transaction, id, None).await.unwrap();
    transaction.commit().await.unwrap();
    was
}

/// Waits until `what` holds of the job, 10 s at most.
pub async fn until(jobs: &Jobs, id: JobId, what: impl Fn(&JobDetail) -> bool) -> JobDetail {
    for _ in 0..1000 {
        let detail = jobs.get(id).await.unwrap();
        if what(&detail) {
            return detail;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came: {:#?}", jobs.get(id).await.unwrap());
}

pub async fn state(jobs: &Jobs, id: JobId, state: JobState) -> JobDetail {
    until(jobs, id, |detail| detail.job.state == state).await
}

/// Waits until the step runs for real (its row is written before its effect begins).
pub async fn told(world: &World, what: &str) {
    for _ in 0..1000 {
        if world.count(what) > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never told {what}: {:?}", world.story());
}
