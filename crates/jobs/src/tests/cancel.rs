//! Cancelling waiting and running jobs.

use corpus_domain::{JobState, StepState};
use sqlx::PgPool;

use super::*;
use crate::{JobsError, Lock};
use corpus_database::Db;

#[sqlx::test(migrations = "../../migrations")]
async fn a_running_job_is_undone(pool: PgPool) {
    let server = server(&pool).await;
    let id = submit(&server.jobs, gated()).await;
    told(&server.world, "middle").await;
    assert_eq!(cancel(&server.jobs, id).await, JobState::Running);
    let detail = state(&server.jobs, id, JobState::Undone).await;
    assert_eq!(server.world.story(), ["choose", "first", "middle", "undo middle", "undo first"]);
    assert!(detail.job.cancel_requested_at.is_some());
    assert_eq!(detail.job.error.as_deref(), Some("cancelled"));
    assert_eq!(detail.steps[3].state, StepState::Pending);
    let mut transaction = Db::from(pool.clone()).begin().await.unwrap();
    let again = server.jobs.cancel(&mut transaction, id, None).await;
    assert!(matches!(again, Err(JobsError::WrongState { state: JobState::Undone, .. })));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_waiting_job_is_over_at_once(pool: PgPool) {
    let server = server(&pool).await;
    let first = submit(&server.jobs, gated().locks([Lock::exclusive("guest", 1)])).await;
    told(&server.world, "middle").await;
    let second = submit(&server.jobs, make().locks([Lock::exclusive("guest", 1)])).await;
    let waiting = until(&server.jobs, second, |detail| detail.job.waiting_for.is_some()).await;
    assert_eq!(waiting.job.blocked_by, Some(first));
    assert_eq!(cancel(&server.jobs, second).await, JobState::Waiting);
    let detail = server.jobs.get(second).await.unwrap();
    assert_eq!((detail.job.state, detail.job.waiting_for), (JobState::Undone, None));
    server.world.gate.add_permits(1);
    state(&server.jobs, first, JobState::Done).await;
    assert_eq!(server.world.count("choose"), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_step_that_does_not_listen_is_dropped_after_the_grace(pool: PgPool) {
    let world = Arc::<World>::default();
    let deaf = async |ctx: Ctx| {
        ctx.services().tell("deaf");
        std::future::pending::<Result<(), StepError>>().await
    };
    let step = Step::new("deaf", "Hear nothing", deaf).undo(async |ctx: Ctx| unmake(&ctx, "deaf"));
    let registry = Registry::new().with(Job::new().step(step));
    let jobs = Jobs::open(pool.clone().into(), registry.outlines()).await.unwrap();
    let _engine = Engine::start(jobs.clone(), &registry, Arc::clone(&world), &config());
    let id = submit(&jobs, make()).await;
    told(&world, "deaf").await;
    cancel(&jobs, id).await;
    state(&jobs, id, JobState::Undone).await;
    assert_eq!(world.story(), ["deaf", "undo deaf"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_cancel_reaches_the_server_that_takes_the_job_over(pool: PgPool) {
    let world = Arc::<World>::default();
    let dying = server_with(&pool, &world, &config()).await;
    let id = submit(&dying.jobs, gated()).await;
    told(&world, "middle").await;
    let jobs = dying.jobs.clone();
    drop(dying.engine);
    cancel(&jobs, id).await;
    let heir = server_with(&pool, &world, &config()).await;
    state(&heir.jobs, id, JobState::Undone).await;
    assert_eq!(world.made(), Vec::<String>::new());
}

#[sqlx::test(migrations = "../../migrations")]
async fn past_the_point_of_no_return_a_cancel_changes_nothing(pool: PgPool) {
    let world = Arc::<World>::default();
    let step = Step::new("middle", "Make the middle", middle).not_cancellable();
    let registry = Registry::new().with(Job::new().step(step));
    let jobs = Jobs::open(pool.clone().into(), registry.outlines()).await.unwrap();
    let _engine = Engine::start(jobs.clone(), &registry, Arc::clone(&world), &config());
    let id = submit(&jobs, gated()).await;
    told(&world, "middle").await;
    cancel(&jobs, id).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    world.gate.add_permits(1);
    state(&jobs, id, JobState::Done).await;
}
