//! Signs of intrusion: what is counted of what nodes tell, who is blocked for it, and who never is.

use chrono::{DateTime, TimeDelta, Utc};
use corpus_api::firewall::GetGuestFirewall;
use corpus_api::firewall::networks::{CreateNetwork, NetworkList};
use corpus_api::intrusion::{
    AddressBlocked, BlockAddress, BlockedAddress, LiftBlock, ListBlockedAddresses, ListIntrusionSigns,
};
use corpus_api::notices::{ListNotices, News};
use corpus_api::{Principal, Problem};
use corpus_domain::{BlockId, Environment, GuestId, IntrusionKind, NodeId, ProjectRole, SourceAddress};
use corpus_protocol::{GuestDrops, SignsReading, SshSign};
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::store::intrusion::{self, Due};
use crate::store::plan;

/// As the world does by itself.
const WINDOW: std::time::Duration = std::time::Duration::from_mins(10);
const OTHER: &str = "0199d3c0-0000-7000-8000-000000000002";

/// Two projects on two nodes: mia's guest on the first, bob's on the other.
struct Two {
    world: World,
    mia: Principal,
    bob: Principal,
    ops: Principal,
    web: GuestId,
    other: NodeId,
}

async fn two(pool: PgPool) -> Two {
    let world = World::new(pool).await;
    let ops = world.ops().await;
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let web = world.guest(atlas, Environment::Dev).await;
    world.guest(borealis, Environment::Dev).await;
    world
        .run(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
             select '0199d3c0-0000-7000-8000-000000000002', '192.0.2.2', 22, 'root', host_key, '{dev}', 'ready',
                 '10.6.0.1/16', 'lxcbr1' from nodes",
        )
        .await;
    world
        .run(
            "update guests set node_id = '0199d3c0-0000-7000-8000-000000000002', ip = '10.6.0.11'
             where name = 'guest1.example.org'",
        )
        .await;
    Two { world, mia, bob, ops, web, other: OTHER.parse().unwrap() }
}

fn ssh(from: &str, port: u16, refused: u32, accepted: u32) -> SshSign {
    SshSign { from: from.parse().unwrap(), port: port.try_into().unwrap(), refused, accepted }
}

impl Two {
    fn node(&self) -> NodeId {
        self.world.node_id()
    }

    /// Keeps a reading that goes on from the last one.
    async fn tell(&self, node: NodeId, at: DateTime<Utc>, reading: SignsReading) -> bool {
        let mut conn = self.world.db.acquire().await.unwrap();
        let rows = "insert into intrusion_readings (node_id) select id from nodes on conflict do nothing";
        sqlx::query(rows).execute(&mut *conn).await.unwrap();
        let after = sqlx::query_scalar("select read_until from intrusion_readings where node_id = $1").bind(node.0);
        let after: Option<i64> = after.fetch_one(&mut *conn).await.unwrap();
        intrusion::keep(&mut conn, Due { node, after }, at, &reading).await.unwrap()
    }

    async fn tell_ssh(&self, node: NodeId, signs: &[SshSign]) {
        let reading = SignsReading { until: 1, ssh: signs.to_vec(), ..SignsReading::default() };
        assert!(self.tell(node, Utc::now(), reading).await);
    }

    async fn judge(&self) {
        self.world.controller.judge().await.unwrap();
    }

    async fn blocked(&self, ended: bool) -> Vec<BlockedAddress> {
        let asked = ListBlockedAddresses { ended: Some(ended), ..ListBlockedAddresses::default() };
        self.world.ask(&self.ops, asked).await.unwrap().items
    }

    async fn names(&self) -> Vec<String> {
        self.blocked(false).await.iter().map(|one| one.address.to_string()).collect()
    }

    /// Whom each of the nodes is told to keep out.
    async fn told(&self, node: NodeId) -> Vec<SourceAddress> {
        let mut conn = self.world.db.acquire().await.unwrap();
        let around = self.world.controller.services.around();
        plan::current(&mut conn, node, around).await.unwrap().unwrap().blocked
    }

    async fn block(&self, who: &Principal, address: &str) -> Result<AddressBlocked, Problem> {
        let (minutes, reason) = (60_u64.try_into().unwrap(), "it scans".parse().unwrap());
        self.world.ask(who, BlockAddress { address: address.parse().unwrap(), minutes, reason }).await
    }

    async fn lift(&self, who: &Principal, block: BlockId) -> Result<AddressBlocked, Problem> {
        self.world.ask(who, LiftBlock { block }).await
    }

    async fn audited(&self, action: &'static str) -> i64 {
        let count = sqlx::query_scalar("select count(*) from audit where action = $1").bind(action);
        count.fetch_one(&self.world.db).await.unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn failures_at_all_nodes_together_are_one_block_for_all(pool: PgPool) {
    let two = two(pool).await;
    two.tell_ssh(two.node(), &[ssh("203.0.113.7", 40_000, 12, 0), ssh("203.0.113.8", 40_000, 19, 0)]).await;
    two.tell_ssh(two.other, &[ssh("203.0.113.7", 40_001, 7, 0)]).await;
    two.judge().await;
    assert!(two.blocked(false).await.is_empty(), "19 are not 20");
    two.tell_ssh(two.other, &[ssh("203.0.113.7", 40_001, 1, 0), ssh("2001:db8:1:2:3::4", 40_001, 11, 0)]).await;
    two.tell_ssh(two.node(), &[ssh("2001:db8:1:2:f::1", 40_000, 9, 0)]).await;
    two.judge().await;
    let mut names = two.names().await;
    names.sort_unstable();
    assert_eq!(names, ["2001:db8:1:2::/64", "203.0.113.7"], "of IPv6 a network counts as one");
    let one = two.blocked(false).await.into_iter().find(|one| one.address.to_string() == "203.0.113.7").unwrap();
    assert_eq!(one.why, "20 refused SSH logins at 2 guests within 10 minutes");
    assert_eq!((one.by, one.until - one.since), (None, TimeDelta::minutes(60)));
    for node in [two.node(), two.other] {
        assert_eq!(two.told(node).await.len(), 2, "each node is told of both");
    }
    // Judged again, by this or another server, it is the same.
    two.judge().await;
    assert_eq!((two.names().await.len(), two.audited("address.block").await), (2, 2));
    let signs = two.world.ask(&two.ops, ListIntrusionSigns {}).await.unwrap();
    assert_eq!((signs.blocked, signs.addresses.len()), (2, 1), "who is blocked is no more counted");
    assert_eq!(signs.nodes.iter().map(|one| one.guests.refused_ssh.hour).sum::<u64>(), 12 + 19 + 7 + 1 + 11 + 9);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_block_ends_by_itself_and_by_hand(pool: PgPool) {
    let two = two(pool).await;
    let block = two.block(&two.ops, "203.0.113.7").await.unwrap().block;
    at_field(two.block(&two.ops, "203.0.113.7").await, "address", "blocked already");
    assert_eq!(two.blocked(false).await[0].by.as_ref().map(ToString::to_string).as_deref(), Some("ops"));
    forbidden(two.block(&two.mia, "203.0.113.8").await);
    forbidden(two.lift(&two.mia, block).await);
    two.lift(&two.ops, block).await.unwrap();
    hidden(two.lift(&two.ops, block).await);
    assert!(two.told(two.node()).await.is_empty());
    assert_eq!(two.blocked(true).await[0].lifted_by.as_ref().map(ToString::to_string).as_deref(), Some("ops"));
    assert_eq!((two.audited("address.block").await, two.audited("address.unblock").await), (1, 1));

    // What it did before it was let in again counts no more.
    two.tell_ssh(two.node(), &[ssh("203.0.113.7", 40_000, 20, 0)]).await;
    two.judge().await;
    let block = two.blocked(false).await[0].id;
    two.lift(&two.ops, block).await.unwrap();
    two.judge().await;
    assert!(two.blocked(false).await.is_empty());

    // Its time is over on the nodes at once, whether that was seen already or not.
    two.block(&two.ops, "203.0.113.9").await.unwrap();
    two.world
        .run("update blocked_addresses set since = now() - interval '2 hours', until = now() - interval '1 second' where ended_at is null")
        .await;
    assert!(two.told(two.node()).await.is_empty() && two.blocked(false).await.is_empty());
    two.judge().await;
    assert_eq!(two.blocked(true).await.len(), 3);
    two.block(&two.ops, "203.0.113.9").await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_ours_or_trusted_is_never_blocked(pool: PgPool) {
    let two = two(pool).await;
    two.world.run("insert into infrastructure (host, address) values ('the servers', '198.51.100.1')").await;
    let networks: NetworkList = serde_json::from_value(serde_json::json!(["198.51.100.128/25"])).unwrap();
    let office = CreateNetwork { name: "office".parse().unwrap(), networks, comment: None };
    two.world.ask(&two.ops, office).await.unwrap();
    // The controller, both nodes, guests of both, the office, loopback.
    let ours =
        ["198.51.100.1", "192.0.2.1", "192.0.2.2", "10.5.0.10", "10.6.0.11", "198.51.100.200", "127.0.0.1", "::1"];
    let signs: Vec<SshSign> = ours.iter().map(|from| ssh(from, 40_000, 500, 0)).collect();
    two.tell_ssh(two.node(), &signs).await;
    two.judge().await;
    assert_eq!(two.names().await, Vec::<String>::new());
    for address in ours {
        at_field(two.block(&two.ops, address).await, "address", "never blocked");
    }
    two.block(&two.ops, "198.51.100.100").await.unwrap();
}

/// A taken-over node, or a guest's root at its own port, tells what suits it.
#[sqlx::test(migrations = "../../migrations")]
async fn a_node_is_believed_about_its_own_guests_and_blocks_no_crowd(pool: PgPool) {
    let two = two(pool).await;
    // A port of a guest that is elsewhere, and of none.
    two.tell_ssh(two.node(), &[ssh("203.0.113.7", 40_001, 500, 0), ssh("203.0.113.7", 49_999, 500, 0)]).await;
    two.judge().await;
    assert!(two.names().await.is_empty());
    let dropped = vec![GuestDrops { to: "10.6.0.11".parse().unwrap(), packets: 7 }];
    two.tell(two.node(), Utc::now(), SignsReading { until: 1, dropped, ..SignsReading::default() }).await;
    assert_eq!(two.world.count("select count(*) from intrusion_signs").await, 0);
    // The whole world.
    for third in 0..2 {
        let crowd: Vec<SshSign> = (0..150).map(|last| ssh(&format!("203.0.{third}.{last}"), 40_000, 20, 0)).collect();
        two.tell_ssh(two.node(), &crowd).await;
        two.judge().await;
        two.judge().await;
    }
    assert_eq!(two.world.count("select count(*) from blocked_addresses").await, 100, "one node blocks no crowd");
    // Another one's are blocked all the same.
    two.tell_ssh(two.other, &[ssh("203.0.113.7", 40_001, 20, 0)]).await;
    two.judge().await;
    assert_eq!(two.world.count("select count(*) from blocked_addresses").await, 101);
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_is_let_in_by_a_guest_does_not_fail_there(pool: PgPool) {
    let two = two(pool).await;
    // Scripts that log in again and again.
    two.tell_ssh(two.node(), &[ssh("203.0.113.7", 40_000, 60, 1)]).await;
    two.judge().await;
    assert!(two.names().await.is_empty());
    // That one's own guest lets it in is no excuse at another's.
    two.tell_ssh(two.other, &[ssh("203.0.113.7", 40_001, 20, 0)]).await;
    two.judge().await;
    assert_eq!(two.names().await, ["203.0.113.7"]);
    // What is over long ago does not count.
    two.tell_ssh(two.node(), &[ssh("203.0.113.8", 40_000, 19, 0)]).await;
    two.world.run("update intrusion_failures set read_at = read_at - interval '11 minutes'").await;
    two.tell_ssh(two.node(), &[ssh("203.0.113.8", 40_000, 19, 0)]).await;
    two.judge().await;
    assert_eq!(two.names().await, ["203.0.113.7"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn counts_rise_once_and_begin_anew(pool: PgPool) {
    let two = two(pool).await;
    let reading = |tls_errors, packets| SignsReading {
        until: 1,
        dropped: vec![GuestDrops { to: "10.5.0.10".parse().unwrap(), packets }],
        tls_errors,
        ..SignsReading::default()
    };
    let now = Utc::now();
    for (tls_errors, packets) in [(1000, 5), (1010, 8), (1010, 8), (4, 2)] {
        assert!(two.tell(two.node(), now, reading(tls_errors, packets)).await);
    }
    let told = two.world.ask(&two.ops, ListIntrusionSigns {}).await.unwrap();
    let node = told.nodes.iter().find(|one| one.node == two.node()).unwrap();
    assert_eq!(node.tls_errors.day, 10 + 4, "what was before it was first read is not of this hour");
    assert_eq!(node.guests.dropped_packets.day, 5 + 3 + 2);
    // Of two servers that read the same node, the first counts.
    let mut conn = two.world.db.acquire().await.unwrap();
    let stale = Due { node: two.node(), after: None };
    assert!(!intrusion::keep(&mut conn, stale, now, &reading(9_999, 9_999)).await.unwrap());
    // A guest of which nothing is told any more begins anew.
    let nothing = SignsReading { until: 2, tls_errors: 4, ..SignsReading::default() };
    let due = Due { node: two.node(), after: Some(1) };
    assert!(intrusion::keep(&mut conn, due, now, &nothing).await.unwrap());
    assert_eq!(two.world.count("select count(*) from intrusion_drops").await, 0);
    // Old signs are forgotten.
    two.world.run("update intrusion_signs set hour = hour - interval '31 days'").await;
    intrusion::forget_old(&mut conn, WINDOW).await.unwrap();
    assert_eq!(two.world.count("select count(*) from intrusion_signs").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn operators_are_told_once_an_hour(pool: PgPool) {
    let two = two(pool).await;
    two.tell_ssh(two.node(), &[ssh("203.0.113.7", 40_000, 20, 0)]).await;
    two.judge().await;
    two.tell_ssh(two.node(), &[ssh("203.0.113.8", 40_000, 20, 0)]).await;
    two.judge().await;
    let notices = two.world.ask(&two.ops, ListNotices::default()).await.unwrap().items;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].title, "203.0.113.7 failed to log in too often: blocked for a while");
    assert_eq!(notices[0].path, "/intrusion");
    assert!(two.world.ask(&two.mia, ListNotices::default()).await.unwrap().items.is_empty());
    // In the next hour they are told of the rest.
    two.world.run("delete from intrusion_told").await;
    two.world.run("delete from notices").await;
    two.judge().await;
    let notices = two.world.ask(&two.ops, ListNotices::default()).await.unwrap().items;
    let News::Intrusion { addresses, .. } = &notices[0].news else { panic!("{notices:?}") };
    assert_eq!(addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["203.0.113.8"]);
    // And of nodes that count more than is usual.
    two.world.run("delete from intrusion_told").await;
    two.world.run("delete from notices").await;
    let mut conn = two.world.db.acquire().await.unwrap();
    assert_eq!(intrusion::noisy_nodes(&mut conn, IntrusionKind::TlsError, Utc::now(), 10_000).await.unwrap(), 0);
    drop(conn);
    two.tell(two.other, Utc::now(), SignsReading::default()).await;
    two.tell(two.other, Utc::now(), SignsReading { until: 9, tls_errors: 10_001, ..SignsReading::default() }).await;
    two.judge().await;
    let notices = two.world.ask(&two.ops, ListNotices::default()).await.unwrap().items;
    assert_eq!(notices[0].detail.as_deref(), Some("many failed TLS handshakes at 1 node"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn members_see_the_numbers_of_their_own_guests_only(pool: PgPool) {
    let two = two(pool).await;
    two.tell_ssh(two.node(), &[ssh("203.0.113.7", 40_000, 3, 0)]).await;
    forbidden(two.world.ask(&two.mia, ListIntrusionSigns {}).await);
    forbidden(two.world.ask(&two.mia, ListBlockedAddresses::default()).await);
    let viewer = two.world.member("vera", &[("atlas", ProjectRole::Viewer)]).await;
    for member in [&two.mia, &viewer] {
        let seen = two.world.ask(member, GetGuestFirewall { guest: two.web }).await.unwrap();
        assert_eq!((seen.signs.refused_ssh.hour, seen.signs.refused_ssh.day), (3, 3));
    }
    hidden(two.world.ask(&two.bob, GetGuestFirewall { guest: two.web }).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn no_more_are_blocked_than_fit_in_a_plan(pool: PgPool) {
    let two = two(pool).await;
    two.world
        .run(
            "insert into blocked_addresses (id, address, why, until, by_hand)
             select gen_random_uuid(), '203.' || n / 256 || '.' || n % 256 || '.1', 'test', now() + interval '1 hour', true
             from generate_series(0, 999) n",
        )
        .await;
    conflict(two.block(&two.ops, "203.0.113.7").await, "lift one");
    two.tell_ssh(two.node(), &[ssh("203.0.113.7", 40_000, 20, 0)]).await;
    two.judge().await;
    assert_eq!(two.told(two.node()).await.len(), 1_000);
    assert!(!two.told(two.node()).await.contains(&"203.0.113.7".parse().unwrap()));
}
