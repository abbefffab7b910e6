//! What an empty job costs: the engine's own share of every job.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use corpus_domain::{JobKind, JobState};
use sqlx::PgPool;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use crate::listen::Notice;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Empty;

impl JobParams for Empty {
    const KIND: JobKind = JobKind::NodeInitialize;
}

pub fn empty() -> Job<World, Empty> {
    let nothing = async |_: StepContext<World, Empty>| Ok::<(), StepError>(());
    let names = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    names.into_iter().fold(Job::new(), |job, name| {
        job.step(Step::new(name, name, nothing).undo(async |_: StepContext<World, Empty>| Ok(())))
    })
}

/// Counts the statements that sqlx reports; a test's tasks all run on its thread.
#[derive(Debug, Clone, Default)]
struct Statements(Arc<AtomicU64>);

impl Subscriber for Statements {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// From submission to done, without looking in between; and the statements of all of it.
async fn one(server: &Server, statements: &Statements) -> (Duration, u64) {
    let mut notices = server.jobs.notices();
    let (begin, before) = (Instant::now(), statements.0.load(Ordering::SeqCst));
    let id = submit(&server.jobs, NewJob::new("Nothing", Empty)).await;
    // The last notice of a job is that its locks are free; the first, that it was submitted.
    let mut wakes = 0;
    while wakes < 2 {
        wakes += u32::from(notices.recv().await.unwrap() == Notice::Wake);
    }
    let elapsed = begin.elapsed();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let sent = statements.0.load(Ordering::SeqCst) - before;
    assert_eq!(server.jobs.row(id).await.unwrap().state, JobState::Done);
    (elapsed, sent)
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_empty_job_of_nine_steps_is_quick(pool: PgPool) {
    let statements = Statements::default();
    // With one dispatcher in the process, tracing asks the wrong thread whether it is interested.
    let _second = tracing::Dispatch::new(statements.clone());
    let _counting = tracing::subscriber::set_default(statements.clone());
    let config =
        EngineConfig { poll: Duration::from_mins(1), heartbeat: Duration::from_mins(1), ..EngineConfig::default() };
    let server = server_with(&pool, &Arc::default(), &config).await;
    let mut times = Vec::new();
    let mut sent = Vec::new();
    for _ in 0..20 {
        let (time, statements) = one(&server, &statements).await;
        times.push(time);
        sent.push(statements);
    }
    times.sort();
    println!("empty job of nine steps: fastest {:?}, median {:?}, slowest {:?}", times[0], times[10], times[19]);
    println!("its statements, submission included: {sent:?}");
    assert!(sent.iter().all(|count| (10..=22).contains(count)), "{sent:?}");
    // Polls and heartbeats are a minute apart here, so nothing waits for them; an idle machine
    // needs a tenth of this, but other work on it only ever adds.
    assert!(times[0] < Duration::from_millis(200), "fastest {:?}", times[0]);
}
