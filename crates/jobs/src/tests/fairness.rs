//! A project that submits without end, and a host that writes without end.

use corpus_domain::{JobState, ProjectId};
use sqlx::PgPool;
use uuid::Uuid;

use super::*;
use crate::JobsError;

fn of(project: ProjectId, name: &str) -> NewJob<Make> {
    let params = Make { gated: true, name: name.into(), ..Make::default() };
    NewJob::new(format!("Make {name}"), params).project(project)
}

#[sqlx::test(migrations = "../../migrations")]
async fn another_projects_job_begins_at_once(pool: PgPool) {
    let world = Arc::<World>::default();
    let server = server_with(&pool, &world, &EngineConfig { capacity: 8, ..config() }).await;
    let (flooding, other) = (ProjectId(Uuid::now_v7()), ProjectId(Uuid::now_v7()));
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(submit(&server.jobs, of(flooding, "flood")).await);
    }
    let last = until(&server.jobs, ids[19], |detail| detail.job.waiting_for.is_some()).await;
    assert_eq!(last.job.waiting_for.as_deref(), Some("a free place: its project runs as many jobs as it may at once"));
    told(&world, "run flood").await;
    submit(&server.jobs, of(other, "other")).await;
    told(&world, "run other").await;
    // Where processors are busy the last of them may begin later than the other's.
    for _ in 0..1000 {
        if world.count("run flood") >= 4 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.count("run flood"), 4, "half of the places");
    world.gate.add_permits(21);
    for id in ids {
        state(&server.jobs, id, JobState::Done).await;
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn so_many_jobs_of_a_project_wait_and_no_more(pool: PgPool) {
    let server = server_with(&pool, &Arc::default(), &EngineConfig { capacity: 0, ..config() }).await;
    let project = ProjectId(Uuid::now_v7());
    let mut transaction = server.jobs.db().begin().await.unwrap();
    for _ in 0..1_000 {
        server.jobs.submit(&mut transaction, of(project, "flood")).await.unwrap();
    }
    let refused = server.jobs.submit(&mut transaction, of(project, "one more")).await.unwrap_err();
    assert!(matches!(refused, JobsError::TooMany(1_000)), "{refused}");
    assert!(refused.to_string().contains("cancel some"), "{refused}");
    server.jobs.submit(&mut transaction, of(ProjectId(Uuid::now_v7()), "of another")).await.unwrap();
    let own = server.jobs.submit(&mut transaction, make()).await.unwrap().id();
    transaction.commit().await.unwrap();
    until(&server.jobs, own, |detail| detail.job.waiting_for.is_some()).await;
    let later: i64 =
        sqlx::query_scalar("select count(*) from jobs where waiting_for like '%many jobs of its project%'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(later, 700, "these are not looked at");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_a_host_writes_into_a_jobs_log_is_cut(pool: PgPool) {
    let server = server(&pool).await;
    let loud = NewJob::new("Make it loudly", Make { name: "loud".into(), ..Make::default() });
    let id = submit(&server.jobs, loud).await;
    state(&server.jobs, id, JobState::Done).await;
    let kept: i64 = sqlx::query_scalar("select sum(octet_length(text))::bigint from job_log where job_id = $1")
        .bind(id.0)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(kept <= (16 << 20) + 4_096, "{kept} bytes of 20 MB");
    let said: i64 = sqlx::query_scalar(
        "select count(*) from job_log where text like 'the output is cut here%' or text like '% are left out here'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert!(said > 0);
}
