//! A job that succeeds, and what is written of it.

use corpus_domain::{JobKind, JobState, StepState, UserId};
use sqlx::PgPool;
use uuid::Uuid;

use super::*;
use crate::{JobFilter, JobsError, Submitted};
use corpus_database::{Db, beside};

#[sqlx::test(migrations = "../../migrations")]
async fn steps_run_in_order_and_the_job_is_done(pool: PgPool) {
    let server = server(&pool).await;
    let user = UserId(Uuid::now_v7());
    let id = submit(&server.jobs, make().created_by(user)).await;
    let detail = state(&server.jobs, id, JobState::Done).await;
    assert_eq!(server.world.story(), ["choose", "first", "middle", "last"]);
    assert!(detail.steps.iter().all(|step| step.state == StepState::Done && step.attempts == 1));
    assert!(detail.steps.iter().all(|step| step.started_at <= step.ended_at && step.started_at.is_some()));
    assert_eq!(
        detail.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(),
        ["choose", "first", "middle", "last"]
    );
    assert!(detail.job.ended_at.is_some() && detail.job.error.is_none() && detail.job.waiting_for.is_none());
    let log = server.jobs.log(id, 0, 100).await.unwrap();
    assert_eq!(log.iter().map(|line| (line.step, line.text.as_str())).collect::<Vec<_>>(), [(Some(0), "chose 7")]);
    let mine = JobFilter { created_by: Some(user), kind: Some(JobKind::GuestCreate), ..JobFilter::default() };
    assert_eq!(server.jobs.list(&mine, 10, 0).await.unwrap().total, 1);
    let stuck = JobFilter { states: vec![JobState::Stuck], ..JobFilter::default() };
    assert_eq!(server.jobs.list(&stuck, 10, 0).await.unwrap().total, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_job_of_a_rolled_back_transaction_never_was(pool: PgPool) {
    let server = server(&pool).await;
    let mut transaction = Db::from(pool.clone()).begin().await.unwrap();
    let id = server.jobs.submit(&mut transaction, make()).await.unwrap().id();
    transaction.rollback().await.unwrap();
    assert!(matches!(server.jobs.get(id).await, Err(JobsError::Missing(_))));
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_same_form_twice_is_one_job(pool: PgPool) {
    let server = server(&pool).await;
    let twice = async |jobs: Jobs| {
        let mut transaction = jobs.db().begin().await.unwrap();
        let submitted = jobs.submit(&mut transaction, make().idempotency_key("form-1")).await.unwrap();
        transaction.commit().await.unwrap();
        submitted
    };
    let (one, other) = tokio::join!(twice(server.jobs.clone()), beside(twice(server.jobs.clone())));
    assert_eq!(one.id(), other.id());
    let new = [one, other].iter().filter(|submitted| matches!(submitted, Submitted::New(_))).count();
    assert_eq!(new, 1);
    state(&server.jobs, one.id(), JobState::Done).await;
    assert_eq!(server.world.count("first"), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_transient_failure_is_tried_again_and_shown(pool: PgPool) {
    let server = server(&pool).await;
    server.world.transient_failures.store(2, Ordering::SeqCst);
    let id = submit(&server.jobs, make()).await;
    let detail = state(&server.jobs, id, JobState::Done).await;
    assert_eq!(detail.steps[2].attempts, 3);
    assert_eq!(server.world.count("middle"), 3);
    let log = server.jobs.log(id, 0, 100).await.unwrap();
    let tries: Vec<_> = log.iter().filter(|line| line.text.starts_with("attempt")).map(|line| &line.text).collect();
    assert!(tries[0].starts_with("attempt 2 of 3 in 0.0 s: no answer"), "{tries:?}");
    assert_eq!(tries.len(), 2);
    assert_eq!(detail.job.waiting_for, None);
}

/// No step is to blame for it, and as long as it lasts nothing can be undone either.
#[sqlx::test(migrations = "../../migrations")]
async fn a_database_that_is_away_is_waited_for_however_often_a_step_is_tried(pool: PgPool) {
    let server = server(&pool).await;
    server.world.times_without_database.store(5, Ordering::SeqCst);
    let id = submit(&server.jobs, make()).await;
    until(&server.jobs, id, |seen| seen.job.waiting_for.as_deref() == Some("the database to answer")).await;
    let detail = state(&server.jobs, id, JobState::Done).await;
    assert_eq!((server.world.count("middle"), detail.steps[2].attempts), (6, 1));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_failure_that_stays_undoes_everything_in_reverse(pool: PgPool) {
    let server = server(&pool).await;
    let id = submit(&server.jobs, NewJob::new("Make it", Make { fails: true, ..Make::default() })).await;
    let detail = state(&server.jobs, id, JobState::Undone).await;
    assert_eq!(server.world.story(), ["choose", "first", "middle", "last", "undo last", "undo middle", "undo first"]);
    assert_eq!(server.world.made(), Vec::<String>::new());
    assert_eq!(detail.job.error.as_deref(), Some("Make the last: the disk is full"));
    let states: Vec<_> = detail.steps.iter().map(|step| step.state).collect();
    assert_eq!(states, [StepState::Undone, StepState::Undone, StepState::Undone, StepState::Failed]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_failure_that_should_pass_but_does_not_undoes_too(pool: PgPool) {
    let server = server(&pool).await;
    server.world.transient_failures.store(9, Ordering::SeqCst);
    let id = submit(&server.jobs, make()).await;
    let detail = state(&server.jobs, id, JobState::Undone).await;
    assert_eq!((server.world.count("middle"), server.world.made()), (3, vec![]));
    assert_eq!(detail.job.error.as_deref(), Some("Make the middle: no answer"));
}
