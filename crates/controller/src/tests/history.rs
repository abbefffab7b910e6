//! What is told of past deployments: pages of them, their logs, the numbers of delivery.

use chrono::{DateTime, Duration, Utc};
use corpus_api::deployments::log::{ReadDeploymentLog, SearchDeploymentLog};
use corpus_api::projects::{DeploymentDuration, GetDelivery};
use corpus_domain::{DeploymentId, DeploymentState, Environment};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::World;
use crate::store::deployment_log::{self, NewLine};

fn line(number: i64, text: &str) -> NewLine {
    NewLine { number, at_ms: 1_700_000_000_000 + number, stream: "out", text: text.to_owned() }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_log_is_written_once_and_searched(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.environment(&mia, shop, Environment::Dev).await;
    let id = world.deploy(&mia, "shop", Environment::Dev).await.unwrap().deployment;
    let mut conn = world.db.acquire().await.unwrap();
    let lines = [line(1, "Hello 100%"), line(2, "in between"), line(3, "_under"), line(4, "HELLO again")];
    deployment_log::add(&mut conn, id, &lines).await.unwrap();
    deployment_log::add(&mut conn, id, &[line(4, "something else"), line(5, "last")]).await.unwrap();
    let part = ReadDeploymentLog { deployment: id, after: 2.try_into().ok(), limit: 2.try_into().ok() };
    let read = world.ask(&mia, part).await.unwrap().lines;
    assert_eq!(read.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["_under", "HELLO again"]);
    assert_eq!(read[0].at.timestamp_millis(), 1_700_000_000_003);
    let found = async |text: &str| -> Vec<i64> {
        let asked = SearchDeploymentLog { deployment: id, text: text.parse().unwrap(), after: None };
        world.ask(&mia, asked).await.unwrap().lines.iter().map(|one| one.number).collect()
    };
    assert_eq!(found("hello").await, [1, 4]);
    assert_eq!(found("100%").await, [1]);
    assert_eq!(found("_").await, [3], "no wildcard");
    let later = SearchDeploymentLog { deployment: id, text: "hello".parse().unwrap(), after: 1.try_into().ok() };
    assert_eq!(world.ask(&mia, later).await.unwrap().lines[0].number, 4, "it goes on after a line");
    let changed = sqlx::query("update deployment_log set text = 'x'").execute(&world.db).await;
    assert!(changed.unwrap_err().to_string().contains("never changed"));
}

/// A deployment that ended some days ago.
async fn ended(world: &World, environment: &str, state: &str, ago: Duration, authored: Option<Duration>) {
    let at: DateTime<Utc> = Utc::now() - ago;
    let commits = authored.map_or(
        json!([]),
        |before| json!([{ "id": "a", "subject": "s", "author": "m", "at_ms": (at - before).timestamp_millis() }]),
    );
    sqlx::query(
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, state, ordered_at,
             ended_at, elapsed_ms, report, authored_ms, final)
         select $1, id, (select count(*) + 1 from deployments), $2, $1, 'guest0.example.org', $3, 'mia', $4, $5, $5, $6,
                jsonb_build_object('commits', $7::jsonb),
                array(select (c ->> 'at_ms')::bigint from jsonb_array_elements($7::jsonb) c), true
         from projects",
    )
    .bind(Uuid::now_v7())
    .bind(environment)
    .bind(if state == "drill" { "drill" } else { "push" })
    .bind(if state == "drill" { "rolled_back" } else { state })
    .bind(at)
    .bind(ago.num_days() * 100)
    .bind(commits)
    .execute(&world.db)
    .await
    .unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn how_a_project_delivers(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let (day, hour) = (Duration::days, Duration::hours);
    ended(&world, "prod", "live", day(30), Some(hour(10))).await;
    ended(&world, "prod", "rolled_back", day(20) + hour(2), None).await;
    ended(&world, "prod", "rolled_back", day(20) + hour(1), None).await;
    ended(&world, "staging", "live", day(20) + hour(1), Some(hour(30))).await;
    ended(&world, "prod", "live", day(20), Some(hour(20))).await;
    ended(&world, "prod", "broken", day(1), None).await;
    // These don't count.
    ended(&world, "dev", "rolled_back", day(2), None).await;
    ended(&world, "staging", "drill", day(2), None).await;
    ended(&world, "prod", "superseded", day(2), None).await;
    ended(&world, "prod", "live", day(100), Some(hour(1000))).await;

    let delivery = world.ask(&mia, GetDelivery { project: "shop".parse().unwrap() }).await.unwrap();
    let live: Vec<u32> = delivery.weeks.iter().map(|week| week.live).collect();
    let failed: Vec<u32> = delivery.weeks.iter().map(|week| week.failed).collect();
    assert_eq!(live, [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0]);
    assert_eq!(failed, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]);
    assert_eq!(delivery.failure_rate, Some(0.5));
    assert_eq!(delivery.lead_time_s, Some(20 * 3600));
    assert_eq!(delivery.time_to_restore_s, Some(2 * 3600), "from the first of the two failures");
    assert_eq!(delivery.durations.len(), 6);
    let last = DeploymentDuration { elapsed_ms: 100, state: DeploymentState::Broken };
    assert_eq!(delivery.durations.last(), Some(&last));
    assert_eq!(delivery.median_ms, Some(2000));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_project_without_deployments_has_no_figures(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let delivery = world.ask(&mia, GetDelivery { project: "shop".parse().unwrap() }).await.unwrap();
    assert_eq!(delivery.weeks.len(), 13);
    assert!(delivery.failure_rate.is_none() && delivery.lead_time_s.is_none() && delivery.median_ms.is_none());
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_the_guest_told_at_the_end_stays(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    world.environment(&mia, shop, Environment::Dev).await;
    let id = world.deploy(&mia, "shop", Environment::Dev).await.unwrap().deployment;
    let end = async |id: DeploymentId| {
        let by_hand =
            "update deployments set state = 'live', ended_at = now(), final = true, report = '{}' where id = $1";
        sqlx::query(by_hand).bind(id.0).execute(&world.db).await
    };
    end(id).await.unwrap();
    for change in ["report = '[]'", "state = 'broken'"] {
        let outcome =
            sqlx::query(sqlx::AssertSqlSafe(format!("update deployments set {change}"))).execute(&world.db).await;
        assert!(outcome.unwrap_err().to_string().contains("is over"), "{change}");
    }
}
