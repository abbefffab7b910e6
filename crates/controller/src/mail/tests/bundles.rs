//! What comes within a short time is one letter, at the time that its reader chose, and in it is what they may see.

use std::collections::BTreeMap;

use corpus_domain::{JobId, MailDelivery, MailKind, MailPreference, ProjectId, UserId};
use sqlx::PgPool;
use uuid::Uuid;

use super::queue::{MIA, PROJECT, TOM, a_minute_later, all_is_sent, ends, mailer, queued, send_due, to, world};
use super::sink::Sink;
use crate::mail::{JobLetter, Letter};
use crate::store::notices::SeenBy;
use crate::store::{Db, beside, mail};

fn about(title: &str) -> JobLetter {
    JobLetter { job: JobId(Uuid::now_v7()), title: title.to_owned(), reason: None, stalled: None }
}

async fn tell(pool: &PgPool, who: &[Uuid], letter: Letter, seen_by: SeenBy) {
    let to: Vec<UserId> = who.iter().map(|id| UserId(*id)).collect();
    let event = Uuid::now_v7().to_string();
    mail::enqueue(&mut pool.acquire().await.unwrap(), &event, &to, &letter, seen_by).await.unwrap();
}

async fn job_failed(pool: &PgPool, who: Uuid, title: &str) {
    tell(pool, &[who], Letter::JobFailed(about(title)), SeenBy::Project(ProjectId(PROJECT))).await;
}

async fn chooses(pool: &PgPool, who: Uuid, kind: MailKind, delivery: MailDelivery) {
    let chosen = BTreeMap::from([(kind, delivery)]);
    let mut conn = pool.acquire().await.unwrap();
    mail::set_preference(&mut conn, UserId(who), MailPreference::Own, &chosen).await.unwrap();
}

async fn run(pool: &PgPool, statement: &'static str) {
    sqlx::query(statement).execute(pool).await.unwrap();
}

async fn count(pool: &PgPool, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(pool).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn two_hundred_at_once_are_one_letter(pool: PgPool) {
    world(&pool).await;
    for number in 0..200 {
        job_failed(&pool, MIA, &format!("Create guest g{number}")).await;
    }
    ends(&pool, 1, MIA, "push", "rolled_back").await;
    let sink = Sink::start().await;
    all_is_sent(&pool, &mailer(&sink)).await;
    let letters = sink.letters();
    assert_eq!(letters.len(), 1);
    let data = letters[0].data.replace("=\n", "");
    assert!(data.contains("Subject: Corpus: 200 jobs failed, 1 deployment failed"), "{data}");
    assert!(data.contains("Create guest g9\n") && !data.contains("Create guest g10\n"), "{data}");
    assert!(data.contains("and 190 more: http://c.test/jobs"), "{data}");
    assert!(data.contains("shop prod #1 by mia was put back: exit status 1"), "{data}");
    assert_eq!(queued(&pool).await, []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_urgent_waits_for_nothing_and_takes_the_rest_along(pool: PgPool) {
    world(&pool).await;
    let sink = Sink::start().await;
    let (mailer, db) = (mailer(&sink), Db::from(pool.clone()));
    job_failed(&pool, MIA, "Stop guest www").await;
    send_due(&db, Some(&mailer)).await.unwrap();
    assert_eq!(sink.letters().len(), 0);
    tell(&pool, &[MIA], Letter::JobStuck(about("Destroy guest www")), SeenBy::Project(ProjectId(PROJECT))).await;
    send_due(&db, Some(&mailer)).await.unwrap();
    let letters = sink.letters();
    assert_eq!(letters.len(), 1);
    let (stuck, failed) = (letters[0].data.find("Destroy guest www"), letters[0].data.find("Stop guest www"));
    assert!(stuck.unwrap() < failed.unwrap(), "what needs somebody comes first: {}", letters[0].data);
}

#[sqlx::test(migrations = "../../migrations")]
async fn nobody_gets_more_than_so_many_letters_in_an_hour(pool: PgPool) {
    world(&pool).await;
    let sink = Sink::start().await;
    let mailer = mailer(&sink);
    for number in 0..12 {
        job_failed(&pool, MIA, &format!("Flap {number}.")).await;
        all_is_sent(&pool, &mailer).await;
    }
    job_failed(&pool, TOM, "Stop guest www").await;
    all_is_sent(&pool, &mailer).await;
    assert_eq!(sink.letters().len(), 7, "six for mia, and tom's");
    for number in 0..30 {
        let stuck = Letter::JobStuck(about(&format!("Stuck {number}.")));
        tell(&pool, &[MIA], stuck, SeenBy::Project(ProjectId(PROJECT))).await;
        all_is_sent(&pool, &mailer).await;
    }
    assert_eq!(sink.letters().len(), 21, "what is urgent has more room, and an end too");
    run(&pool, "update mail_letters set created_at = created_at - interval '61 minutes'").await;
    all_is_sent(&pool, &mailer).await;
    let letters = sink.letters();
    assert_eq!((letters.len(), queued(&pool).await), (22, vec![]), "nothing is lost");
    let told: String = letters.iter().map(|letter| letter.data.as_str()).collect();
    assert!(told.contains("Stuck 14.") && told.contains("Flap 11."), "{told}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_letter_of_the_day(pool: PgPool) {
    world(&pool).await;
    chooses(&pool, MIA, MailKind::JobFailed, MailDelivery::Digest).await;
    let sink = Sink::start().await;
    let mailer = mailer(&sink);
    job_failed(&pool, MIA, "Stop guest www").await;
    job_failed(&pool, MIA, "Start guest www").await;
    let six = "select count(*) from mail_queue where digest and due_at > now() and due_at <= now() + interval '24 h'
        and (due_at at time zone 'utc')::time = '06:00'";
    assert_eq!(count(&pool, six).await, 2);
    ends(&pool, 1, MIA, "push", "rolled_back").await;
    all_is_sent(&pool, &mailer).await;
    assert_eq!(sink.letters().len(), 1);
    assert!(!sink.letters()[0].data.contains("guest www"), "that waits for the day's");
    assert_eq!(queued(&pool).await, [to("mia", "job_failed"), to("mia", "job_failed")]);
    run(&pool, "update mail_queue set due_at = now() where digest").await;
    all_is_sent(&pool, &mailer).await;
    assert_eq!(sink.letters().len(), 2);
    assert!(sink.letters()[1].data.contains("Subject: Corpus: 2 jobs failed"), "{}", sink.letters()[1].data);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_not_wanted_is_not_told(pool: PgPool) {
    world(&pool).await;
    let sink = Sink::start().await;
    let mailer = mailer(&sink);
    chooses(&pool, MIA, MailKind::JobFailed, MailDelivery::Never).await;
    job_failed(&pool, MIA, "Stop guest www").await;
    assert_eq!(queued(&pool).await, []);
    chooses(&pool, MIA, MailKind::JobFailed, MailDelivery::AtOnce).await;
    job_failed(&pool, MIA, "Stop guest www").await;
    chooses(&pool, MIA, MailKind::JobFailed, MailDelivery::Never).await;
    all_is_sent(&pool, &mailer).await;
    assert_eq!((sink.letters().len(), queued(&pool).await), (0, vec![]), "chosen before it was written");
    chooses(&pool, MIA, MailKind::JobStuck, MailDelivery::Never).await;
    let kept = mail::preference(&mut pool.acquire().await.unwrap(), UserId(MIA)).await.unwrap();
    assert_eq!((kept.job_failed, kept.job_stuck), (MailDelivery::Never, MailDelivery::Never), "each by itself");
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_lost_access_meanwhile_learns_nothing(pool: PgPool) {
    world(&pool).await;
    let sink = Sink::start().await;
    let mailer = mailer(&sink);
    let project = SeenBy::Project(ProjectId(PROJECT));
    let ops = Uuid::from_u128(12);
    let letter = |title: &str| Letter::JobFailed(about(title));

    tell(&pool, &[MIA, TOM], letter("Secret of the shop"), project).await;
    run(&pool, "delete from memberships where user_id = '00000000-0000-0000-0000-00000000000a'").await;
    all_is_sent(&pool, &mailer).await;
    let told = |sink: &Sink| sink.letters().iter().flat_map(|letter| letter.to.clone()).collect::<Vec<_>>();
    assert_eq!(told(&sink), ["RCPT TO:<tom@example.org>"]);
    assert_eq!(count(&pool, "select count(*) from mail_letters where state = 'empty'").await, 1);

    tell(&pool, &[ops], letter("Secret of a node"), SeenBy::Ops).await;
    tell(&pool, &[ops], letter("Secret of the shop"), project).await;
    run(&pool, "update users set ops = false").await;
    all_is_sent(&pool, &mailer).await;
    assert_eq!(sink.letters().len(), 1, "no operator any more, and no member");

    tell(&pool, &[TOM], letter("Stop guest www"), project).await;
    run(&pool, "update users set disabled_at = now()").await;
    all_is_sent(&pool, &mailer).await;
    assert_eq!(sink.letters().len(), 1, "an account that is disabled gets nothing");

    run(&pool, "update users set disabled_at = null").await;
    tell(&pool, &[TOM], letter("Stop guest www"), project).await;
    *sink.refuses.lock().unwrap() = Some("451 later");
    all_is_sent(&pool, &mailer).await;
    run(&pool, "delete from memberships").await;
    *sink.refuses.lock().unwrap() = None;
    all_is_sent(&pool, &mailer).await;
    assert_eq!((sink.letters().len(), queued(&pool).await), (1, vec![]), "asked again at each try");
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_several_servers_one_makes_and_sends_each_letter(pool: PgPool) {
    world(&pool).await;
    run(
        &pool,
        "insert into users (id, realm, login, display_name, mail)
         select gen_random_uuid(), 'ldap', 'm' || n, 'M', 'm' || n || '@example.org' from generate_series(1, 30) n",
    )
    .await;
    let many: Vec<Uuid> =
        sqlx::query_scalar("select id from users where login ~ '^m[0-9]'").fetch_all(&pool).await.unwrap();
    let sink = Sink::start().await;
    let (mailer, db) = (mailer(&sink), Db::from(pool.clone()));
    for title in ["One", "Two"] {
        tell(&pool, &many, Letter::JobFailed(about(title)), SeenBy::Each).await;
    }
    a_minute_later(&pool).await;
    let go = async || while !send_due(&db, Some(&mailer)).await.unwrap() {};
    tokio::join!(go(), beside(go()), beside(go()));
    let mut told: Vec<String> = sink.letters().iter().map(|letter| letter.to.join(" ")).collect();
    assert_eq!(told.len(), 30);
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 30, "each once");
    assert!(sink.letters().iter().all(|letter| letter.data.contains("2 jobs failed")));
}
