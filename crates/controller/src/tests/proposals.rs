//! Moves that would even out nodes: which are proposed, that each is accepted, and what is left where it is.

use std::time::{Duration, Instant};

use corpus_api::Principal;
use corpus_api::guests::MoveGuest;
use corpus_api::moves::{Downtime, MovesOf, Promise, ProposeMoves, ProposedMove, ProposedMoves};
use corpus_domain::{Environment, NodeId, ProjectId, ProjectRole};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, forbidden};

const GIB: i64 = 1 << 30;

struct Fleet {
    world: World,
    ops: Principal,
    project: ProjectId,
}

impl Fleet {
    async fn new(db: PgPool) -> Self {
        let world = World::new(db).await;
        let mut mia = world.member("mia", &[]).await;
        let project = world.project(&mut mia, "atlas").await;
        // The one that is there has told nothing of itself.
        Self { ops: world.ops().await, world, project }
    }

    /// A node that can promise 16 GiB, 16 processors and 100 GB.
    async fn node(&self, number: u8) -> NodeId {
        let facts = serde_json::json!({
            "hostname": "node", "os": "Debian", "kernel": "6.1", "architecture": "x86_64", "memory": 16 * GIB,
            "cpu": { "model": "x", "count": 16 }, "storage": { "total": 100_000_000_000_u64, "used": 0 },
            "addresses": [], "drivers": [], "listeners": [],
        });
        let id = Uuid::from_u128(number.into());
        sqlx::query(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, reachability, network,
                 bridge, slots, facts, memory_overcommit, cpu_overcommit, storage_overcommit)
             select $1, $2, 22, 'root', host_key, '{dev}', 'ready', 'reachable', '10.5.0.1/16', 'lxcbr1', 4096, $3, 100, 100,
                 100
             from nodes limit 1",
        )
        .bind(id)
        .bind(format!("192.0.2.{number}"))
        .bind(facts)
        .execute(&self.world.db)
        .await
        .unwrap();
        NodeId(id)
    }

    /// So many guests that run there, each of so much memory in MiB, storage in GB and processor time in thousandths.
    async fn guests(&self, on: NodeId, count: i64, [mib, gb, millis]: [i64; 3]) {
        sqlx::query(
            "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state,
                 memory, storage, cpu_millis)
             select gen_random_uuid(), 'g' || s.before + n || '.test', $1, $2, 'dev', 'lxc', 'debian-12', 'overlayfs',
                 'small', 'masterless', 'running', $4 * 1048576, $5 * 1000000000, $6
             from generate_series(1, $3) n cross join (select count(*) as before from guests) s",
        )
        .bind(on.0)
        .bind(self.project.0)
        .bind(count)
        .bind(mib)
        .bind(gb)
        .bind(i32::try_from(millis).unwrap())
        .execute(&self.world.db)
        .await
        .unwrap();
    }

    async fn proposed(&self) -> ProposedMoves {
        self.world.ask(&self.ops, ProposeMoves {}).await.unwrap()
    }

    /// Asks for it as its button does.
    async fn made(&self, one: &ProposedMove) {
        let wanted = MoveGuest { guest: one.guest, node: Some(one.to.node) };
        assert_eq!(self.world.ask(&self.ops, wanted).await.unwrap().node, one.to.node);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn even_nodes_are_left_as_they_are(db: PgPool) {
    let fleet = Fleet::new(db).await;
    let all = fleet.proposed().await;
    assert!(all.even && all.items.is_empty(), "there is none");
    let (one, other) = (fleet.node(11).await, fleet.node(12).await);
    fleet.guests(one, 4, [2_048, 2, 1_000]).await;
    fleet.guests(other, 3, [2_048, 2, 1_000]).await;
    let all = fleet.proposed().await;
    assert!(all.even && all.items.is_empty(), "{all:?}");
    let mia = fleet.world.member("mia", &[("atlas", ProjectRole::Maintainer)]).await;
    forbidden(fleet.world.ask(&mia, ProposeMoves {}).await);
}

/// What lies in a pool takes nothing of the storage that nodes are compared by, and moves where the other's has room.
#[sqlx::test(migrations = "../../migrations")]
async fn storage_in_a_pool_is_not_evened_out(db: PgPool) {
    let fleet = Fleet::new(db).await;
    let (full, empty) = (fleet.node(11).await, fleet.node(12).await);
    let pools = async |gb: u64| {
        let drivers = serde_json::json!([{ "driver": "lxc", "version": "5", "obstacle": null, "backings": [
            { "backing": "lvm", "holds_size": true, "obstacle": null, "room": gb * 1_000_000_000 } ] }]);
        let told = "update nodes set facts = jsonb_set(facts, '{drivers}', $1) where facts is not null";
        sqlx::query(told).bind(drivers).execute(&fleet.world.db).await.unwrap();
    };
    pools(100).await;
    fleet.guests(full, 4, [512, 20, 100]).await;
    fleet.world.run("update guests set backing = 'lvm'").await;
    assert!(fleet.proposed().await.even, "80 GB of the pool, and nothing of the file system");
    fleet.world.run("update guests set memory = memory * 6").await;
    pools(10).await;
    let all = fleet.proposed().await;
    assert!(!all.even && all.items.is_empty(), "{all:?}");
    pools(100).await;
    let all = fleet.proposed().await;
    let told: Vec<_> = all.items.iter().map(|one| (one.evens, one.to.node, one.to.after.storage)).collect();
    assert_eq!(told, vec![(Promise::Memory, empty, 0); 2]);
    for one in &all.items {
        fleet.made(one).await;
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_proposed_ends_even_and_each_move_is_accepted(db: PgPool) {
    let fleet = Fleet::new(db).await;
    let (full, empty, between) = (fleet.node(11).await, fleet.node(12).await, fleet.node(13).await);
    fleet.guests(full, 7, [2_048, 2, 1_000]).await;
    fleet.guests(between, 3, [2_048, 2, 1_000]).await;
    let all = fleet.proposed().await;
    assert!(!all.even);
    let told: Vec<_> = all.items.iter().map(|one| (one.from.node, one.to.node, one.from.before.memory)).collect();
    assert_eq!(told, [(full, empty, 87), (full, empty, 75), (full, empty, 62)], "87, 0 and 37 to 50, 37 and 37");
    for one in &all.items {
        assert_eq!((one.evens, one.environment, one.downtime), (Promise::Memory, Environment::Dev, None));
        assert!(one.to.after.memory <= one.from.after.memory, "{one:?}");
        assert_eq!(one.from.before.memory - one.from.after.memory, one.to.after.memory - one.to.before.memory);
    }
    let last = all.items.last().unwrap();
    assert_eq!((last.from.after.memory, last.to.after.memory), (50, 37));

    // None is proposed again once it is on its way; and they are even when all are.
    fleet.made(&all.items[0]).await;
    let rest = fleet.proposed().await;
    assert!(rest.items.len() == 2 && rest.items.iter().all(|one| one.guest != all.items[0].guest), "{rest:?}");
    for one in &rest.items {
        fleet.made(one).await;
    }
    let all = fleet.proposed().await;
    assert!(all.even && all.items.is_empty(), "{all:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn storage_and_processors_come_after_memory(db: PgPool) {
    let fleet = Fleet::new(db).await;
    let (one, other) = (fleet.node(11).await, fleet.node(12).await);
    fleet.guests(one, 8, [1_024, 10, 1_000]).await;
    fleet.guests(other, 8, [1_024, 2, 1_000]).await;
    let all = fleet.proposed().await;
    assert!(!all.even && !all.items.is_empty());
    for proposed in &all.items {
        assert_eq!((proposed.evens, proposed.from.node, proposed.to.node), (Promise::Storage, one, other));
        assert!(proposed.to.after.storage <= proposed.from.after.storage, "{proposed:?}");
        assert!(proposed.to.after.memory.abs_diff(proposed.from.after.memory) < 20, "{proposed:?}");
    }
    // Memory would get uneven by a second one.
    assert_eq!(all.items.len(), 1);
    fleet.world.run("update guests set storage = 2000000000, cpu_millis = 2000 where storage > 2000000000").await;
    let all = fleet.proposed().await;
    let told: Vec<_> = all.items.iter().map(|one| (one.evens, one.from.after.cpu, one.to.after.cpu)).collect();
    assert_eq!(told, [(Promise::Cpu, 87, 62)]);
}

/// Where the guest can't go, or a node takes none, nothing is proposed; nor of guests that are left where they are.
#[sqlx::test(migrations = "../../migrations")]
async fn only_nodes_that_take_a_guest_are_asked(db: PgPool) {
    let fleet = Fleet::new(db).await;
    let (full, empty, between) = (fleet.node(11).await, fleet.node(12).await, fleet.node(13).await);
    fleet.guests(full, 7, [2_048, 2, 1_000]).await;
    fleet.guests(between, 3, [2_048, 2, 1_000]).await;
    let to = async || {
        let all = fleet.proposed().await;
        all.items
            .iter()
            .map(|one| one.to.node)
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(to().await, [empty]);
    for without in [
        "update nodes set state = 'draining' where address = '192.0.2.12'",
        "update nodes set reachability = 'unreachable' where address = '192.0.2.12'",
        "update nodes set environments = '{prod}' where address = '192.0.2.12'",
        "update nodes set slots = 0 where address = '192.0.2.12'",
        "update nodes set facts = jsonb_set(facts, '{drivers}', '[{\"driver\": \"lxc\", \"backings\": [{\"backing\": \"btrfs\"}]}]')
         where address = '192.0.2.12'",
        "insert into left_behind (node_id, guest_id, name) select e.id, g.id, g.name from guests g, nodes e
         where e.address = '192.0.2.12'",
    ] {
        fleet.world.run(without).await;
        assert_eq!(to().await, [between], "{without}");
        fleet.world.run("delete from left_behind").await;
        fleet.world.run("update nodes set state = 'ready', reachability = 'reachable', environments = '{dev}', slots = 4096,
            facts = jsonb_set(facts, '{drivers}', '[]') where facts is not null").await;
    }
    for unmoved in [
        "update guests set privileged_reason = 'it mounts disks'",
        "insert into snapshots (id, guest_id, project_id, node_id, backing, storage)
         select gen_random_uuid(), id, project_id, node_id, backing, 0 from guests",
        "insert into leaving_guests (guest_id, node_id, how) select id, node_id, 'move' from guests",
        "update guests set state = 'starting'",
        "update projects set leaving_since = now(), leaving_job = gen_random_uuid()",
    ] {
        fleet.world.run(unmoved).await;
        let all = fleet.proposed().await;
        assert!(!all.even && all.items.is_empty(), "{unmoved}: {all:?}");
        fleet.world.run("update guests set privileged_reason = null, state = 'running'").await;
        fleet.world.run("with gone as (delete from snapshots) delete from leaving_guests").await;
        fleet.world.run("update projects set leaving_since = null, leaving_job = null").await;
    }
    assert_eq!(to().await, [empty], "as at first");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_with_a_job_is_left_and_how_long_each_takes_is_told(db: PgPool) {
    let fleet = Fleet::new(db).await;
    let (full, empty) = (fleet.node(11).await, fleet.node(12).await);
    fleet.guests(full, 1, [4_096, 2, 1_000]).await;
    fleet.guests(full, 4, [2_048, 2, 1_000]).await;
    let first = fleet.proposed().await.items.remove(0);
    assert_eq!((first.name.as_str(), first.to.node), ("g1.test", empty), "the largest");
    let busy =
        "insert into job_locks (resource, job_id, mode) select 'guest:' || $1::text, id, 'shared' from jobs limit 1";
    fleet.world.run("insert into jobs (id, kind, title, params, dag) values (gen_random_uuid(), 'guest_limit', 'x', '{}', '{}')").await;
    sqlx::query(busy).bind(first.guest.0).execute(&fleet.world.db).await.unwrap();
    let next = fleet.proposed().await.items.remove(0);
    assert_ne!(next.guest, first.guest);
    assert_eq!(next.downtime, None);
    let moved = "insert into guest_move_times (job_id, guest_id, backing, bytes, downtime_ms)
        select gen_random_uuid(), id, backing, 0, 4100 from guests where name = 'g1.test'";
    fleet.world.run(moved).await;
    let told = Some(Downtime { downtime_ms: 4_100, of: 1, moves_of: MovesOf::Backing });
    assert_eq!(fleet.proposed().await.items[0].downtime, told);
    fleet.world.run("update guests set state = 'stopped'").await;
    assert_eq!(fleet.proposed().await.items[0].downtime, None, "who is stopped answers nothing anyway");
}

/// However many guests there are, few of them are read.
#[sqlx::test(migrations = "../../migrations")]
async fn it_is_answered_at_once_among_many_guests(db: PgPool) {
    const LIMIT: Duration = Duration::from_millis(200);
    let fleet = Fleet::new(db).await;
    for number in 0..20 {
        let node = fleet.node(11 + number).await;
        fleet.guests(node, 1_000, [if number < 10 { 128 } else { 64 }, 2, 100]).await;
    }
    fleet
        .world
        .run("update nodes set memory_overcommit = 800, cpu_overcommit = 10000, storage_overcommit = 10000")
        .await;
    fleet.world.run("analyze").await;
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let all = fleet.proposed().await;
        fastest = fastest.min(began.elapsed());
        assert_eq!((all.even, all.items.len()), (false, 10));
    }
    assert!(fastest < LIMIT, "{fastest:?}");
}
