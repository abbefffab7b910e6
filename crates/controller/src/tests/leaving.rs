//! Nodes that are emptied: who may, in which order guests leave, why one can't, and what a lost node has of them later.

use corpus_api::guests::{MoveGuest, StopGuest};
use corpus_api::jobs::CancelJob;
use corpus_api::leaving::{EmptyNode, KeepGuests, LeavingGuests, ListLeaving, ListLeftBehind, RemoveLeftBehind};
use corpus_api::node_service::ResumeNode;
use corpus_domain::{JobId, Leaving, NodeId, ProjectRole};
use sqlx::PgPool;

use super::spread::{Shop, shop};
use super::world::{at_field, conflict, forbidden, hidden};

const BACKUP: &str = "insert into guest_backups (id, project_id, guest_id, guest_name, environment, state, taken_at, snapshot,
        bytes, files, added_bytes, took_ms, created_at)
    select gen_random_uuid(), project_id, id, name, environment, 'ready', now() - interval '1 day', repeat('a', 64), 7, 1, 1, 1,
        now() - interval '1 day' from guests";
const WAITING: &str = "select count(*) from jobs where kind in ('guest_move', 'guest_evacuate') and state = 'waiting'";

/// Both guests are on the first node, and there is room on the others.
async fn both_on_one(db: PgPool) -> Shop {
    let shop = shop(db).await;
    shop.world.run("update nodes set slots = 10").await;
    shop.world
        .run(
            "update guests set ip = '10.5.0.' || (ssh_port % 100 + 10), mac = '00:16:3e:00:00:' || lpad((ssh_port % 100)::text, 2, '0'),
                 node_id = (select id from nodes where address = '192.0.2.1')",
        )
        .await;
    shop
}

async fn leaving(shop: &Shop, node: NodeId) -> LeavingGuests {
    let ops = shop.world.ops().await;
    shop.world.ask(&ops, ListLeaving { node, cursor: None, limit: None }).await.unwrap()
}

/// Waiting, going and failed.
async fn counts(shop: &Shop) -> (u64, u64, u64) {
    let all = leaving(shop, shop.nodes[0]).await;
    (all.waiting, all.going, all.failed)
}

#[sqlx::test(migrations = "../../migrations")]
async fn operators_empty_a_node_and_have_guests_stay(db: PgPool) {
    let shop = both_on_one(db).await;
    let (world, node) = (&shop.world, shop.nodes[0]);
    let ops = world.ops().await;
    let eve = world.member("eve", &[]).await;
    let by_move = EmptyNode { node, how: Leaving::Move, off: false };
    let (list, left) =
        (ListLeaving { node, cursor: None, limit: None }, ListLeftBehind { node, cursor: None, limit: None });
    let remove = RemoveLeftBehind { node, guest: shop.guests[0] };
    for who in [&shop.mia, &eve] {
        assert!(world.ask(who, by_move.clone()).await.is_err());
        assert!(world.ask(who, KeepGuests { node }).await.is_err());
        assert!(world.ask(who, list.clone()).await.is_err());
        assert!(world.ask(who, left.clone()).await.is_err());
        assert!(world.ask(who, remove.clone()).await.is_err());
    }
    forbidden(world.ask(&shop.mia, by_move.clone()).await);
    hidden(world.ask(&ops, remove).await);
    assert_eq!(world.count("select count(*) from leaving_guests").await, 0);

    world.run(BACKUP).await;
    let before = leaving(&shop, node).await;
    assert_eq!((before.guests, before.backed_up, before.waiting, before.items.len()), (2, 2, 0, 2));
    assert!(before.items.iter().all(|one| one.leaves.is_none() && one.backup.is_some()), "{before:?}");
    world.ask(&ops, by_move.clone()).await.unwrap();
    assert_eq!(counts(&shop).await, (2, 0, 0));
    assert_eq!(world.count("select count(*) from nodes where state = 'draining'").await, 1);
    // What was begun goes on.
    world.run("update leaving_guests set job_id = guest_id where guest_id = (select min(guest_id::text)::uuid from leaving_guests)").await;
    world.ask(&ops, KeepGuests { node }).await.unwrap();
    assert_eq!(counts(&shop).await, (0, 1, 0));
    world.ask(&ops, ResumeNode { node }).await.unwrap();
    assert_eq!(world.count("select count(*) from nodes where state = 'draining'").await, 0);
    let told = "select count(*) from audit where action in ('node.empty', 'node.keep', 'node.resume')";
    assert_eq!(world.count(told).await, 3);
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    forbidden(world.ask(&dev, ListLeaving { node, cursor: None, limit: None }).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn guests_are_moved_a_few_at_a_time_and_tell_why_they_can_not_be(db: PgPool) {
    let shop = both_on_one(db).await;
    let (world, node) = (&shop.world, shop.nodes[0]);
    let ops = world.ops().await;
    world.ask(&ops, EmptyNode { node, how: Leaving::Move, off: false }).await.unwrap();
    // A node that does not answer is waited for.
    world.run("update nodes set reachability = 'unreachable' where address = '192.0.2.1'").await;
    world.controller.have_due_guests_leave().await.unwrap();
    assert_eq!((counts(&shop).await, world.count(WAITING).await), ((2, 0, 0), 0));
    world.run("update nodes set reachability = 'reachable'").await;
    world.run("update guests set state = 'failed' where environment = 'dev' and id = (select max(id::text)::uuid from guests)").await;
    world.controller.have_due_guests_leave().await.unwrap();
    assert_eq!((counts(&shop).await, world.count(WAITING).await), ((0, 1, 1), 1));
    let all = leaving(&shop, node).await;
    let why = all.items[0].leaves.as_ref().unwrap().problem.clone().unwrap();
    assert!(why.contains("can't be done in that state"), "{why}");
    let going = all.items[1].leaves.as_ref().unwrap();
    conflict(world.ask(&shop.mia, StopGuest { guest: all.items[1].guest }).await, "is being moved to");
    assert_eq!(world.count("select count(*) from audit where action = 'guest.move' and door = 'corpus'").await, 1);
    // Nothing is done twice.
    world.controller.have_due_guests_leave().await.unwrap();
    assert_eq!((counts(&shop).await, world.count(WAITING).await), ((0, 1, 1), 1));

    // A job that is ended says so; asked again, both are tried again.
    world.ask(&ops, CancelJob { job: going.job.unwrap() }).await.unwrap();
    world.controller.have_due_guests_leave().await.unwrap();
    assert_eq!(counts(&shop).await, (0, 0, 2));
    world.run("update guests set state = 'running'").await;
    world.ask(&ops, EmptyNode { node, how: Leaving::Move, off: false }).await.unwrap();
    world.controller.have_due_guests_leave().await.unwrap();
    assert_eq!((counts(&shop).await, world.count(WAITING).await), ((0, 2, 0), 2));
    // One that is there has left.
    world.run("update guests set node_id = (select id from nodes where address = '192.0.2.2') where id = (select guest_id from leaving_guests limit 1)").await;
    world.run("update jobs set state = 'done', ended_at = now() where id in (select job_id from leaving_guests l join guests g on g.id = l.guest_id where g.node_id <> l.node_id)").await;
    world.controller.have_due_guests_leave().await.unwrap();
    assert_eq!(world.count("select count(*) from leaving_guests").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn guests_of_a_lost_node_go_on_from_their_backups(db: PgPool) {
    let shop = both_on_one(db).await;
    let (world, node) = (&shop.world, shop.nodes[0]);
    let ops = world.ops().await;
    let lost = |off| EmptyNode { node, how: Leaving::Backup, off };
    conflict(world.ask(&ops, lost(true)).await, "answers: have its guests moved");
    world.run("update nodes set reachability = 'unreachable' where address = '192.0.2.1'").await;
    at_field(world.ask(&ops, lost(false)).await, "off", "is off first");
    assert_eq!(world.count("select count(*) from leaving_guests").await, 0);
    world.run(BACKUP).await;
    world.run("delete from guest_backups where guest_id = (select max(id::text)::uuid from guests)").await;
    world.ask(&ops, lost(true)).await.unwrap();
    world.controller.have_due_guests_leave().await.unwrap();
    assert_eq!((counts(&shop).await, world.count(WAITING).await), ((0, 1, 1), 1));
    let all = leaving(&shop, node).await;
    assert!(all.items[0].leaves.as_ref().unwrap().problem.as_ref().unwrap().contains("has no backup"), "{all:?}");
    let promised = "select count(*) from guest_moves m join nodes n on n.id = m.node_id where n.address <> '192.0.2.1'";
    assert_eq!(world.count(promised).await, 1);
    let job: JobId = all.items[1].leaves.as_ref().unwrap().job.unwrap();
    // Nobody of its project takes what operators began.
    forbidden(world.ask(&shop.mia, CancelJob { job }).await);
    world.ask(&ops, CancelJob { job }).await.unwrap();
    assert_eq!(world.count("select count(*) from guest_moves").await, 0);

    // It answers again before its turn.
    world.run("update leaving_guests set job_id = null, problem = null").await;
    world.run("update nodes set reachability = 'reachable'").await;
    world.controller.have_due_guests_leave().await.unwrap();
    let all = leaving(&shop, node).await;
    assert!(
        all.items.iter().all(|one| one.leaves.as_ref().unwrap().problem.as_ref().unwrap().contains("answers")),
        "{all:?}"
    );
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_a_lost_node_has_keeps_it_out_of_service_until_it_is_stopped(db: PgPool) {
    let shop = both_on_one(db).await;
    let (world, [node, second, _]) = (&shop.world, shop.nodes);
    let ops = world.ops().await;
    let guest = shop.guests[0];
    world.run("update nodes set state = 'draining' where address = '192.0.2.2'").await;
    world
        .run(
            "insert into left_behind (node_id, guest_id, name)
             select n.id, g.id, g.name from nodes n, guests g where n.address = '192.0.2.2'",
        )
        .await;
    let left = || ListLeftBehind { node: second, cursor: None, limit: Some("1".parse().unwrap()) };
    let page = world.ask(&ops, left()).await.unwrap();
    assert_eq!((page.items.len(), page.next.is_some()), (1, true));
    let more = world.ask(&ops, ListLeftBehind { cursor: page.next, ..left() }).await.unwrap();
    assert_eq!((more.items.len(), more.next.is_some()), (1, false));
    assert_ne!(more.items[0].guest, page.items[0].guest);
    conflict(world.ask(&ops, ResumeNode { node: second }).await, "not known to be stopped");
    world.run("update left_behind set stopped_at = now()").await;
    world.ask(&ops, ResumeNode { node: second }).await.unwrap();
    // Its former files are not written over.
    at_field(world.ask(&shop.mia, MoveGuest { guest, node: Some(second) }).await, "node", "were left behind there");
    let moving = world.ask(&shop.mia, MoveGuest { guest, node: None }).await.unwrap();
    assert!(![node, second].contains(&moving.node));
    world.ask(&ops, RemoveLeftBehind { node: second, guest }).await.unwrap();
    assert_eq!(world.count("select count(*) from left_behind where removing").await, 1);
    hidden(world.ask(&ops, RemoveLeftBehind { node, guest }).await);
}
