//! What nobody does and yet is told: nodes that are away, jobs of which nothing is heard, tokens that end.

use sqlx::PgPool;

use super::queue::{all_is_sent, mailer, queued, to, world};
use super::sink::Sink;
use crate::events::lasting;

async fn told(pool: &PgPool) -> Vec<(String, String)> {
    for _ in 0..2 {
        lasting::tell(&mut pool.acquire().await.unwrap()).await.unwrap();
    }
    let told = queued(pool).await;
    sqlx::query("update mail_queue set dropped_at = now()").execute(pool).await.unwrap();
    told
}

async fn run(pool: &PgPool, statement: &'static str) {
    sqlx::raw_sql(statement).execute(pool).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_is_told_away_after_a_while_and_back_after_a_while(pool: PgPool) {
    world(&pool).await;
    let away = "update nodes set reachability = 'unreachable', reachability_reason = 'no route',
        reachability_since = now() - interval '6 minutes'";
    let back = "update nodes set reachability = 'reachable', reachability_since = now() - interval '6 minutes'";
    let just_now = "update nodes set reachability_since = now() - interval '4 minutes'";
    run(&pool, away).await;
    run(&pool, just_now).await;
    assert_eq!(told(&pool).await, [], "a missed beat is none");
    run(&pool, away).await;
    assert_eq!(told(&pool).await, [to("ops", "node_away")], "once");
    run(&pool, back).await;
    run(&pool, just_now).await;
    assert_eq!(told(&pool).await, [], "it may go again");
    run(&pool, away).await;
    assert_eq!(told(&pool).await, [], "it went again: that was told");
    run(&pool, back).await;
    assert_eq!(told(&pool).await, [to("ops", "node_back")]);
    run(&pool, "update nodes set reachability_since = now() - interval '7 minutes', reachability = 'unreachable'")
        .await;
    assert_eq!(told(&pool).await, [], "one that flaps is told of once in half an hour");
    run(&pool, "update nodes set away_told_at = away_told_at - interval '31 minutes'").await;
    assert_eq!(told(&pool).await, [to("ops", "node_away")]);
    run(&pool, "update nodes set reachability = 'host_key_changed', reachability_since = now()").await;
    assert_eq!(told(&pool).await, [to("ops", "node_away")], "another key is news, and told at once");
}

#[sqlx::test(migrations = "../../migrations")]
async fn another_host_key_waits_for_nothing(pool: PgPool) {
    world(&pool).await;
    run(&pool, "update nodes set reachability = 'host_key_changed', reachability_since = now()").await;
    lasting::tell(&mut pool.acquire().await.unwrap()).await.unwrap();
    let sink = Sink::start().await;
    super::queue::send_due(&pool.clone().into(), Some(&mailer(&sink))).await.unwrap();
    let letters = sink.letters();
    assert_eq!(letters.len(), 1);
    assert!(letters[0].data.contains("Subject: Node 192.0.2.1 shows another host key"), "{}", letters[0].data);
    run(&pool, "update nodes set state = 'unlinking', away_told = null, away_told_at = null").await;
    assert_eq!(told(&pool).await, [], "one that is given back is nobody's");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_job_of_which_nothing_is_heard(pool: PgPool) {
    world(&pool).await;
    run(
        &pool,
        "insert into jobs (id, kind, title, params, dag, state, project_id, created_by, created_at, started_at)
         values ('00000000-0000-0000-0000-000000000077', 'guest_stop', 'Stop guest www', '{}', '{}', 'running',
             '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-00000000000a',
             now() - interval '50 minutes', now() - interval '49 minutes');
         insert into job_steps (job_id, index, name, title, state, started_at, ended_at, alive_at, attempts) values
             ('00000000-0000-0000-0000-000000000077', 0, 'a', 'A', 'done', now() - interval '49 minutes',
                 now() - interval '45 minutes', now() - interval '45 minutes', 1),
             ('00000000-0000-0000-0000-000000000077', 1, 'b', 'B', 'running', now() - interval '45 minutes', null,
                 now() - interval '1 minute', 1)",
    )
    .await;
    assert_eq!(told(&pool).await, [], "its step gives signs of life");
    run(&pool, "update jobs set waiting_for = 'the guest to answer'").await;
    assert_eq!(told(&pool).await, [], "it waits within its first try");
    run(&pool, "update job_steps set attempts = 9 where index = 1").await;
    let both = [to("mia", "job_stuck"), to("ops", "job_stuck")];
    assert_eq!(told(&pool).await, both, "tried again and again");
    assert_eq!(told(&pool).await, [], "once");

    run(&pool, "delete from mail_queue; update jobs set stalled_told_at = null, waiting_for = null").await;
    run(&pool, "update job_steps set attempts = 1, alive_at = now() - interval '31 minutes' where index = 1").await;
    assert_eq!(told(&pool).await, both, "nothing is heard of its step");

    run(&pool, "delete from mail_queue; delete from job_steps; update jobs set stalled_told_at = null, started_at = null, state = 'waiting'").await;
    lasting::tell(&mut pool.acquire().await.unwrap()).await.unwrap();
    let sink = Sink::start().await;
    all_is_sent(&pool, &mailer(&sink)).await;
    assert_eq!(sink.letters().len(), 2, "it waits to begin");
    let data = &sink.letters()[0].data;
    assert!(data.contains("nothing was heard of it since") && data.contains("/jobs/00000000"), "{data}");
    run(
        &pool,
        "delete from mail_queue; update jobs set stalled_told_at = null, created_at = now() - interval '20 minutes'",
    )
    .await;
    assert_eq!(told(&pool).await, []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_a_job_of_another_project_its_letter_tells_nothing(pool: PgPool) {
    world(&pool).await;
    run(
        &pool,
        "insert into jobs (id, kind, title, params, dag, state, project_id, created_by, created_at, waiting_for, blocked_by) values
             ('00000000-0000-0000-0000-000000000077', 'guest_stop', 'Stop guest www', '{}', '{}', 'waiting',
                 '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-00000000000a',
                 now() - interval '50 minutes', '“Create guest secret” to end', '00000000-0000-0000-0000-000000000078'),
             ('00000000-0000-0000-0000-000000000078', 'guest_create', 'Create guest secret', '{}', '{}', 'waiting',
                 '00000000-0000-0000-0000-000000000002', null, now(), null, null)",
    )
    .await;
    let reason = async || -> Vec<Option<String>> {
        lasting::tell(&mut pool.acquire().await.unwrap()).await.unwrap();
        let reasons = sqlx::query_scalar("select letter ->> 'reason' from mail_queue").fetch_all(&pool).await.unwrap();
        run(&pool, "delete from mail_queue; update jobs set stalled_told_at = null").await;
        reasons
    };
    let others = reason().await;
    assert_eq!(others.len(), 2);
    assert!(others.iter().flatten().all(|text| text.contains("another job") && !text.contains("secret")), "{others:?}");
    run(&pool, "update jobs set project_id = '00000000-0000-0000-0000-000000000001'").await;
    assert!(reason().await.iter().flatten().all(|text| text.contains("Create guest secret")));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_token_that_ends_soon_is_told_to_its_owner_once(pool: PgPool) {
    world(&pool).await;
    run(
        &pool,
        "insert into tokens (id, user_id, name, grant_, hash, created_at, expires_at, revoked_at)
         select gen_random_uuid(), '00000000-0000-0000-0000-00000000000a', t.name, 'deploy', decode(md5(t.name) || md5(t.name), 'hex'),
             now() - t.age, now() + t.left_, t.revoked
         from (values ('soon', interval '80 days', interval '6 days', null::timestamptz),
             ('later', interval '80 days', interval '8 days', null),
             ('over', interval '80 days', interval '-1 day', null),
             ('revoked', interval '80 days', interval '6 days', now()),
             ('short', interval '1 hour', interval '3 days', null),
             ('for a day', interval '23 hours', interval '1 hour', null)) as t (name, age, left_, revoked)",
    )
    .await;
    lasting::tell(&mut pool.acquire().await.unwrap()).await.unwrap();
    let names: Vec<String> =
        sqlx::query_scalar("select letter ->> 'name' from mail_queue").fetch_all(&pool).await.unwrap();
    assert_eq!(names, ["soon"]);
    let sink = Sink::start().await;
    all_is_sent(&pool, &mailer(&sink)).await;
    let letters = sink.letters();
    assert_eq!((letters.len(), letters[0].to[0].as_str()), (1, "RCPT TO:<mia@example.org>"));
    assert!(letters[0].data.contains("Good for:   deploy") && letters[0].data.contains("Last used:  never"));
    assert_eq!(told(&pool).await, []);
}

/// Names of the guest with a certificate each: (name, who signed it, days since it began, days until it ends).
async fn certificates(pool: &PgPool, all: &[(&str, &str, i32, i32)]) {
    for (name, source, age, left) in all {
        sqlx::query(
            "with n as (
                 insert into dns_names (id, name, guest_id, state, routed)
                 values (gen_random_uuid(), $1 || '.example.org', '00000000-0000-0000-0000-000000000002', 'attached', true)
                 returning id
             ), c as (
                 insert into certificates (id, dns_name_id, source, names, chain, key_sealed, digest, issuer, serial,
                     not_before, not_after)
                 select gen_random_uuid(), id, $2, array[$1 || '.example.org'], '', '', repeat('0', 64), 'x', $1,
                     now() - make_interval(days => $3), now() + make_interval(days => $4) from n
             )
             select 1",
        )
        .bind(name)
        .bind(source)
        .bind(age)
        .bind(left)
        .execute(pool)
        .await
        .unwrap();
    }
    run(pool, "update dns_names n set certificate_id = c.id from certificates c where c.dns_name_id = n.id").await;
}

async fn told_names(pool: &PgPool) -> Vec<String> {
    for _ in 0..2 {
        lasting::tell(&mut pool.acquire().await.unwrap()).await.unwrap();
    }
    let names = "select distinct letter ->> 'name' from mail_queue where dropped_at is null order by 1";
    let told: Vec<String> = sqlx::query_scalar(names).fetch_all(pool).await.unwrap();
    run(pool, "update mail_queue set dropped_at = now()").await;
    told.iter().map(|name| name.trim_end_matches(".example.org").to_owned()).collect()
}

#[sqlx::test(migrations = "../../migrations")]
async fn certificates_that_end_soon_are_told_twice(pool: PgPool) {
    world(&pool).await;
    certificates(
        &pool,
        &[
            ("year", "uploaded", 330, 39),
            ("year-later", "uploaded", 320, 41),
            ("short", "uploaded", 7, 3),
            ("short-later", "uploaded", 6, 4),
            ("renews", "acme", 61, 29),
            ("late", "acme", 68, 22),
            ("over", "uploaded", 330, -1),
        ],
    )
    .await;
    assert_eq!(told_names(&pool).await, ["late", "short", "year"]);
    assert_eq!(told_names(&pool).await, [] as [&str; 0], "once");
    run(&pool, "update certificates set not_after = now() + interval '6 days' where serial in ('year', 'late')").await;
    assert_eq!(told_names(&pool).await, ["late", "year"], "again shortly before");
    assert_eq!(told_names(&pool).await, [] as [&str; 0]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_is_told_of_certificates(pool: PgPool) {
    world(&pool).await;
    certificates(&pool, &[("own", "uploaded", 330, 6)]).await;
    let (mia, tom) = (to("mia", "certificate_ends"), to("tom", "certificate_ends"));
    assert_eq!(told(&pool).await, [mia, tom], "what they brought is the maintainers' alone");
    run(
        &pool,
        "insert into certificate_orders (dns_name_id, source, state, problem, failing_since)
         select id, 'acme', 'failed', 'no way', now() - interval '23 hours' from dns_names",
    )
    .await;
    assert_eq!(told(&pool).await, [], "not before it lasts");
    run(&pool, "update certificate_orders set failing_since = now() - interval '25 hours'").await;
    assert_eq!(told(&pool).await, [to("mia", "certificate_fails"), to("tom", "certificate_fails")]);
    // As another certificate would be told of.
    run(&pool, "delete from mail_queue").await;
    run(
        &pool,
        "update certificates set source = 'acme', end_told = 0; update certificate_orders set failing_told = false,
        failing_since = now() - interval '26 hours'",
    )
    .await;
    let of = |who| [to(who, "certificate_ends"), to(who, "certificate_fails")];
    let mut all: Vec<_> = ["mia", "ops", "tom"].into_iter().flat_map(of).collect();
    let mut seen = told(&pool).await;
    all.sort();
    seen.sort();
    assert_eq!(seen, all, "that none is renewed is the operators' too");
}

#[sqlx::test(migrations = "../../migrations")]
async fn backups_on_which_nobody_should_rely_are_told_when_that_begins(pool: PgPool) {
    world(&pool).await;
    run(
        &pool,
        "insert into backup_schedules (guest_id, every, keep, set_at) select id, 'day', 3, now() - interval '47 hours' from guests limit 1",
    )
    .await;
    let look = async |then: &'static str| {
        run(&pool, then).await;
        run(&pool, "delete from mail_queue; update backup_schedules set need_look_at = now()").await;
        told(&pool).await
    };
    let to_all = |who: &[&'static str]| who.iter().map(|who| to(who, "backups_needy")).collect::<Vec<_>>();
    let (maintainers, all) = (to_all(&["mia", "tom"]), to_all(&["mia", "ops", "tom"]));
    assert_eq!(told(&pool).await, [], "it has begun only");
    assert_eq!(look("update backup_schedules set set_at = now() - interval '49 hours'").await, all);
    assert_eq!(look("").await, [], "once");
    let taken = "insert into guest_backups (id, project_id, guest_id, guest_name, environment, state, taken_at, snapshot, bytes,
            files, added_bytes, took_ms, dumped_bytes, dump_problem)
        select gen_random_uuid(), g.project_id, g.id, g.name, g.environment, 'ready', now(), repeat('a', 64), 1, 1, 1, 1, 0, 'no server'
        from backup_schedules c join guests g on g.id = c.guest_id";
    assert_eq!(look(taken).await, maintainers, "what it dumps is its project's own");
    assert_eq!(look("update guest_backups set dumped_bytes = 5, dump_problem = null").await, []);
    assert_eq!(
        look("update guest_backups set dump_problem = 'no server'").await,
        maintainers,
        "it went, and is there again"
    );
    let tried = "update guest_backups set dump_problem = null;
        update backup_schedules set prove = true, set_at = now() - interval '13 days'";
    assert_eq!(look(tried).await, [], "two weeks are not over");
    assert_eq!(look("update backup_schedules set set_at = now() - interval '15 days'").await, all);
    run(&pool, "delete from mail_queue; update guest_backups set taken_at = now() - interval '3 days'").await;
    assert_eq!(told(&pool).await, [], "not before the next look");
}
