//! Who gets which letter, once, and what happens when the relay does not take it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corpus_domain::{DeploymentId, Environment, MailPreference, ProjectId, UserId};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::sink::Sink;
use crate::events::{deployment_ended, platform_ready};
use crate::mail::{Mailer, Relay};
use crate::store::{Db, beside, mail, mail_letters};

pub const PROJECT: Uuid = Uuid::from_u128(1);
pub const GUEST: Uuid = Uuid::from_u128(2);
pub const MIA: Uuid = Uuid::from_u128(10);
pub const TOM: Uuid = Uuid::from_u128(11);

pub async fn world(pool: &PgPool) {
    let setup = "
        insert into users (id, realm, login, display_name, mail, ops) values
            ('00000000-0000-0000-0000-00000000000a', 'ldap', 'mia', 'Mia', 'mia@example.org', false),
            ('00000000-0000-0000-0000-00000000000b', 'ldap', 'tom', 'Tom', 'tom@example.org', false),
            ('00000000-0000-0000-0000-00000000000c', 'ldap', 'ops', 'Ops', 'ops@example.org', true),
            ('00000000-0000-0000-0000-00000000000d', 'local', 'admin', 'Admin', null, true);
        insert into projects (id, name) values ('00000000-0000-0000-0000-000000000001', 'shop');
        insert into memberships (user_id, project_id, role, source)
            select id, '00000000-0000-0000-0000-000000000001', 'maintainer', 'ldap' from users where not ops;
        insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge) values
            ('00000000-0000-0000-0000-000000000003', '192.0.2.1', 22, 'root', 'x', '{prod}', 'ready', '10.5.0.1/16', 'br');
        insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, ssh_port, id_range,
            state) values ('00000000-0000-0000-0000-000000000002', 'www.shop.test', '00000000-0000-0000-0000-000000000003',
            '00000000-0000-0000-0000-000000000001', 'prod', 'lxc', 'debian-12', 'dir', 'small', 'salt', 40001, 1073741824,
            'running');
        insert into environments (project_id, environment, created_by) values
            ('00000000-0000-0000-0000-000000000001', 'prod', '00000000-0000-0000-0000-00000000000a');
        insert into environment_guests (project_id, environment, guest_id, role, state) values
            ('00000000-0000-0000-0000-000000000001', 'prod', '00000000-0000-0000-0000-000000000002', 'leader', 'ready')";
    sqlx::raw_sql(setup).execute(pool).await.unwrap();
}

/// A deployment by a member that has ended so, and the letters that it makes.
pub async fn ends(pool: &PgPool, number: i64, by: Uuid, trigger: &str, state: &str) -> DeploymentId {
    ends_on(pool, None, number, by, trigger, state).await
}

/// The same on a follower, if it has a leader.
async fn ends_on(
    pool: &PgPool,
    leader: Option<DeploymentId>,
    number: i64,
    by: Uuid,
    trigger: &str,
    state: &str,
) -> DeploymentId {
    let id = Uuid::now_v7();
    let report = json!({
        "id": id, "project": "shop", "environment": "prod", "state": state, "trigger": trigger, "by": "x",
        "commit": "0123456789abcdef0123456789abcdef01234567", "pillar": null, "previous": null, "commits": [],
        "ordered_ms": 0, "began_ms": 0, "ended_ms": 0, "phases": [], "proofs": [], "live": null,
        "fault": { "phase": "install", "recipe": "10_app", "message": "exit status 1", "line": 2 },
        "failed_tree": null, "archives": [], "lines": 2,
    });
    sqlx::query(
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by_id, by, state,
             subject, fault, ended_at, report, final, leader_id)
         values ($1, $2, $3, 'prod', $4, 'www.shop.test', $5, $6, (select login from users where id = $6), $7,
             'Sell umbrellas', 'exit status 1', now(), $8, true, $9)",
    )
    .bind(id)
    .bind(PROJECT)
    .bind(number)
    .bind(GUEST)
    .bind(trigger)
    .bind(by)
    .bind(state)
    .bind(report)
    .bind(leader.map(|leader| leader.0))
    .execute(pool)
    .await
    .unwrap();
    let line = "insert into deployment_log values ($1, 2, now(), 'err', 'no such table: umbrellas')";
    sqlx::query(line).bind(id).execute(pool).await.unwrap();
    let mut conn = pool.acquire().await.unwrap();
    deployment_ended(&mut conn, DeploymentId(id)).await.unwrap();
    deployment_ended(&mut conn, DeploymentId(id)).await.unwrap();
    DeploymentId(id)
}

pub async fn wants(pool: &PgPool, who: Uuid, preference: MailPreference) {
    mail::set_preference(&mut pool.acquire().await.unwrap(), UserId(who), preference, &BTreeMap::new()).await.unwrap();
}

pub async fn queued(pool: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as(
        "select u.login, m.letter ->> 'type' from mail_queue m join users u on u.id = m.user_id
         left join mail_letters l on l.id = m.letter_id
         where m.dropped_at is null and coalesce(l.state, 'waiting') = 'waiting' order by u.login, m.created_at, m.id",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

/// Sends what is due, and tells whether that was all.
pub async fn send_due(db: &Db, mailer: Option<&Mailer>) -> sqlx::Result<bool> {
    crate::mail::send_due(db, mailer, Some("ssh://git@c.test:2222")).await
}

/// As if the minute were over in which what comes is one letter, and the pause after a refusal.
pub async fn a_minute_later(pool: &PgPool) {
    let due = "update mail_queue set due_at = now() where letter_id is null and not digest";
    sqlx::query(due).execute(pool).await.unwrap();
    sqlx::query("update mail_letters set next_try = now()").execute(pool).await.unwrap();
}

/// Sends all that is queued but what waits for the letter of the day.
pub async fn all_is_sent(pool: &PgPool, mailer: &Mailer) {
    a_minute_later(pool).await;
    assert!(send_due(&pool.clone().into(), Some(mailer)).await.unwrap());
}

pub fn mailer(sink: &Sink) -> Mailer {
    mailer_to(&format!("smtp://{}", sink.address))
}

pub fn mailer_to(relay: &str) -> Mailer {
    Mailer::new(&Relay::of(relay), "corpus@example.org", &"http://c.test".parse().unwrap()).unwrap()
}

pub fn to(login: &str, letter: &str) -> (String, String) {
    (login.to_owned(), letter.to_owned())
}

#[sqlx::test(migrations = "../../migrations")]
async fn failures_go_to_whose_they_are_and_who_wants_all(pool: PgPool) {
    world(&pool).await;
    ends(&pool, 1, MIA, "push", "live").await;
    assert_eq!(queued(&pool).await, [], "what works is no news");
    ends(&pool, 2, MIA, "push", "rolled_back").await;
    assert_eq!(queued(&pool).await, [to("mia", "failed")], "once, and to no other");
    wants(&pool, TOM, MailPreference::All).await;
    wants(&pool, MIA, MailPreference::Nothing).await;
    ends(&pool, 3, MIA, "push", "broken").await;
    assert_eq!(queued(&pool).await, [to("mia", "failed"), to("tom", "failed")]);
    wants(&pool, MIA, MailPreference::Own).await;
    wants(&pool, TOM, MailPreference::Own).await;
    ends(&pool, 4, MIA, "drill", "rolled_back").await;
    ends(&pool, 5, MIA, "push", "superseded").await;
    assert_eq!(queued(&pool).await.len(), 2, "a drill fails on purpose, and what never ran did not fail");
    ends(&pool, 6, TOM, "push", "live").await;
    let expected = [to("mia", "failed"), to("mia", "recovered"), to("tom", "failed"), to("tom", "recovered")];
    assert_eq!(queued(&pool).await, expected, "who failed and who repaired");
    ends(&pool, 7, TOM, "push", "live").await;
    assert_eq!(queued(&pool).await.len(), 4, "only the first after a failure");
}

/// Who found which notice of a deployment, in the order of the logins.
async fn noticed(pool: &PgPool, number: i64) -> Vec<(String, String)> {
    sqlx::query_as(
        "select u.login, n.news ->> 'state' from notices n join users u on u.id = n.user_id
         where n.news ->> 'number' = $1::text order by u.login, n.created_at",
    )
    .bind(number)
    .fetch_all(pool)
    .await
    .unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn every_member_of_the_project_finds_a_notice_of_what_failed(pool: PgPool) {
    world(&pool).await;
    for who in [MIA, TOM] {
        wants(&pool, who, MailPreference::Nothing).await;
    }
    ends(&pool, 1, MIA, "push", "live").await;
    assert_eq!(noticed(&pool, 1).await, [], "who pushed it has seen it go live");
    ends(&pool, 2, MIA, "push", "rolled_back").await;
    assert_eq!(noticed(&pool, 2).await, [to("mia", "rolled_back"), to("tom", "rolled_back")], "each once, no stranger");
    assert_eq!(queued(&pool).await, [], "whatever mail they want");
    ends(&pool, 3, TOM, "push", "live").await;
    assert_eq!(noticed(&pool, 3).await, [to("mia", "live"), to("tom", "live")], "it works again");
    ends(&pool, 4, TOM, "hand", "live").await;
    assert_eq!(noticed(&pool, 4).await, [to("tom", "live")], "who ordered it");
    ends(&pool, 5, MIA, "drill", "rolled_back").await;
    assert_eq!(noticed(&pool, 5).await, [to("mia", "rolled_back")], "a drill is nobody else's");
    ends(&pool, 6, MIA, "push", "superseded").await;
    assert_eq!(noticed(&pool, 6).await, []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_another_guest_it_is_told_that_it_is_not_live_there(pool: PgPool) {
    world(&pool).await;
    let failed = ends(&pool, 1, MIA, "push", "rolled_back").await;
    ends_on(&pool, Some(failed), 1, MIA, "push", "rolled_back").await;
    assert_eq!(queued(&pool).await, [to("mia", "failed")], "it failed once");
    let live = ends(&pool, 2, MIA, "push", "live").await;
    ends_on(&pool, Some(live), 2, MIA, "push", "live").await;
    assert_eq!(queued(&pool).await, [to("mia", "failed"), to("mia", "recovered")]);
    ends_on(&pool, Some(live), 2, MIA, "push", "rolled_back").await;
    let guest = "select letter ->> 'guest' from mail_queue where letter ->> 'guest' is not null";
    let guests: Vec<String> = sqlx::query_scalar(guest).fetch_all(&pool).await.unwrap();
    assert_eq!((queued(&pool).await.len(), guests), (3, vec!["www.shop.test".to_owned()]));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_platform_goes_to_who_asked_and_to_ops(pool: PgPool) {
    world(&pool).await;
    let mut conn = pool.acquire().await.unwrap();
    for _ in 0..2 {
        platform_ready(&mut conn, ProjectId(PROJECT), Environment::Prod, Some("ssh://git@c.test:2222")).await.unwrap();
    }
    assert_eq!(queued(&pool).await, [to("mia", "platform_ready"), to("ops", "platform_ready")]);
    let sink = Sink::start().await;
    all_is_sent(&pool, &mailer(&sink)).await;
    let letter = sink.letters()[0].data.clone();
    for part in
        ["ssh -p 40001 sysadmin@192.0.2.1", "ssh://git@c.test:2222/shop/prod/pillar", "http://c.test/projects/shop"]
    {
        assert!(letter.contains(part), "{part} is not in\n{letter}");
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_letter_is_sent_once_by_one_server(pool: PgPool) {
    world(&pool).await;
    ends(&pool, 1, MIA, "push", "rolled_back").await;
    let sink = Sink::start().await;
    let mailer = mailer(&sink);
    let db = Db::from(pool.clone());
    send_due(&db, Some(&mailer)).await.unwrap();
    assert_eq!(sink.letters().len(), 0, "it waits a minute for others");
    a_minute_later(&pool).await;
    let (one, two) = tokio::join!(send_due(&db, Some(&mailer)), beside(send_due(&db, Some(&mailer))));
    assert!(one.unwrap() && two.unwrap());
    send_due(&pool.clone().into(), Some(&mailer)).await.unwrap();
    let letters = sink.letters();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].from, "MAIL FROM:<corpus@example.org>");
    assert_eq!(letters[0].to, ["RCPT TO:<mia@example.org>"]);
    let data = &letters[0].data;
    assert!(data.contains("Subject: [shop prod] #1 failed and was put back"), "{data}");
    assert!(data.contains("no such table: umbrellas") && data.contains("http://c.test/projects/shop/deployments/1"));
    assert_eq!(queued(&pool).await, []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_the_relay_refuses_is_tried_again_and_given_up_after_a_day(pool: PgPool) {
    world(&pool).await;
    ends(&pool, 1, MIA, "push", "rolled_back").await;
    let sink = Sink::start().await;
    let mailer = mailer(&sink);
    *sink.refuses.lock().unwrap() = Some("451 later");
    all_is_sent(&pool, &mailer).await;
    assert_eq!(sink.letters().len(), 0);
    let error: String = sqlx::query_scalar("select error from mail_letters").fetch_one(&pool).await.unwrap();
    assert!(error.contains("later"), "{error}");
    *sink.refuses.lock().unwrap() = None;
    send_due(&pool.clone().into(), Some(&mailer)).await.unwrap();
    assert_eq!(sink.letters().len(), 0, "not before its time");
    all_is_sent(&pool, &mailer).await;
    assert_eq!(sink.letters().len(), 1);

    *sink.refuses.lock().unwrap() = Some("451 later");
    ends(&pool, 2, MIA, "push", "rolled_back").await;
    all_is_sent(&pool, &mailer).await;
    let relay = mail_letters::relay(&mut pool.acquire().await.unwrap()).await.unwrap();
    assert_eq!((relay.waiting, relay.failing, relay.given_up, relay.sent_at.is_some()), (1, 1, 0, true));
    assert!(relay.error.unwrap().contains("later"));
    *sink.refuses.lock().unwrap() = None;
    let aged = "update mail_letters set created_at = now() - interval '25 h' where state = 'waiting'";
    sqlx::query(aged).execute(&pool).await.unwrap();
    all_is_sent(&pool, &mailer).await;
    assert_eq!((sink.letters().len(), queued(&pool).await), (1, vec![]));
    let relay = mail_letters::relay(&mut pool.acquire().await.unwrap()).await.unwrap();
    assert_eq!((relay.waiting, relay.failing, relay.given_up, relay.error), (0, 0, 1, None));
    let told =
        "select u.login from notices n join users u on u.id = n.user_id where n.news ->> 'type' = 'mail_given_up'
        and n.for_ops and n.news ->> 'reason' like '%later%' order by u.login";
    let told: Vec<String> = sqlx::query_scalar(told).fetch_all(&pool).await.unwrap();
    assert_eq!(told, ["admin", "ops"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_relay_that_is_away_costs_nothing_but_time(pool: PgPool) {
    world(&pool).await;
    ends(&pool, 1, MIA, "push", "rolled_back").await;
    let gone = {
        let sink = Sink::start().await;
        mailer(&sink)
    };
    all_is_sent(&pool, &gone).await;
    assert_eq!(queued(&pool).await, [to("mia", "failed")]);
    assert!(send_due(&pool.clone().into(), None).await.unwrap(), "and no relay at all is no error");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_relay_may_want_a_login(pool: PgPool) {
    world(&pool).await;
    ends(&pool, 1, MIA, "push", "rolled_back").await;
    let sink = Sink::start().await;
    let mailer = mailer_to(&format!("smtp://corpus:pass%20word@{}", sink.address));
    all_is_sent(&pool, &mailer).await;
    // RFC 4616: nobody, the login, the password.
    let plain = STANDARD.encode("\0corpus\0pass word");
    assert_eq!(sink.letters()[0].login.as_deref(), Some(plain.as_str()));
}
