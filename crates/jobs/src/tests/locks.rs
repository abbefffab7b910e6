//! Jobs that need the same things.

use corpus_domain::JobState;
use sqlx::PgPool;

use super::*;
use crate::Lock;

fn named(name: &str, locks: &[Lock]) -> NewJob<Make> {
    let params = Make { gated: true, name: name.into(), ..Make::default() };
    NewJob::new(format!("Make {name}"), params).locks(locks.iter().cloned())
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_after_the_other_in_the_order_of_submission(pool: PgPool) {
    let server = server(&pool).await;
    let guest = [Lock::exclusive("guest", 1)];
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(submit(&server.jobs, named(name, &guest)).await);
    }
    told(&server.world, "run a").await;
    let waiting = until(&server.jobs, ids[2], |detail| detail.job.waiting_for.is_some()).await;
    assert_eq!(waiting.job.waiting_for.as_deref(), Some("“Make a” to end"));
    assert_eq!(server.jobs.position(ids[2]).await.unwrap(), 2);
    assert_eq!((server.world.count("run b"), server.world.count("run c")), (0, 0));
    server.world.gate.add_permits(3);
    for id in &ids {
        state(&server.jobs, *id, JobState::Done).await;
    }
    let runs: Vec<_> = server.world.story().into_iter().filter(|told| told.starts_with("run")).collect();
    assert_eq!(runs, ["run a", "run b", "run c"]);
    let left = sqlx::query_scalar!(r#"select count(*) as "n!" from job_locks"#).fetch_one(&pool).await.unwrap();
    assert_eq!(left, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn sharers_run_together_and_nobody_overtakes_who_waits_alone(pool: PgPool) {
    let server = server(&pool).await;
    let (shared, alone) = ([Lock::shared("node", 1)], [Lock::exclusive("node", 1)]);
    let a = submit(&server.jobs, named("a", &shared)).await;
    let b = submit(&server.jobs, named("b", &shared)).await;
    told(&server.world, "run a").await;
    told(&server.world, "run b").await;
    let c = submit(&server.jobs, named("c", &alone)).await;
    let d = submit(&server.jobs, named("d", &shared)).await;
    until(&server.jobs, d, |detail| detail.job.blocked_by == Some(c)).await;
    server.world.gate.add_permits(4);
    for id in [a, b, c, d] {
        state(&server.jobs, id, JobState::Done).await;
    }
    let story = server.world.story();
    let at = |what: &str| story.iter().position(|told| told == what).unwrap();
    assert!(at("run c") < at("run d"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn two_servers_never_run_two_jobs_on_one_thing(pool: PgPool) {
    let world = Arc::<World>::default();
    // No machine is so busy that this is missed: a lease that is lost would be another test's affair.
    let calm = EngineConfig { lease: Duration::from_mins(1), ..config() };
    let (one, two) = (server_with(&pool, &world, &calm).await, server_with(&pool, &world, &calm).await);
    world.gate.add_permits(100);
    let mut ids = Vec::new();
    for number in 0..12 {
        let jobs = if number % 2 == 0 { &one.jobs } else { &two.jobs };
        ids.push(
            submit(jobs, named(&number.to_string(), &[Lock::exclusive("guest", number % 3), Lock::shared("node", 1)]))
                .await,
        );
    }
    for id in &ids {
        assert_eq!(state(&one.jobs, *id, JobState::Done).await.job.generation, 1);
    }
    let overlaps = sqlx::query_scalar!(
        r#"select count(*) as "n!" from jobs a join jobs b on a.queue_order < b.queue_order
           and (a.queue_order - b.queue_order) % 3 = 0 and b.started_at < a.ended_at"#
    );
    assert_eq!(overlaps.fetch_one(&pool).await.unwrap(), 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_full_server_says_so(pool: PgPool) {
    let world = Arc::<World>::default();
    let server = server_with(&pool, &world, &EngineConfig { capacity: 1, ..config() }).await;
    let a = submit(&server.jobs, named("a", &[])).await;
    told(&world, "run a").await;
    let b = submit(&server.jobs, named("b", &[])).await;
    until(&server.jobs, b, |detail| detail.job.waiting_for.as_deref() == Some("a free server")).await;
    world.gate.add_permits(2);
    state(&server.jobs, a, JobState::Done).await;
    state(&server.jobs, b, JobState::Done).await;
}
