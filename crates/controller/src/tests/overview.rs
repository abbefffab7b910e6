//! The numbers, and lists of what is one's own or the operators', a page at a time.

use std::collections::BTreeSet;

use corpus_api::keys::ListMyKeys;
use corpus_api::logins::ListRefusedLogins;
use corpus_api::nodes::ListNodes;
use corpus_api::overview::GetOverview;
use corpus_domain::Environment;
use sqlx::PgPool;

use super::world::{World, at_field, forbidden};

#[sqlx::test(migrations = "../../migrations")]
async fn the_numbers_are_those_of_what_one_may_see(db: PgPool) {
    let world = World::new(db).await;
    let (mut mia, bob, ops) = (world.member("mia", &[]).await, world.member("bob", &[]).await, world.ops().await);
    let shop = world.project(&mut mia, "shop").await;
    for _ in 0..7 {
        world.guest(shop, Environment::Dev).await;
    }
    world.run("update guests set state = 'failed' where ip <> '10.5.0.10'").await;
    let facts = serde_json::json!({
        "hostname": "n", "os": "d", "kernel": "6", "architecture": "x86_64", "addresses": [], "drivers": [], "listeners": [],
        "cpu": { "model": "x", "count": 64 }, "memory": 12_u64 << 30,
        "storage": { "total": 1_000_000_000_000_u64, "used": 0 },
    });
    let has = sqlx::query("update nodes set slots = 10, memory_overcommit = 100, facts = $1").bind(facts);
    has.execute(&world.db).await.unwrap();
    let of = async |who| world.controller.call(who, GetOverview {}, None).await.unwrap();
    let seen = of(&mia).await;
    assert_eq!((seen.counts.guests, seen.counts.guests_running, seen.counts.guests_failed), (7, 1, 6));
    assert_eq!((seen.failed.len(), seen.counts.nodes, seen.counts.projects), (5, 1, 1));
    assert_eq!(of(&ops).await.counts, seen.counts);
    let others = of(&bob).await;
    assert_eq!((others.counts.guests, others.failed.len(), others.counts.nodes), (0, 0, 1));

    // The same as what the node itself is said to have.
    let same = async |expected| {
        let page = world.controller.call(&ops, ListNodes::default(), None).await.unwrap();
        let node = &page.items[0];
        let seen = of(&bob).await;
        assert_eq!((seen.slots, seen.slots_free), (node.slots, node.free_slots()));
        assert_eq!((seen.slots, seen.slots_free), expected);
    };
    same((10, 3)).await;
    world.run("update nodes set memory_overcommit = 75").await;
    same((9, 2)).await;
    world.run("update nodes set slots = 5").await;
    same((7, 0)).await;
    world.run("update nodes set slots = 20, facts = null").await;
    same((20, 13)).await;
    world.run("update nodes set state = 'draining'").await;
    same((20, 0)).await;
}

#[sqlx::test(migrations = "../../migrations")]
async fn keys_come_a_page_at_a_time_while_others_come_and_go(db: PgPool) {
    let world = World::new(db).await;
    let mia = world.member("mia", &[]).await;
    let insert = "insert into ssh_keys (id, user_id, line, algorithm, bits, fingerprint, comment)
                  select ('01890000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, u.id, n, 'ssh-ed25519', 256, n, n
                  from users u, generate_series(10, 34) n";
    world.run(insert).await;
    let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let asked = ListMyKeys { cursor, limit: "10".parse().ok() };
        let page = world.controller.call(&mia, asked, None).await.unwrap();
        seen.extend(page.items.into_iter().map(|key| key.comment));
        (cursor, pages) = (page.next, pages + 1);
        if pages == 1 {
            world.run("delete from ssh_keys where comment in ('10', '20')").await;
            world.run("update ssh_keys set id = '01890000-0000-7000-8000-000000000001' where comment = '11'").await;
        }
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, 3);
    let expected: Vec<String> = (10..35).filter(|n| *n != 20).map(|n| n.to_string()).collect();
    assert_eq!(seen, expected);
}

#[sqlx::test(migrations = "../../migrations")]
async fn refused_logins_are_the_operators_to_see(db: PgPool) {
    let world = World::new(db).await;
    let (mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    forbidden(world.controller.call(&mia, ListRefusedLogins::default(), None).await);
    // Many of the same moment.
    let insert = "insert into refused_logins (hour, login, network, reason, first_at, last_at, count)
                  select date_trunc('hour', now()), case when n % 2 = 0 then 'mia' else '' end, n, 'x', now(), now(), n + 1
                  from generate_series(0, 24) n";
    world.run(insert).await;
    let (mut seen, mut cursor, mut pages) = (BTreeSet::new(), None, 0);
    loop {
        let asked = ListRefusedLogins { cursor, limit: "10".parse().ok(), login: None };
        let page = world.controller.call(&ops, asked, None).await.unwrap();
        assert!(page.items.into_iter().all(|row| seen.insert(row.count)), "none is there twice");
        if pages == 1 {
            let newer = "insert into refused_logins values (date_trunc('hour', now()), '', 'newer', 'x', now(), now() + interval '1 second', 99)";
            world.run(newer).await;
        }
        (cursor, pages) = (page.next, pages + 1);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((pages, seen), (3, (1..=25).collect()));
    let asked = ListRefusedLogins { login: mia.login.as_str().parse().ok(), ..ListRefusedLogins::default() };
    let page = world.controller.call(&ops, asked, None).await.unwrap();
    assert_eq!(page.items.len(), 13);
    let cursor = corpus_api::Cursor::after("another list", &1);
    let wrong = ListRefusedLogins { cursor: Some(cursor), ..ListRefusedLogins::default() };
    at_field(world.controller.call(&ops, wrong, None).await, "cursor", "another list or order");
}
