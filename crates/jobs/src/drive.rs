//! Driving one job with steno, from what is recorded of it to its end.
//!
//! Every run is a resumed saga, a new job simply has no events yet; each has a coordinator of
//! its own, because steno keeps finished sagas in memory as long as their coordinator lives.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corpus_domain::JobState;
use serde_json::Value;
use sqlx::PgConnection;
use steno::{ActionRegistry, SagaDag, SagaId, SagaNodeEvent, SagaNodeEventType, SagaResult, SecClient};
use tokio_util::sync::CancellationToken;

use super::around::Around;
use super::claim::Claimed;
use super::error::JobsError;
use super::handle::Jobs;
use super::plan;
use super::queue::{Lock, LockMode};
use super::run::{Live, NodePart, Run, Saga};
use super::store::RunStore;
use super::writer::Writer;

/// What all runs of this server share.
pub(super) struct Runtime<S: Send + Sync + 'static> {
    pub jobs: Jobs,
    pub services: Arc<S>,
    pub actions: Arc<ActionRegistry<Saga<S>>>,
    pub around: Option<Arc<dyn Around<S>>>,
    pub grace: Duration,
    #[cfg(any(test, feature = "testing"))]
    pub faults: Arc<super::testing::Faults>,
}

/// The signals to one run.
#[derive(Debug, Clone)]
pub(super) struct Signals {
    pub cancel: CancellationToken,
    pub halt: CancellationToken,
    pub drain: CancellationToken,
}

struct Recorded {
    run: Arc<Run>,
    events: Vec<SagaNodeEvent>,
}

/// Runs the job until it is over, or until this server must leave it.
pub(super) async fn drive<S: Send + Sync + 'static>(runtime: &Runtime<S>, claimed: Claimed, signals: Signals) {
    let Some(recorded) = signals.halt.run_until_cancelled(load(runtime, &claimed, &signals)).await else { return };
    let run = Arc::clone(&recorded.run);
    let sec = steno::sec(slog::Logger::root(slog::Discard, slog::o!()), Arc::new(RunStore(Arc::clone(&run))));
    let result = signals.halt.run_until_cancelled(execute(runtime, &sec, recorded, claimed.dag)).await;
    let Some(result) = result else {
        // A coordinator whose saga can't end would spin when its client is dropped, so the few
        // kilobytes of a run that lost its lease stay until the process ends.
        std::mem::forget(sec);
        if signals.drain.is_cancelled() {
            run.writer.last_words().await;
        }
        return;
    };
    finish(&run, result).await;
    sec.shutdown().await;
}

async fn execute<S: Send + Sync + 'static>(
    runtime: &Runtime<S>,
    sec: &SecClient,
    recorded: Recorded,
    dag: Value,
) -> Result<SagaResult, anyhow::Error> {
    let id: SagaId = recorded.run.id().to_string().parse()?;
    let live =
        Arc::new(Live { run: recorded.run, services: Arc::clone(&runtime.services), around: runtime.around.clone() });
    let end = sec.saga_resume(id, live, dag, Arc::clone(&runtime.actions), recorded.events).await?;
    sec.saga_start(id).await?;
    Ok(end.await)
}

async fn finish(run: &Run, result: Result<SagaResult, anyhow::Error>) {
    let state = match result {
        Ok(SagaResult { kind: Ok(_), .. }) => JobState::Done,
        Ok(SagaResult { kind: Err(error), .. }) if error.undo_failure.is_none() => JobState::Undone,
        Ok(SagaResult { kind: Err(_), .. }) => JobState::Stuck,
        Err(error) => {
            tracing::error!(job.id = %run.id(), error = format!("{error:#}"), "a job can't be resumed");
            run.writer.error("the recorded steps of this job don't fit this release of Corpus");
            JobState::Stuck
        }
    };
    run.writer.waiting_for(None);
    run.writer.state(state);
    // Halted: another server has it, and tells.
    let _ = run.writer.flush().await;
    tracing::info!(job.id = %run.id(), job.kind = %run.kind, job.state = %state, statements = run.writer.statements(), "job is over");
}

async fn load<S: Send + Sync + 'static>(runtime: &Runtime<S>, claimed: &Claimed, signals: &Signals) -> Recorded {
    loop {
        match try_load(runtime, claimed, signals).await {
            Ok(recorded) => return recorded,
            Err(error) => {
                tracing::warn!(job.id = %claimed.lease.job, error = &error as &dyn std::error::Error, "can't read a job, trying again");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn try_load<S: Send + Sync + 'static>(
    runtime: &Runtime<S>,
    claimed: &Claimed,
    signals: &Signals,
) -> Result<Recorded, JobsError> {
    let rows = runtime.jobs.steps_after(claimed.lease.job, -1, i64::MAX).await?;
    let mut conn = runtime.jobs.db().acquire().await?;
    let locks = locks(&mut conn, claimed).await?;
    let events = if claimed.lease.generation > 1 { events(&mut conn, claimed).await? } else { Vec::new() };
    drop(conn);
    let steps: HashMap<String, i32> = rows.iter().map(|row| (row.name.clone(), row.index)).collect();
    let nodes = match serde_json::from_value::<SagaDag>(claimed.dag.clone()) {
        Ok(dag) => plan::nodes(&dag, rows.iter().map(|row| (row.index, row.name.as_str()))),
        // steno says so when it resumes it.
        Err(_) => std::collections::BTreeMap::new(),
    };
    let names: HashMap<i32, &str> = rows.iter().map(|row| (row.index, row.name.as_str())).collect();
    let mut outputs = HashMap::new();
    for event in &events {
        if let SagaNodeEventType::Succeeded(output) = &event.event_type
            && let Some((index, NodePart::Effect)) = nodes.get(&u32::from(event.node_id))
            && let Some(name) = names.get(index)
        {
            outputs.insert((*name).to_owned(), Value::clone(output));
        }
    }
    let writer = Writer::new(runtime.jobs.db().clone(), claimed.lease, rows, signals.halt.clone());
    let writer = Arc::new(writer.telling(runtime.jobs.on_end()));
    let run = Run {
        kind: claimed.kind,
        created_by: claimed.created_by,
        params: claimed.params.clone(),
        locks,
        writer,
        nodes,
        steps,
        outputs: Mutex::new(outputs),
        requests: AtomicU64::new(0),
        cancel: signals.cancel.clone(),
        halt: signals.halt.clone(),
        drain: signals.drain.clone(),
        grace: runtime.grace,
        #[cfg(any(test, feature = "testing"))]
        faults: Arc::clone(&runtime.faults),
    };
    if claimed.lease.generation > 1 {
        run.writer.line(None, corpus_protocol::Stream::Note, "taken over where it was left");
    }
    Ok(Recorded { run: Arc::new(run), events })
}

async fn events(conn: &mut PgConnection, claimed: &Claimed) -> Result<Vec<SagaNodeEvent>, JobsError> {
    let rows = sqlx::query_scalar!("select event from job_events where job_id = $1", claimed.lease.job.0)
        .fetch_all(conn)
        .await?;
    rows.into_iter().map(|event| serde_json::from_value(event).map_err(JobsError::Params)).collect()
}

async fn locks(conn: &mut PgConnection, claimed: &Claimed) -> Result<Vec<Lock>, JobsError> {
    let rows =
        sqlx::query!("select resource, mode from job_locks where job_id = $1 order by resource", claimed.lease.job.0)
            .fetch_all(conn)
            .await?;
    let mode = |word: &str| if word == "shared" { LockMode::Shared } else { LockMode::Exclusive };
    Ok(rows.into_iter().map(|row| Lock { mode: mode(&row.mode), resource: row.resource }).collect())
}
