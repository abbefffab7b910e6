//! Placement by promises, and that two at once don't take the same room.

use std::sync::Arc;

use corpus_domain::{ChosenLimits, GuestId, Limits, UserId};
use sqlx::PgPool;
use tokio::sync::Barrier;
use uuid::Uuid;

use super::*;
use crate::store::{Db, guests, nodes};
use crate::tests::upgrade;

const PROJECT: Uuid = Uuid::from_u128(1);
const USER: UserId = UserId(Uuid::from_u128(2));
const GIB: u64 = 1 << 30;

/// A node of so many GiB and processors, and 100 GB.
async fn node(pool: &PgPool, number: u128, memory: u64, processors: u32) -> NodeId {
    let insert = "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, reachability,
            network, bridge, slots, facts)
        values ($1, $2, 22, 'root', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q',
            '{dev}', 'ready', 'reachable', '10.5.0.1/16', 'lxcbr1', 4096, $3)";
    let facts = serde_json::json!({
        "hostname": "node", "os": "Debian", "kernel": "6.1", "architecture": "x86_64", "memory": memory * GIB,
        "cpu": { "model": "x", "count": processors }, "storage": { "total": 100_000_000_000_u64, "used": 0 },
        "addresses": [], "drivers": [], "listeners": [],
    });
    let id = Uuid::from_u128(number);
    sqlx::query(insert).bind(id).bind(format!("192.0.2.{number}")).bind(facts).execute(pool).await.unwrap();
    NodeId(id)
}

async fn project(pool: &PgPool) {
    for insert in [
        "insert into projects (id, name) values ($1, 'atlas')",
        "insert into users (id, realm, login, display_name) values ($1, 'local', 'mia', 'Mia')",
    ] {
        let id = if insert.contains("users") { USER.0 } else { PROJECT };
        sqlx::query(insert).bind(id).execute(pool).await.unwrap();
    }
}

fn limits(memory: &str, cpu: &str) -> Limits {
    let chosen = ChosenLimits { memory: memory.parse().ok(), cpu: cpu.parse().ok(), ..ChosenLimits::default() };
    chosen.over(SizeProfile::Small.limits())
}

fn room(limits: Limits) -> Room {
    Room::of_guest(limits, Backing::Overlayfs, SizeProfile::Small)
}

fn wanted(only: Option<NodeId>, limits: Limits) -> Wanted {
    let (driver, backing) = (Driver::Lxc, Backing::Overlayfs);
    Wanted { environment: Environment::Dev, only, besides: None, moved: None, needed: room(limits), driver, backing }
}

async fn guest(conn: &mut PgConnection, name: &str, node: NodeId, limits: Limits) {
    guest_on(conn, Backing::Overlayfs, name, node, limits).await;
}

async fn guest_on(conn: &mut PgConnection, backing: Backing, name: &str, node: NodeId, limits: Limits) {
    let row = guests::NewGuest {
        id: GuestId(Uuid::now_v7()),
        name: &name.parse().unwrap(),
        node,
        project: corpus_domain::ProjectId(PROJECT),
        environment: Environment::Dev,
        driver: corpus_domain::Driver::Lxc,
        image: &"debian-12".parse().unwrap(),
        profile: None,
        backing,
        size: SizeProfile::Small,
        limits,
        mode: corpus_domain::Mode::Masterless,
        ip: None,
        mac: None,
        password_sealed: None,
        autostart: true,
        privileged: None,
    };
    guests::insert(conn, &row, USER).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_goes_where_it_fits(pool: PgPool) {
    project(&pool).await;
    let (small, large) = (node(&pool, 11, 4, 2).await, node(&pool, 12, 16, 1).await);
    let mut conn = pool.acquire().await.unwrap();
    let mut picked = async |only, memory, cpu| pick(&mut conn, wanted(only, limits(memory, cpu))).await.unwrap();
    assert_eq!(picked(None, "6 GiB", "1").await, Some(large), "by its memory, one and a half times");
    assert_eq!(picked(None, "6145 MiB", "16").await, None, "nowhere are both");
    assert_eq!(picked(None, "1 GiB", "16").await, Some(small), "by its processors, eight times");
    assert_eq!(picked(Some(small), "6 GiB", "1").await, Some(small));
    assert_eq!(picked(Some(small), "6145 MiB", "1").await, None);
    for (count, name) in ["a.test", "b.test", "c.test"].into_iter().enumerate() {
        assert_eq!(picked(Some(small), "2 GiB", "1").await, Some(small), "{count}");
        guest(&mut pool.acquire().await.unwrap(), name, small, limits("2 GiB", "1")).await;
    }
    assert_eq!(picked(Some(small), "64 MiB", "1").await, None, "all of it is promised");
    let view = nodes::get(&mut pool.acquire().await.unwrap(), small).await.unwrap().unwrap();
    assert_eq!((view.promised.memory, view.guests, view.slots), (Bytes(6 * GIB), 3, 3));
    sqlx::query("update nodes set memory_overcommit = 200").execute(&pool).await.unwrap();
    assert_eq!(picked(Some(small), "2 GiB", "1").await, Some(small), "ops allow more");
    let view = nodes::get(&mut pool.acquire().await.unwrap(), small).await.unwrap().unwrap();
    assert_eq!((view.slots, view.free_slots()), (5, 2));
}

/// A node that has not told yet what it can make makes what every one made before they told; the others what they tell.
#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_goes_where_it_can_be_made(pool: PgPool) {
    let (old, new) = (node(&pool, 11, 16, 2).await, node(&pool, 12, 4, 2).await);
    let mut conn = pool.acquire().await.unwrap();
    let on = |backing, driver| Wanted { driver, backing, ..wanted(None, limits("1 GiB", "1")) };
    assert_eq!(pick(&mut conn, on(Backing::Btrfs, Driver::Lxc)).await.unwrap(), None);
    assert!(!is_made(&mut conn, Driver::Lxc, Backing::Btrfs).await.unwrap());
    let backing = |backing: Backing, holds: bool, obstacle: Option<&str>| serde_json::json!({ "backing": backing, "holds_size": holds, "obstacle": obstacle });
    let backings = [
        backing(Backing::Overlayfs, false, None),
        backing(Backing::Btrfs, true, None),
        backing(Backing::Loop, true, Some("no loop devices")),
    ];
    let drivers = serde_json::json!([
        { "driver": "lxc", "version": "5", "obstacle": null, "backings": backings },
        { "driver": "docker", "version": null, "obstacle": "this agent sets up lxc only", "backings": backings },
    ]);
    let told = "update nodes set facts = jsonb_set(facts, '{drivers}', $2) where id = $1";
    sqlx::query(told).bind(new.0).bind(drivers).execute(&pool).await.unwrap();
    assert_eq!(pick(&mut conn, on(Backing::Btrfs, Driver::Lxc)).await.unwrap(), Some(new));
    assert_eq!(pick(&mut conn, on(Backing::Btrfs, Driver::Docker)).await.unwrap(), None);
    assert_eq!(pick(&mut conn, on(Backing::Loop, Driver::Lxc)).await.unwrap(), Some(old));
    assert_eq!(pick(&mut conn, on(Backing::Overlayfs, Driver::Lxc)).await.unwrap(), Some(old), "it has more room");
    let told: Vec<_> = makings(&mut conn).await.unwrap();
    let told: Vec<_> = told.iter().map(|one| (one.backing, one.holds_size, one.nodes, one.of)).collect();
    let all = [
        (Backing::Overlayfs, false, 2, 2),
        (Backing::Btrfs, true, 1, 2),
        (Backing::Dir, false, 1, 2),
        (Backing::Loop, true, 1, 2),
    ];
    assert_eq!(told, all);
}

/// The node has a pool for guests on `lvm`, of so many GB.
async fn with_pool(pool: &PgPool, node: NodeId, gb: u64) {
    let drivers = serde_json::json!([{ "driver": "lxc", "version": "5", "obstacle": null, "backings": [
        { "backing": "overlayfs", "holds_size": false, "obstacle": null },
        { "backing": "lvm", "holds_size": true, "obstacle": null, "room": gb * 1_000_000_000 },
    ] }]);
    let told = "update nodes set facts = jsonb_set(facts, '{drivers}', $2) where id = $1";
    sqlx::query(told).bind(node.0).bind(drivers).execute(pool).await.unwrap();
}

/// Guests in a pool take nothing of what the others share, and the other way round.
#[sqlx::test(migrations = "../../migrations")]
async fn a_pool_has_room_of_its_own(pool: PgPool) {
    project(&pool).await;
    let id = node(&pool, 11, 64, 16).await;
    with_pool(&pool, id, 12).await;
    let mut conn = pool.acquire().await.unwrap();
    let few = limits("256 MiB", "0.1");
    let on =
        |backing| Wanted { backing, needed: Room::of_guest(few, backing, SizeProfile::Small), ..wanted(None, few) };
    for name in ["a.test", "b.test"] {
        assert_eq!(pick(&mut conn, on(Backing::Lvm)).await.unwrap(), Some(id));
        guest_on(&mut conn, Backing::Lvm, name, id, few).await;
    }
    assert_eq!(pick(&mut conn, on(Backing::Lvm)).await.unwrap(), None, "12 GB hold two of 5 GB");
    assert_eq!(pick(&mut conn, on(Backing::Overlayfs)).await.unwrap(), Some(id));
    let view = nodes::get(&mut conn, id).await.unwrap().unwrap();
    let told: Vec<_> = view.pools.iter().map(|one| (one.backing, one.room.0, one.promised.0)).collect();
    assert_eq!((told, view.promised.storage), (vec![(Backing::Lvm, 12_000_000_000, 10_000_000_000)], Bytes(0)));
    let free = [Backing::Lvm, Backing::Overlayfs].map(|backing| view.free_on(backing).unwrap().storage.0);
    assert_eq!(free, [2_000_000_000, 100_000_000_000]);

    // A snapshot lies where its guest does, and goes from there with it.
    let promises =
        "select coalesce(sum(storage) filter (where backing = 'lvm'), 0)::bigint, sum(guests) from node_tallies";
    let in_pool =
        async |conn: &mut PgConnection| sqlx::query_as::<_, (i64, i64)>(promises).fetch_one(conn).await.unwrap();
    let snapshot = "insert into snapshots (id, guest_id, project_id, node_id, backing, storage)
        select gen_random_uuid(), id, project_id, node_id, backing, storage from guests where name = 'a.test'";
    sqlx::query(snapshot).execute(&mut *conn).await.unwrap();
    assert_eq!(in_pool(&mut conn).await, (15_000_000_000, 2));
    sqlx::query("select fold_tallies()").execute(&mut *conn).await.unwrap();
    assert_eq!(in_pool(&mut conn).await, (15_000_000_000, 2));
    sqlx::query("delete from guests where name = 'a.test'").execute(&mut *conn).await.unwrap();
    sqlx::query("select fold_tallies()").execute(&mut *conn).await.unwrap();
    assert_eq!(in_pool(&mut conn).await, (5_000_000_000, 1));
    assert_eq!(pick(&mut conn, on(Backing::Lvm)).await.unwrap(), Some(id));

    // A system disk that is full, or small, does not matter to those in the pool.
    let small = "update nodes set facts = jsonb_set(facts, '{storage,total}', '1000000000')";
    sqlx::query(small).execute(&mut *conn).await.unwrap();
    assert_eq!(pick(&mut conn, on(Backing::Overlayfs)).await.unwrap(), None);
    assert_eq!(pick(&mut conn, on(Backing::Lvm)).await.unwrap(), Some(id));
    // As much as a node is believed, as often as operators may promise it.
    let most = "update nodes set storage_overcommit = 10000, memory_overcommit = 10000,
        facts = jsonb_set(jsonb_set(jsonb_set(facts, '{drivers,0,backings,1,room}', $1), '{storage,total}', $1), '{memory}', $1)";
    let before: serde_json::Value = sqlx::query_scalar("select facts from nodes").fetch_one(&mut *conn).await.unwrap();
    sqlx::query(most).bind(serde_json::json!(1_u64 << 56)).execute(&mut *conn).await.unwrap();
    assert_eq!(pick(&mut conn, on(Backing::Lvm)).await.unwrap(), Some(id));
    assert_eq!(pick(&mut conn, on(Backing::Overlayfs)).await.unwrap(), Some(id));
    let back = "update nodes set facts = $1, memory_overcommit = 150";
    sqlx::query(back).bind(before).execute(&mut *conn).await.unwrap();
    sqlx::query("update nodes set storage_overcommit = 50").execute(&mut *conn).await.unwrap();
    assert_eq!(pick(&mut conn, on(Backing::Lvm)).await.unwrap(), None, "operators promise half of it only");
}

/// What was promised before is summed up by what it lies on.
#[sqlx::test(migrations = false)]
async fn promises_of_before_are_known_by_backing(pool: PgPool) {
    const THIS: i64 = 102;
    upgrade::until(&pool, THIS).await;
    project(&pool).await;
    let id = node(&pool, 11, 64, 16).await;
    with_pool(&pool, id, 100).await;
    let guests = "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state,
             memory, cpu_millis, storage)
         select gen_random_uuid(), backing || '.test', $1, $2, 'dev', 'lxc', 'debian-12', backing, 'small', 'masterless',
             'running', 268435456, 100, storage from (values ('overlayfs', 2000000000), ('lvm', 5000000000)) of (backing, storage)";
    sqlx::query(guests).bind(id.0).bind(PROJECT).execute(&pool).await.unwrap();
    let snapshots = "insert into snapshots (id, guest_id, project_id, node_id, storage)
        select gen_random_uuid(), id, project_id, node_id, storage from guests where name = $1";
    for guest in ["lvm.test", "overlayfs.test"] {
        sqlx::query(snapshots).bind(guest).execute(&pool).await.unwrap();
    }
    upgrade::since(&pool, THIS).await;
    let sums = "select guests, storage from node_promises";
    let sums: (i64, i64) = sqlx::query_as(sums).fetch_one(&pool).await.unwrap();
    assert_eq!(sums, (2, 4_000_000_000));
    let mut conn = pool.acquire().await.unwrap();
    assert_eq!(nodes::get(&mut conn, id).await.unwrap().unwrap().pools[0].promised, Bytes(5_000_000_000));
    sqlx::query("delete from guests").execute(&pool).await.unwrap();
    sqlx::query("select fold_tallies()").execute(&pool).await.unwrap();
    let left: i64 = sqlx::query_scalar("select count(*) from node_tallies").fetch_one(&pool).await.unwrap();
    assert_eq!(left, 0, "each goes from where it was counted");
}

/// As a request does it.
async fn take(pool: PgPool, id: NodeId, number: usize, both: Arc<Barrier>) -> bool {
    let needed = limits("4 GiB", "1");
    let mut tx = Db::from(pool).begin().await.unwrap();
    assert_eq!(pick(&mut tx, wanted(None, needed)).await.unwrap(), Some(id));
    both.wait().await;
    nodes::lock(&mut tx, id).await.unwrap();
    let fits = pick(&mut tx, wanted(Some(id), needed)).await.unwrap().is_some();
    if fits {
        guest(&mut tx, &format!("g{number}.test"), id, needed).await;
    }
    tx.commit().await.unwrap();
    fits
}

/// Both see the last room, one takes it under the lock, and the other then sees none.
#[sqlx::test(migrations = "../../migrations")]
async fn two_at_once_do_not_take_the_same_room(pool: PgPool) {
    project(&pool).await;
    let id = node(&pool, 11, 4, 2).await;
    let both = Arc::new(Barrier::new(2));
    let taking = |number| tokio::spawn(take(pool.clone(), id, number, both.clone()));
    let (one, two) = tokio::join!(taking(1), taking(2));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one ^ two, "{one} {two}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn limits_are_kept_and_counted(pool: PgPool) {
    project(&pool).await;
    let id = node(&pool, 11, 4, 2).await;
    let mut conn = pool.acquire().await.unwrap();
    let before = limits("512 MiB", "0.5");
    guest(&mut conn, "a.test", id, before).await;
    let view = guests::on_node(&mut conn, id).await.unwrap().pop().unwrap();
    assert_eq!(view.limits, before);
    guests::set_limits(&mut conn, view.id, limits("2 GiB", "3")).await.unwrap();
    let view = guests::get(&mut conn, view.id).await.unwrap().unwrap();
    assert_eq!(view.limits, limits("2 GiB", "3"));
    let promised = nodes::get(&mut conn, id).await.unwrap().unwrap().promised;
    assert_eq!(promised, Room { memory: Bytes(2 * GIB), cpu_millis: 3000, storage: Bytes(2_000_000_000) });
    assert!(sqlx::query("update guests set memory = 1").execute(&mut *conn).await.is_err(), "a rule of the database");
}

/// What was there before has the limits of its size.
#[sqlx::test(migrations = false)]
async fn guests_of_before_have_the_limits_of_their_profile(pool: PgPool) {
    const THIS: i64 = 13;
    upgrade::until(&pool, THIS).await;
    project(&pool).await;
    let id = node(&pool, 11, 4, 2).await;
    for size in SizeProfile::ALL {
        for backing in [Backing::Overlayfs, Backing::Loop] {
            sqlx::query(
                "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state)
                 values (gen_random_uuid(), $1, $2, $3, 'dev', 'lxc', 'debian-12', $4, $5, 'masterless', 'running')",
            )
            .bind(format!("{size}.{backing}.test"))
            .bind(id.0)
            .bind(PROJECT)
            .bind(backing.as_str())
            .bind(size.as_str())
            .execute(&pool)
            .await
            .unwrap();
        }
    }
    upgrade::since(&pool, THIS).await;
    let mut conn = pool.acquire().await.unwrap();
    let found = guests::on_node(&mut conn, id).await.unwrap();
    assert_eq!(found.len(), SizeProfile::ALL.len() * 2);
    let mut storage = 0;
    for guest in found {
        assert_eq!(guest.limits, guest.size.limits(), "{}", guest.size);
        storage += Room::of_guest(guest.limits, guest.backing, guest.size).storage.0;
    }
    assert_eq!(nodes::get(&mut conn, id).await.unwrap().unwrap().promised.storage, Bytes(storage));
}
