//! When a node is due for a check, what is kept of it, and when a guest should run.

use chrono::Utc;
use corpus_domain::{DriftKind, Reachability};
use sqlx::PgPool;
use uuid::Uuid;

use super::*;
use crate::store::{guests, nodes};

const INTERVAL: f64 = 60.0;
const HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF";

async fn node(db: &PgPool, address: &str, state: &str, reachability: &str) -> NodeId {
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, reachability, network, bridge)
         values ($1, $2, 22, 'root', $5, '{dev}', $3, $4, '10.5.0.1/16', 'lxcbr1')",
    )
    .bind(id)
    .bind(address)
    .bind(state)
    .bind(reachability)
    .bind(HOST_KEY)
    .execute(db)
    .await
    .unwrap();
    NodeId(id)
}

async fn due(db: &PgPool) -> Vec<NodeId> {
    let mut conn = db.acquire().await.unwrap();
    take_due(&mut conn, 10, INTERVAL).await.unwrap()
}

async fn run(db: &PgPool, sql: &'static str, id: NodeId) {
    sqlx::query(sql).bind(id.0).execute(db).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_in_service_is_due_once_a_minute_after_a_job_and_when_it_comes_back(db: PgPool) {
    let ready = node(&db, "192.0.2.1", "ready", "reachable").await;
    node(&db, "192.0.2.2", "linked", "reachable").await;
    let away = node(&db, "192.0.2.3", "ready", "unreachable").await;
    assert_eq!(due(&db).await, [ready], "in service, and it answers");
    assert_eq!(due(&db).await, [], "taken");

    let job = "insert into jobs (id, kind, title, params, dag, state, node_id, ended_at)
               values (gen_random_uuid(), 'keys_sync', '', '{}', '{}', 'done', $1, now() + interval '1 s')";
    run(&db, job, ready).await;
    assert_eq!(due(&db).await, [ready], "a job has ended since");
    run(&db, "update jobs set ended_at = now() - interval '1 h' where node_id = $1", ready).await;
    assert_eq!(due(&db).await, []);

    let mut conn = db.acquire().await.unwrap();
    postpone(&mut conn, ready, -1.0).await.unwrap();
    postpone(&mut conn, away, 30.0).await.unwrap();
    assert_eq!(due(&db).await, [ready], "its time has come");
    nodes::set_reachability(&mut conn, away, Reachability::Reachable, None).await.unwrap();
    nodes::set_reachability(&mut conn, ready, Reachability::Reachable, None).await.unwrap();
    assert_eq!(due(&db).await, [away], "it has just come back; the other never went");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_differs_is_kept_with_its_age(db: PgPool) {
    let id = node(&db, "192.0.2.1", "ready", "reachable").await;
    let mut conn = db.acquire().await.unwrap();
    let view = nodes::get(&mut conn, id).await.unwrap().unwrap();
    assert_eq!((view.drift, view.checked_at), (vec![], None));
    let one = Finding {
        kind: DriftKind::Key,
        guest: Some("www.x".parse().unwrap()),
        text: "root lacks 1 key".to_owned(),
        since: Utc::now(),
    };
    keep(&mut conn, id, std::slice::from_ref(&one)).await.unwrap();
    let view = nodes::get(&mut conn, id).await.unwrap().unwrap();
    assert_eq!(view.drift, std::slice::from_ref(&one));
    assert!(view.checked_at.is_some_and(|at| Utc::now() - at < chrono::TimeDelta::minutes(1)));
    assert_eq!(known(&mut conn, id).await.unwrap(), [one]);
    keep(&mut conn, id, &[]).await.unwrap();
    assert_eq!(known(&mut conn, id).await.unwrap(), []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_job_on_its_way_makes_a_check_worthless(db: PgPool) {
    let id = node(&db, "192.0.2.1", "ready", "reachable").await;
    let mut conn = db.acquire().await.unwrap();
    assert!(!is_changing(&mut conn, id).await.unwrap());
    let job = "with job as (
                   insert into jobs (id, kind, title, params, dag, state) values (gen_random_uuid(), 'guest_create', '', '{}', '{}', 'waiting')
                   returning id)
               insert into job_locks (resource, job_id, mode) select 'node:' || $1::uuid, id, 'shared' from job";
    run(&db, job, id).await;
    assert!(is_changing(&mut conn, id).await.unwrap(), "about to begin");
    for (state, changing) in [("running", true), ("undoing", true), ("stuck", false)] {
        sqlx::query("update jobs set state = $1").bind(state).execute(&db).await.unwrap();
        assert_eq!(is_changing(&mut conn, id).await.unwrap(), changing, "{state}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_should_run_as_the_last_job_left_it(db: PgPool) {
    use GuestState::{Creating, Failed, Running, Starting, Stopped, Stopping};
    let id = node(&db, "192.0.2.1", "ready", "reachable").await;
    let sql = "with project as (insert into projects (id, name) values (gen_random_uuid(), 'atlas') returning id)
               insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state)
               select gen_random_uuid(), 'www.x', $1, id, 'dev', 'lxc', 'debian-12', 'overlayfs', 'small', 'masterless', 'creating'
               from project";
    run(&db, sql, id).await;
    let mut conn = db.acquire().await.unwrap();
    let guest = wanted(&mut conn, id).await.unwrap().remove(0);
    assert_eq!((guest.state, guest.should_run), (Creating, true));
    assert_eq!(guest.stands_on, Some("debian-12".parse().unwrap()));
    for (from, to, should_run) in
        [(Creating, Running, true), (Running, Stopping, false), (Stopping, Stopped, false), (Stopped, Starting, true)]
    {
        assert!(guests::set_state(&mut conn, guest.id, &[from], to, None).await.unwrap());
        assert_eq!(wanted(&mut conn, id).await.unwrap()[0].should_run, should_run, "{to}");
    }
    assert!(guests::set_state(&mut conn, guest.id, &[Starting], Running, None).await.unwrap());
    let asked = Utc::now() + chrono::TimeDelta::seconds(1);
    let mut reading: corpus_protocol::Reading = serde_json::from_str(
        r#"{"load":0,"uptime_s":1,"memory_total":1,"memory_used":1,"storage":{"total":1,"used":1},
            "guests":[{"name":"www.x","state":"stopped","uptime_s":null,"memory_used":null}]}"#,
    )
    .unwrap();
    let seen_at = |at, reading: &corpus_protocol::Reading| crate::nodes::Observation {
        node: id,
        at,
        elapsed: std::time::Duration::ZERO,
        outcome: Ok(Box::new(reading.clone())),
        reachability: corpus_domain::Reachability::Reachable,
        changed: false,
    };
    guests::observe(&mut conn, [&seen_at(asked, &reading)].into_iter()).await.unwrap();
    let seen = wanted(&mut conn, id).await.unwrap().remove(0);
    assert_eq!((seen.state, seen.should_run), (Stopped, true), "what is seen says nothing of what should be");
    let whole = reading.clone();
    reading.guests.clear();
    let later = asked + chrono::TimeDelta::seconds(1);
    guests::observe(&mut conn, [&seen_at(later, &reading)].into_iter()).await.unwrap();
    let seen = wanted(&mut conn, id).await.unwrap().remove(0);
    assert_eq!((seen.state, seen.should_run), (Failed, true));
    // A node that shut down had let go of the disk with its guests.
    let again = Utc::now() + chrono::TimeDelta::minutes(1);
    guests::observe(&mut conn, [&seen_at(again, &whole)].into_iter()).await.unwrap();
    let seen = wanted(&mut conn, id).await.unwrap().remove(0);
    assert_eq!((seen.state, seen.should_run), (Stopped, true));
    // What failed for another reason is not mended by being there.
    guests::set_state(&mut conn, guest.id, &[Stopped], Failed, Some("its project was not destroyed")).await.unwrap();
    let at_last = again + chrono::TimeDelta::minutes(1);
    guests::observe(&mut conn, [&seen_at(at_last, &whole)].into_iter()).await.unwrap();
    assert_eq!(wanted(&mut conn, id).await.unwrap().remove(0).state, Failed);
}
