//! Who gets which letter, once, and what happens when the relay does not take it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corpus_domain::{DeploymentId, Environment, MailPreference, ProjectId, UserId};
use secrecy::SecretString;
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::sink::Sink;
use crate::mail::sending::send_due;
use crate::mail::{Mailer, deployment_ended, platform_ready};
use crate::store::{Db, beside, mail};

const PROJECT: Uuid = Uuid::from_u128(1);
const GUEST: Uuid = Uuid::from_u128(2);
const MIA: Uuid = Uuid::from_u128(10);
const TOM: Uuid = Uuid::from_u128(11);

async fn world(pool: &PgPool) {
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
async fn ends(pool: &PgPool, number: i64, by: Uuid, trigger: &str, state: &str) -> DeploymentId {
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

async fn wants(pool: &PgPool, who: Uuid, preference: MailPreference) {
    mail::set_preference(&mut pool.acquire().await.unwrap(), UserId(who), preference).await.unwrap();
}

async fn queued(pool: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as(
        "select u.login, m.letter ->> 'type' from mail_queue m join users u on u.id = m.user_id
         where sent_at is null and given_up_at is null order by u.login, m.created_at",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

fn mailer(sink: &Sink) -> Mailer {
    mailer_to(format!("smtp://{}", sink.address))
}

fn mailer_to(relay: String) -> Mailer {
    Mailer::new(&SecretString::from(relay), "corpus@example.org", &"http://c.test".parse().unwrap()).unwrap()
}

fn to(login: &str, letter: &str) -> (String, String) {
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
    assert!(send_due(&pool.clone().into(), Some(&mailer(&sink))).await.unwrap());
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
    send_due(&pool.clone().into(), Some(&mailer)).await.unwrap();
    assert_eq!(sink.letters().len(), 0);
    let error: String = sqlx::query_scalar("select error from mail_queue").fetch_one(&pool).await.unwrap();
    assert!(error.contains("later"), "{error}");
    *sink.refuses.lock().unwrap() = None;
    send_due(&pool.clone().into(), Some(&mailer)).await.unwrap();
    assert_eq!(sink.letters().len(), 0, "not before its time");
    sqlx::query("update mail_queue set next_try = now()").execute(&pool).await.unwrap();
    send_due(&pool.clone().into(), Some(&mailer)).await.unwrap();
    assert_eq!(sink.letters().len(), 1);

    ends(&pool, 2, MIA, "push", "rolled_back").await;
    let aged = "update mail_queue set created_at = now() - interval '25 h' where sent_at is null";
    sqlx::query(aged).execute(&pool).await.unwrap();
    send_due(&pool.clone().into(), Some(&mailer)).await.unwrap();
    assert_eq!((sink.letters().len(), queued(&pool).await), (1, vec![]));
    let given_up: i64 = sqlx::query_scalar("select count(*) from mail_queue where given_up_at is not null")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(given_up, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_relay_that_is_away_costs_nothing_but_time(pool: PgPool) {
    world(&pool).await;
    ends(&pool, 1, MIA, "push", "rolled_back").await;
    let gone = {
        let sink = Sink::start().await;
        mailer(&sink)
    };
    send_due(&pool.clone().into(), Some(&gone)).await.unwrap();
    assert_eq!(queued(&pool).await, [to("mia", "failed")]);
    assert!(send_due(&pool.clone().into(), None).await.unwrap(), "and no relay at all is no error");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_relay_may_want_a_login(pool: PgPool) {
    world(&pool).await;
    ends(&pool, 1, MIA, "push", "rolled_back").await;
    let sink = Sink::start().await;
    let mailer = mailer_to(format!("smtp://corpus:pass%20word@{}", sink.address));
    send_due(&pool.clone().into(), Some(&mailer)).await.unwrap();
    // RFC 4616: nobody, the login, the password.
    let plain = STANDARD.encode("\0corpus\0pass word");
    assert_eq!(sink.letters()[0].login.as_deref(), Some(plain.as_str()));
}
