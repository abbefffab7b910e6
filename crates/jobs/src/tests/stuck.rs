//! Undos that fail, and what an operator can do.

use corpus_domain::{JobState, StepState, UserId};
use sqlx::PgPool;
use uuid::Uuid;

use super::*;
use crate::{JobsError, Lock};
use corpus_database::Db;

async fn stuck(server: &Server) -> JobId {
    server.world.undo_broken.store(true, Ordering::SeqCst);
    let job = NewJob::new("Make it", Make { fails: true, ..Make::default() }).locks([Lock::exclusive("guest", 1)]);
    let id = submit(&server.jobs, job).await;
    let detail = state(&server.jobs, id, JobState::Stuck).await;
    assert_eq!(detail.steps[1].state, StepState::UndoFailed);
    assert_eq!(detail.steps[1].undo_error.as_deref(), Some("the node refuses"));
    assert_eq!(server.world.made(), ["first"]);
    assert_eq!(detail.job.ended_at, None);
    id
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_stuck_job_keeps_its_locks_and_is_tried_again(pool: PgPool) {
    let server = server(&pool).await;
    let id = stuck(&server).await;
    let next = submit(&server.jobs, make().locks([Lock::exclusive("guest", 1)])).await;
    let waiting = until(&server.jobs, next, |detail| detail.job.waiting_for.is_some()).await;
    assert!(waiting.job.waiting_for.unwrap().contains("stuck"));
    for broken in [true, false] {
        server.world.undo_broken.store(broken, Ordering::SeqCst);
        let mut transaction = Db::from(pool.clone()).begin().await.unwrap();
        server.jobs.retry_stuck(&mut transaction, id).await.unwrap();
        transaction.commit().await.unwrap();
        state(&server.jobs, id, if broken { JobState::Stuck } else { JobState::Undone }).await;
    }
    assert_eq!(server.world.count("undo last"), 1, "only the undo that failed is run again");
    let detail = server.jobs.get(id).await.unwrap();
    assert_eq!((detail.steps[1].state, &detail.steps[1].undo_error), (StepState::Undone, &None));
    state(&server.jobs, next, JobState::Done).await;
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_stuck_job_is_abandoned_with_a_comment(pool: PgPool) {
    let server = server(&pool).await;
    let id = stuck(&server).await;
    let by = UserId(Uuid::now_v7());
    let mut transaction = Db::from(pool.clone()).begin().await.unwrap();
    let silent = server.jobs.abandon(&mut transaction, id, Some(by), " ").await;
    assert!(matches!(silent, Err(JobsError::CommentMissing)));
    server.jobs.abandon(&mut transaction, id, Some(by), "removed by hand").await.unwrap();
    transaction.commit().await.unwrap();
    let job = server.jobs.row(id).await.unwrap();
    assert_eq!(
        (job.state, job.comment.as_deref(), job.abandoned_by),
        (JobState::Abandoned, Some("removed by hand"), Some(by))
    );
    let next = submit(&server.jobs, make().locks([Lock::exclusive("guest", 1)])).await;
    state(&server.jobs, next, JobState::Done).await;
    let mut transaction = Db::from(pool.clone()).begin().await.unwrap();
    let late = server.jobs.retry_stuck(&mut transaction, id).await;
    assert!(matches!(late, Err(JobsError::WrongState { state: JobState::Abandoned, .. })));
}
