//! Guests that are moved: who may, where they go, what is promised meanwhile, and how their visitors find them.

use corpus_api::guests::{GetGuest, MoveGuest, StopGuest};
use corpus_api::jobs::CancelJob;
use corpus_api::leaving::ListLeaving;
use corpus_api::moves::{Downtime, MovedPointer, MovesOf, PreviewMove};
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_domain::{Bytes, JobId, PoolId, ProjectRole};
use sqlx::PgPool;

use super::spread::shop;
use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::store::move_times::{self, Moved};
use crate::store::moves;

/// What nodes can make, and that guests have all that a place has.
async fn as_made(world: &World) {
    world.run("update nodes set slots = 10").await;
    world.run("update guests set mac = '00:16:3e:00:00:' || lpad((ssh_port % 100)::text, 2, '0')").await;
}

const PROMISED: &str = "select coalesce(sum(t.guests), 0)::bigint from node_tallies t";
const MOVES: &str = "select count(*) from guest_moves";
const AT: &str = "select count(*) from guests g join guest_moves m on m.guest_id = g.id
    where m.moved and g.node_id <> m.node_id and m.ip = '10.5.0.10' and m.memory = g.memory";

#[sqlx::test(migrations = "../../migrations")]
async fn a_move_is_asked_for_by_who_may_request_guests(db: PgPool) {
    let shop = shop(db).await;
    let world = &shop.world;
    as_made(world).await;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let eve = world.member("eve", &[]).await;
    let guest = shop.guests[0];
    let to = |node| MoveGuest { guest, node };
    forbidden(world.ask(&dev, to(Some(shop.nodes[2]))).await);
    hidden(world.ask(&eve, to(Some(shop.nodes[2]))).await);
    at_field(world.ask(&shop.mia, to(Some(shop.nodes[0]))).await, "node", "already");
    world.run("update guests set privileged_reason = 'it mounts disks', id_range = null").await;
    forbidden(world.ask(&shop.mia, to(None)).await);
    at_field(world.ask(&world.ops().await, to(Some(shop.nodes[0]))).await, "node", "already");
    world.run("update guests set privileged_reason = null, id_range = 1073741824 + 65536 * (ssh_port - 40000)").await;
    world.run("update nodes set state = 'draining' where address = '192.0.2.3'").await;
    at_field(world.ask(&shop.mia, to(Some(shop.nodes[2]))).await, "node", "draining");
    world.run("update nodes set slots = 1 where address = '192.0.2.2'").await;
    at_field(world.ask(&shop.mia, to(None)).await, "node", "no free slot");
    world.run("update nodes set slots = 10, state = 'ready'").await;
    world.run("update guests set state = 'starting'").await;
    conflict(world.ask(&shop.mia, to(None)).await, "can't be done in that state");
    world.run("update guests set state = 'running'").await;
    assert_eq!((world.count(MOVES).await, world.count(PROMISED).await), (0, 2));

    // It counts at both nodes, and nothing else is begun with it until it is over.
    let moving = world.ask(&shop.mia, to(None)).await.unwrap();
    assert_ne!(moving.node, shop.nodes[0]);
    assert_eq!((world.count(MOVES).await, world.count(PROMISED).await), (1, 3));
    conflict(world.ask(&shop.mia, StopGuest { guest }).await, "is being moved to");
    conflict(world.ask(&shop.mia, to(None)).await, "is being moved to");
    assert_eq!(world.count("select count(*) from guests where state = 'running'").await, 2, "it is not half stopped");
    world.ask(&shop.mia, CancelJob { job: moving.job }).await.unwrap();
    assert_eq!((world.count(MOVES).await, world.count(PROMISED).await), (0, 2));
    world.ask(&shop.mia, StopGuest { guest }).await.unwrap();
    let told = "select count(*) from audit where action = 'guest.move'";
    assert_eq!(world.count(told).await, 1);
}

/// Where it goes is known before: its address there is taken with the request, and said whether a zone of ours holds it.
#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_whose_address_points_back_is_moved_with_that(db: PgPool) {
    let shop = shop(db).await;
    let world = &shop.world;
    as_made(world).await;
    let (guest, dev) = (shop.guests[0], world.member("dev", &[("shop", ProjectRole::Developer)]).await);
    let preview = PreviewMove { guest, node: None };
    forbidden(world.ask(&dev, preview.clone()).await);
    hidden(world.ask(&world.member("eve", &[]).await, preview.clone()).await);
    assert_eq!(world.ask(&shop.mia, preview.clone()).await.unwrap().pointer, None);
    world.run("update dns_names set state = 'attached', pointed_address = '10.5.0.10'").await;
    let told = world.ask(&shop.mia, preview.clone()).await.unwrap().pointer.unwrap();
    assert_eq!((told.address.to_string(), told.name.to_string()), ("10.5.0.10".into(), "shop.example.org".into()));
    let nodes = |told: MovedPointer| told.lost_at.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(nodes(told), ["192.0.2.2", "192.0.2.3"]);
    world.run("update nodes set network = '10.6.0.1/16' where address = '192.0.2.3'").await;
    let zone = CreateZone {
        name: "6.10.in-addr.arpa".parse().unwrap(),
        access: ZoneAccess::All,
        projects: ZoneProjects::default(),
        provider: None,
        ttl_s: None,
    };
    world.ask(&world.ops().await, zone).await.unwrap();
    assert_eq!(nodes(world.ask(&shop.mia, preview).await.unwrap().pointer.unwrap()), ["192.0.2.2"]);
    let to = PreviewMove { guest, node: Some(shop.nodes[2]) };
    assert_eq!(nodes(world.ask(&shop.mia, to).await.unwrap().pointer.unwrap()), [""; 0]);

    // Nobody else writes of either address meanwhile.
    let moving = world.ask(&shop.mia, MoveGuest { guest, node: Some(shop.nodes[2]) }).await.unwrap();
    assert_eq!(world.count("select count(*) from guest_moves where ip = '10.6.0.10'").await, 1);
    let locked: Vec<String> =
        sqlx::query_scalar("select resource from job_locks where job_id = $1 and resource like 'address%' order by 1")
            .bind(moving.job.0)
            .fetch_all(&world.db)
            .await
            .unwrap();
    assert_eq!(locked, ["address:10.5.0.10", "address:10.6.0.10"]);
    world.ask(&shop.mia, CancelJob { job: moving.job }).await.unwrap();
    assert_eq!(world.count("select count(*) from dns_names where pointed_address = '10.5.0.10'").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn its_two_places_are_exchanged_as_a_whole(db: PgPool) {
    let shop = shop(db).await;
    let world = &shop.world;
    as_made(world).await;
    world.run("update nodes set slots = 0 where address = '192.0.2.3'").await;
    let (guest, [from, to, _]) = (shop.guests[0], shop.nodes);
    world.ask(&shop.mia, MoveGuest { guest, node: Some(to) }).await.unwrap();
    let mut tx = world.controller.services.db.begin().await.unwrap();
    let network = "10.5.0.1/16".parse().unwrap();
    let place = moves::choose(&mut tx, guest, (to, network)).await.unwrap().unwrap();
    assert_eq!(moves::choose(&mut tx, guest, (to, network)).await.unwrap(), Some(place), "once");
    tx.commit().await.unwrap();
    // The follower, which is there, has its address.
    assert_ne!(place.ip.to_string(), "10.5.0.10");

    // Nobody takes there what it comes to.
    let taken = "update guests set ip = (select ip from guest_moves) where id <> (select guest_id from guest_moves)";
    let refused = sqlx::query(taken).execute(&world.db).await.unwrap_err();
    assert!(refused.to_string().contains("another guest has that ip"), "{refused}");

    let lead = async |node| {
        let mut tx = world.controller.services.db.begin().await.unwrap();
        let led = moves::lead(&mut tx, guest, node).await.unwrap();
        tx.commit().await.unwrap();
        led
    };
    assert!(lead(to).await && !lead(to).await, "once");
    assert_eq!((world.count(AT).await, world.count(PROMISED).await), (1, 3));
    assert!(lead(from).await);
    assert_eq!(world.count(AT).await, 0);
    assert!(lead(to).await);

    // Who comes to the node that it left is brought to it, as nobody else there takes the name.
    let [left, there] = [shop.plan(0).await, shop.plan(1).await];
    let route = left.http_routes.iter().find(|route| route.name.as_str() == "shop.example.org").unwrap();
    assert_eq!((route.ip.to_string(), &route.pool), ("10.5.0.10".to_owned(), &Some(PoolId::of_guest(guest))));
    let pool = left.pools.iter().find(|pool| pool.id == PoolId::of_guest(guest)).unwrap();
    assert_eq!((pool.members[0].via, pool.members[0].ip.to_string()), (Some(to), "192.0.2.2".to_owned()));
    let lent = &there.links.as_ref().unwrap().lent;
    assert!(lent.iter().any(|one| one.ip == place.ip && one.to == [from]), "{lent:?}");
    assert_eq!(shop.leads().await, ["192.0.2.2"], "nobody is told of the node that it left");

    // Once resolvers have forgotten it, it is as if it had been there always.
    let mut conn = world.db.acquire().await.unwrap();
    moves::left(&mut conn, guest, 0.0).await.unwrap();
    assert_eq!(world.count(PROMISED).await, 2);
    assert_eq!(moves::over(&mut conn, 9).await.unwrap(), [guest]);
    assert!(moves::end(&mut conn, guest).await.unwrap() && !moves::end(&mut conn, guest).await.unwrap(), "once");
    drop(conn);
    assert_eq!(world.count("select count(*) from nodes where plan_missed is not null").await, 2);
    let left = shop.plan(0).await;
    assert!(left.http_routes.is_empty() && left.pools.is_empty() && left.links.is_none(), "{left:?}");
}

/// By its own moves, else by those of guests like it, else by all; the median, and of how many.
#[sqlx::test(migrations = "../../migrations")]
async fn how_long_it_will_answer_nothing_is_told_by_the_last_moves(db: PgPool) {
    let shop = shop(db).await;
    let world = &shop.world;
    let guest = shop.guests[0];
    let expected = async || world.ask(&shop.mia, PreviewMove { guest, node: None }).await.unwrap().downtime;
    let last = async || world.ask(&shop.mia, GetGuest { guest }).await.unwrap().last_move;
    let moved = async |of: usize, downtime_ms: u64| {
        let (guest, from) = (shop.guests[of], shop.nodes[2]);
        let mut conn = world.db.acquire().await.unwrap();
        let (job, moved) = (JobId(uuid::Uuid::now_v7()), Moved { guest, from, bytes: Bytes(7), downtime_ms });
        for _ in 0..2 {
            move_times::note(&mut conn, job, moved).await.unwrap();
        }
    };
    assert_eq!((expected().await, last().await), (None, None));
    world.run("update guests set backing = 'btrfs' where id <> (select guest_id from dns_names)").await;
    for downtime_ms in [9_000, 1_000, 3_000] {
        moved(1, downtime_ms).await;
    }
    assert_eq!(expected().await, Some(Downtime { downtime_ms: 3_000, of: 3, moves_of: MovesOf::All }));
    world.run("update guest_move_times set backing = 'dir' where downtime_ms > 1000").await;
    assert_eq!(expected().await, Some(Downtime { downtime_ms: 3_000, of: 2, moves_of: MovesOf::Backing }));
    moved(0, 4_100).await;
    let own = Some(Downtime { downtime_ms: 4_100, of: 1, moves_of: MovesOf::Guest });
    assert_eq!(expected().await, own);
    let seen = last().await.unwrap();
    let from = seen.from.map(|from| from.to_string());
    assert_eq!((seen.downtime_ms, seen.bytes, from.as_deref()), (4_100, Bytes(7), Some("192.0.2.3")));

    // The page of emptying its node says it too, of those that run; and old ones say nothing any more.
    let ops = world.ops().await;
    let leaving = ListLeaving { node: shop.nodes[0], cursor: None, limit: None };
    let told = async || world.ask(&ops, leaving.clone()).await.unwrap().items[0].downtime;
    assert_eq!(told().await, own);
    world.run("update guests set state = 'stopped'").await;
    assert_eq!((told().await, expected().await), (None, None));
    world.run("update guests set state = 'running'").await;
    world.run("update guest_move_times set at = now() - interval '91 days' where downtime_ms = 4100").await;
    world.controller.forget_once().await.unwrap();
    assert_eq!(world.count("select count(*) from guest_move_times").await, 3);
    world.run("insert into guest_move_times (job_id, guest_id, backing, bytes, downtime_ms, at)
        select gen_random_uuid(), guest_id, 'dir', 0, n, now() + n * interval '1 second' from dns_names, generate_series(1, 30) n")
        .await;
    let own = Some(Downtime { downtime_ms: 20, of: 20, moves_of: MovesOf::Guest });
    assert_eq!(expected().await, own, "the last 20, and no others");
}
