//! What a job's end tells by letter: a guest or node that is ready, to who asked; what failed or is stuck.

use sqlx::PgPool;
use uuid::Uuid;

use super::queue::{GUEST, MIA, PROJECT, all_is_sent, mailer, queued, to, world};
use super::sink::Sink;
use crate::events::job_ended;
use corpus_domain::JobId;

const OPS: Uuid = Uuid::from_u128(12);
const NODE: Uuid = Uuid::from_u128(3);

/// A job of that kind by a member that is so now, and its telling, twice.
async fn ends(pool: &PgPool, kind: &str, state: &str, by: Uuid, project: Option<Uuid>) -> JobId {
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into jobs (id, kind, title, params, dag, state, project_id, guest_id, node_id, created_by, ended_at, error)
         values ($1, $2, 'Do ' || $2, '{}', '{}', $3, $4, $5, $6, $7, case when $3 <> 'stuck' then now() end,
             case when $3 <> 'done' then 'the disk is full' end)",
    )
    .bind(id)
    .bind(kind)
    .bind(state)
    .bind(project)
    .bind(GUEST)
    .bind(NODE)
    .bind(by)
    .execute(pool)
    .await
    .unwrap();
    tell(pool, id).await;
    tell(pool, id).await;
    JobId(id)
}

async fn tell(pool: &PgPool, id: Uuid) {
    job_ended(&mut pool.acquire().await.unwrap(), JobId(id)).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_is_ready_with_its_names_and_where_to_push(pool: PgPool) {
    world(&pool).await;
    ends(&pool, "guest_create", "done", MIA, Some(PROJECT)).await;
    assert_eq!(queued(&pool).await, [to("mia", "guest_ready")], "who asked for it, once");
    // Names are attached, and a password is there, when the letter is written.
    let then = "
        insert into zones (id, name, open) values ('00000000-0000-0000-0000-0000000000aa', 'shop.test', true);
        insert into dns_names (id, name, zone_id, guest_id, state) values
            (gen_random_uuid(), 'www.shop.test', '00000000-0000-0000-0000-0000000000aa',
             '00000000-0000-0000-0000-000000000002', 'attached'),
            (gen_random_uuid(), 'not.shop.test', '00000000-0000-0000-0000-0000000000aa',
             '00000000-0000-0000-0000-000000000002', 'wanted');
        update guests set password_sealed = 'hidden words'";
    sqlx::raw_sql(then).execute(&pool).await.unwrap();
    let sink = Sink::start().await;
    all_is_sent(&pool, &mailer(&sink)).await;
    let data = sink.letters()[0].data.replace("=\n", "");
    for part in [
        "ssh -p 40001 sysadmin@192.0.2.1",
        "http://www.shop.test",
        "https://www.shop.test",
        "ssh://git@c.test:2222/shop/prod\n",
        "ssh://git@c.test:2222/shop/prod/pillar",
        "http://c.test/guests/00000000-0000-0000-0000-000000000002",
    ] {
        assert!(data.contains(part), "{part} is not in\n{data}");
    }
    assert!(!data.contains("not.shop.test") && !data.contains("hidden"), "{data}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_that_is_gone_is_ready_for_nobody(pool: PgPool) {
    world(&pool).await;
    ends(&pool, "guest_create", "done", MIA, Some(PROJECT)).await;
    let gone = "delete from environment_guests; delete from environments; delete from guests";
    sqlx::raw_sql(gone).execute(&pool).await.unwrap();
    let sink = Sink::start().await;
    all_is_sent(&pool, &mailer(&sink)).await;
    assert_eq!((sink.letters().len(), queued(&pool).await), (0, vec![]));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_is_ready_for_operators(pool: PgPool) {
    world(&pool).await;
    let key = crate::tests::world::KEY.rsplit_once(' ').unwrap().0;
    sqlx::query("update nodes set slots = 9, host_key = $1").bind(key).execute(&pool).await.unwrap();
    ends(&pool, "node_initialize", "done", OPS, None).await;
    assert_eq!(queued(&pool).await, [to("ops", "node_ready")], "who asked for it is one of them: once");
    let sink = Sink::start().await;
    all_is_sent(&pool, &mailer(&sink)).await;
    let data = sink.letters()[0].data.clone();
    assert!(data.contains("192.0.2.1") && data.contains("8 more guests of size small"), "{data}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_failed_by_itself_and_what_is_stuck(pool: PgPool) {
    world(&pool).await;
    let failed = ends(&pool, "guest_stop", "undone", MIA, Some(PROJECT)).await;
    assert_eq!(queued(&pool).await, [to("mia", "job_failed")], "its own, and the project has a notice");
    ends(&pool, "deploy", "undone", MIA, Some(PROJECT)).await;
    ends(&pool, "guest_stop", "done", MIA, Some(PROJECT)).await;
    assert_eq!(queued(&pool).await.len(), 1, "a deployment tells of itself, and what went well is seen");
    sqlx::query("update jobs set cancel_requested_by = $1 where id = $2")
        .bind(OPS)
        .bind(failed.0)
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("delete from mail_queue").execute(&pool).await.unwrap();
    tell(&pool, failed.0).await;
    assert_eq!(queued(&pool).await, [], "somebody cancelled it");

    ends(&pool, "guest_destroy", "stuck", MIA, Some(PROJECT)).await;
    assert_eq!(queued(&pool).await, [to("mia", "job_stuck"), to("ops", "job_stuck")]);
    let sink = Sink::start().await;
    all_is_sent(&pool, &mailer(&sink)).await;
    assert!(sink.letters().iter().all(|letter| letter.data.contains("the disk is full")));
    ends(&pool, "node_repair", "stuck", MIA, None).await;
    all_is_sent(&pool, &mailer(&sink)).await;
    let last = sink.letters();
    assert_eq!(last.len(), 3);
    assert_eq!(last[2].to, ["RCPT TO:<ops@example.org>"], "jobs of nodes are for operators, whoever asked");
}
