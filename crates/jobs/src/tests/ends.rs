//! The end of a job is told in the transaction in which it is over, or not at all.

use corpus_domain::JobState;
use futures::FutureExt;
use sqlx::{PgConnection, PgPool};

use super::*;

fn note(conn: &mut PgConnection, job: JobId) -> futures::future::BoxFuture<'_, sqlx::Result<()>> {
    let noted = sqlx::query("insert into ends (job, state) select id, state from jobs where id = $1");
    async move { noted.bind(job.0).execute(conn).await.map(drop) }.boxed()
}

async fn noting(pool: &PgPool) -> Server {
    let jobs = Jobs::telling(pool.clone().into(), registry().outlines(), note).await.unwrap();
    let world = Arc::<World>::default();
    let engine = Engine::start(jobs.clone(), &registry(), Arc::clone(&world), &config());
    Server { jobs, world, engine }
}

async fn make_room(pool: &PgPool) {
    sqlx::query("create table ends (job uuid, state text)").execute(pool).await.unwrap();
}

async fn ends(pool: &PgPool, job: JobId) -> Vec<String> {
    let found = sqlx::query_scalar("select state from ends where job = $1").bind(job.0);
    found.fetch_all(pool).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn every_end_is_told_once(pool: PgPool) {
    make_room(&pool).await;
    let server = noting(&pool).await;
    let done = submit(&server.jobs, make()).await;
    state(&server.jobs, done, JobState::Done).await;
    assert_eq!(ends(&pool, done).await, ["done"]);
    let undone = submit(&server.jobs, NewJob::new("Fail", Make { fails: true, ..Make::default() })).await;
    state(&server.jobs, undone, JobState::Undone).await;
    assert_eq!(ends(&pool, undone).await, ["undone"]);

    let first = submit(&server.jobs, gated().locks([crate::Lock::exclusive("guest", 1)])).await;
    let second = submit(&server.jobs, make().locks([crate::Lock::exclusive("guest", 1)])).await;
    until(&server.jobs, second, |detail| detail.job.waiting_for.is_some()).await;
    assert_eq!(cancel(&server.jobs, second).await, JobState::Waiting);
    assert_eq!(ends(&pool, second).await, ["undone"], "one that never ran");
    assert_eq!(ends(&pool, first).await, Vec::<String>::new(), "one that runs");
    cancel(&server.jobs, first).await;
    state(&server.jobs, first, JobState::Undone).await;
    assert_eq!(ends(&pool, first).await, ["undone"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_can_not_be_told_is_not_over_yet(pool: PgPool) {
    let server = noting(&pool).await;
    let id = submit(&server.jobs, make()).await;
    told(&server.world, "last").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.jobs.row(id).await.unwrap().state, JobState::Running);
    make_room(&pool).await;
    state(&server.jobs, id, JobState::Done).await;
    assert_eq!(ends(&pool, id).await, ["done"]);
}
