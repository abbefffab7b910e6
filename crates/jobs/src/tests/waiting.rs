//! What is kept of a job that waits, and of a step's signs of life.

use chrono::{Duration, Utc};
use corpus_protocol::Stream;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::*;
use crate::writer::{Lease, Writer};

/// A job that no server runs, and what would write for the one that did.
async fn claimed(pool: &PgPool) -> (Jobs, JobId, Arc<Writer>) {
    let jobs = Jobs::open(pool.clone().into(), registry().outlines()).await.unwrap();
    let job = submit(&jobs, make()).await;
    let lease = Lease { job, owner: Uuid::now_v7(), generation: 1 };
    sqlx::query("update jobs set state = 'running', owner = $2, generation = 1 where id = $1")
        .bind(job.0)
        .bind(lease.owner)
        .execute(pool)
        .await
        .unwrap();
    let rows = jobs.get(job).await.unwrap().steps;
    let writer = Arc::new(Writer::new(pool.clone().into(), lease, rows, CancellationToken::new()));
    (jobs, job, writer)
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_next_try_is_kept_until_it_comes(pool: PgPool) {
    let (jobs, job, writer) = claimed(&pool).await;
    let next = Utc::now() + Duration::seconds(30);
    writer.waiting_until("node a to answer (attempt 2 of 3)", next);
    writer.flush().await.unwrap();
    let row = jobs.row(job).await.unwrap();
    assert_eq!(row.waiting_for.as_deref(), Some("node a to answer (attempt 2 of 3)"));
    assert_eq!(row.retry_at.map(|at| at.timestamp_millis()), Some(next.timestamp_millis()));
    writer.waiting_for(None);
    writer.flush().await.unwrap();
    let row = jobs.row(job).await.unwrap();
    assert_eq!((row.waiting_for, row.retry_at), (None, None));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_line_is_a_sign_of_life_and_a_hundred_lines_are_one(pool: PgPool) {
    let (jobs, job, writer) = claimed(&pool).await;
    assert_eq!(jobs.get(job).await.unwrap().steps[0].alive_at, None);
    for number in 0..100 {
        writer.line(Some(0), Stream::Out, &format!("line {number}"));
    }
    writer.flush().await.unwrap();
    let detail = jobs.get(job).await.unwrap();
    let steps = &detail.steps;
    assert!(steps[0].alive_at.is_some_and(|at| Utc::now() - at < Duration::seconds(60)), "{steps:#?}");
    assert_eq!((steps[0].seq, steps[1].alive_at), (1, None), "written once, before its lines");
    let all = jobs.log(job, 0, 1000).await.unwrap();
    assert_eq!(all.len(), 100);
    let last = jobs.log_before(job, 0, i64::MAX, 30).await.unwrap();
    assert_eq!(last, all[70..], "the last lines, the oldest of them first");
    let (first, before) = (all[65].seq, last[0].seq);
    assert_eq!(jobs.log_before(job, first, before, 30).await.unwrap(), all[66..70], "and those between two");
}
