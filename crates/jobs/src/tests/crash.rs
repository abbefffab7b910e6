//! Servers that die, stall or leave.

use corpus_domain::JobState;
use sqlx::PgPool;

use super::*;

#[sqlx::test(migrations = "../../migrations")]
async fn another_server_takes_over_and_repeats_only_what_ran(pool: PgPool) {
    let world = Arc::default();
    let dying = server_with(&pool, &world, &config()).await;
    let id = submit(&dying.jobs, gated()).await;
    told(&world, "middle").await;
    drop(dying);
    let heir = server_with(&pool, &world, &config()).await;
    world.gate.add_permits(1);
    let detail = state(&heir.jobs, id, JobState::Done).await;
    assert_eq!(world.story(), ["choose", "first", "middle", "middle", "last"]);
    assert_eq!(detail.job.generation, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn nobody_takes_a_lease_that_is_renewed(pool: PgPool) {
    let world = Arc::default();
    let config = EngineConfig { lease: Duration::from_secs(2), ..config() };
    let one = server_with(&pool, &world, &config).await;
    let id = submit(&one.jobs, gated()).await;
    told(&world, "middle").await;
    let _two = server_with(&pool, &world, &config).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.gate.add_permits(1);
    assert_eq!(state(&one.jobs, id, JobState::Done).await.job.generation, 1);
    assert_eq!(world.count("middle"), 1);
}

/// A server that stalls longer than its lease finds it lost when it comes back: it records
/// nothing, and its step is dropped.
#[sqlx::test(migrations = "../../migrations")]
async fn who_lost_the_lease_records_nothing(pool: PgPool) {
    let (stalled_world, world) = (Arc::<World>::default(), Arc::<World>::default());
    let never = Duration::from_hours(1);
    let stalled_config = EngineConfig { heartbeat: never, poll: never, ..config() };
    let stalled = server_with(&pool, &stalled_world, &stalled_config).await;
    let id = submit(&stalled.jobs, gated()).await;
    told(&stalled_world, "middle").await;
    let heir = server_with(&pool, &world, &config()).await;
    told(&world, "middle").await;
    stalled_world.gate.add_permits(1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(stalled_world.count("last"), 0, "the stalled server must not begin another step");
    let events =
        sqlx::query_scalar!(r#"select count(*) as "n!" from job_events where job_id = $1 and generation = 1"#, id.0);
    let recorded = events.fetch_one(&pool).await.unwrap();
    world.gate.add_permits(1);
    assert_eq!(state(&heir.jobs, id, JobState::Done).await.job.generation, 2);
    assert_eq!(world.story(), ["middle", "last"]);
    let events =
        sqlx::query_scalar!(r#"select count(*) as "n!" from job_events where job_id = $1 and generation = 1"#, id.0);
    assert_eq!(events.fetch_one(&pool).await.unwrap(), recorded);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_server_that_leaves_ends_its_step_and_hands_over_at_once(pool: PgPool) {
    let world = Arc::<World>::default();
    let leaving = server_with(&pool, &world, &EngineConfig { lease: Duration::from_mins(1), ..config() }).await;
    let id = submit(&leaving.jobs, gated()).await;
    told(&world, "middle").await;
    let ends = tokio::spawn(leaving.engine.shutdown(Duration::from_secs(5)));
    tokio::time::sleep(Duration::from_millis(50)).await;
    world.gate.add_permits(1);
    ends.await.unwrap();
    let heir = server_with(&pool, &world, &config()).await;
    state(&heir.jobs, id, JobState::Done).await;
    assert_eq!(world.story(), ["choose", "first", "middle", "last"], "nothing is repeated");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_server_that_leaves_does_not_wait_forever(pool: PgPool) {
    let world = Arc::<World>::default();
    let leaving = server_with(&pool, &world, &EngineConfig { lease: Duration::from_mins(1), ..config() }).await;
    let id = submit(&leaving.jobs, gated()).await;
    told(&world, "middle").await;
    tokio::time::timeout(Duration::from_secs(3), leaving.engine.shutdown(Duration::from_millis(50))).await.unwrap();
    let heir = server_with(&pool, &world, &config()).await;
    world.gate.add_permits(1);
    assert_eq!(state(&heir.jobs, id, JobState::Done).await.job.generation, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn lost_connections_to_the_database_lose_nothing(pool: PgPool) {
    let server = server(&pool).await;
    let id = submit(&server.jobs, gated()).await;
    told(&server.world, "middle").await;
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
               where datname = current_database() and pid <> pg_backend_pid()";
    sqlx::query(cut).execute(&pool).await.unwrap();
    server.world.gate.add_permits(1);
    state(&server.jobs, id, JobState::Done).await;
    assert_eq!(server.world.story(), ["choose", "first", "middle", "last"]);
    // Listening again, not only polling: a cancel is a notice.
    let id = submit(&server.jobs, gated()).await;
    state(&server.jobs, id, JobState::Running).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    cancel(&server.jobs, id).await;
    state(&server.jobs, id, JobState::Undone).await;
}

/// A server that stood still within a step finds the job lost when it wants to change rows.
#[sqlx::test(migrations = "../../migrations")]
async fn who_lost_the_lease_changes_no_rows(pool: PgPool) {
    use corpus_domain::JobKind;

    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct Slow;
    impl JobParams for Slow {
        const KIND: JobKind = JobKind::GuestStop;
    }
    async fn change(ctx: StepContext<World, Slow>) -> Result<(), StepError> {
        ctx.services().tell("begun");
        let passed = ctx.services().gate.acquire().await.map_err(|_| StepError::cancelled())?;
        passed.forget();
        ctx.begin().await?.commit().await?;
        ctx.services().tell("changed");
        Ok(())
    }
    let registry = || Registry::new().with(Job::new().step(Step::new("change", "Change rows", change)));
    let (stalled_world, world) = (Arc::<World>::default(), Arc::<World>::default());
    let never = Duration::from_hours(1);
    let stalled_config = EngineConfig { heartbeat: never, poll: never, ..config() };
    let jobs = Jobs::open(pool.clone().into(), registry().outlines()).await.unwrap();
    let _stalled = Engine::start(jobs.clone(), &registry(), Arc::clone(&stalled_world), &stalled_config);
    let id = submit(&jobs, NewJob::new("Change slowly", Slow)).await;
    told(&stalled_world, "begun").await;
    let _heir = Engine::start(jobs.clone(), &registry(), Arc::clone(&world), &config());
    world.gate.add_permits(1);
    state(&jobs, id, JobState::Done).await;
    stalled_world.gate.add_permits(1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((stalled_world.count("changed"), world.count("changed")), (0, 1));
}
