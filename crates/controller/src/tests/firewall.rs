//! Firewalls: who decides of which rules, what is refused, and what nodes are told.

use corpus_api::firewall::networks::{CreateNetwork, ListNetworks, NetworkList, RemoveNetwork, SetNetwork};
use corpus_api::firewall::nodes::{AllowToNode, BlockAtNode, BlockEverywhere, GetNodeFirewall};
use corpus_api::firewall::{
    AllowToEnvironment, AllowToGuest, GetEnvironmentFirewall, GetGuestFirewall, PortAccepted, PublishPort,
    RemoveFirewallRule, RuleAccepted, UnpublishPort,
};
use corpus_api::jobs::CancelJob;
use corpus_api::quotas::{GetQuotaPolicy, SetQuotaPolicy};
use corpus_api::{Principal, Problem};
use corpus_domain::{Environment, FirewallRuleId, GuestId, Ipv4Network, ProjectId, ProjectRole, RuleState, Transport};
use corpus_protocol::{Dropped, FirewallReading, NodePlan, RuleCount};
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::store::firewall::readings;
use crate::store::plan;

fn network(text: &str) -> Ipv4Network {
    text.parse().unwrap()
}

/// Two projects on one node: mia's has a web server and a database, bob's a guest.
struct Two {
    world: World,
    mia: Principal,
    bob: Principal,
    ops: Principal,
    atlas: ProjectId,
    web: GuestId,
    db: GuestId,
    of_bob: GuestId,
}

async fn two(pool: PgPool) -> Two {
    let world = World::new(pool).await;
    let ops = world.ops().await;
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let web = world.guest(atlas, Environment::Dev).await;
    let db = world.guest(atlas, Environment::Dev).await;
    let of_bob = world.guest(borealis, Environment::Dev).await;
    world.run("update guests set routed = true, mac = '00:16:3e:05:00:' || lpad(split_part(ip, '.', 4), 2, '0')").await;
    Two { world, mia, bob, ops, atlas, web, db, of_bob }
}

impl Two {
    async fn allow(&self, who: &Principal, guest: GuestId, from: &str) -> Result<RuleAccepted, Problem> {
        let ports = "5432".parse().unwrap();
        let asked = AllowToGuest { guest, from: from.parse().unwrap(), protocol: Transport::Tcp, ports, comment: None };
        self.world.ask(who, asked).await
    }

    async fn publish(&self, who: &Principal, guest: GuestId, node_port: Option<u64>) -> Result<PortAccepted, Problem> {
        let asked = PublishPort {
            guest,
            protocol: Transport::Tcp,
            port: 80_u64.try_into().unwrap(),
            node_port: node_port.map(|port| port.try_into().unwrap()),
            from: None,
            comment: None,
        };
        self.world.ask(who, asked).await
    }

    /// What the node is told.
    async fn plan(&self) -> NodePlan {
        let mut conn = self.world.db.acquire().await.unwrap();
        plan::current(&mut conn, self.world.node_id(), self.world.controller.services.around()).await.unwrap().unwrap()
    }

    async fn in_force(&self) {
        self.world.run("update firewall_rules set state = 'in_force' where state = 'wanted'").await;
    }

    async fn remove(&self, who: &Principal, rule: FirewallRuleId) -> Result<(), Problem> {
        self.world.ask(who, RemoveFirewallRule { rule }).await.map(drop)
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_is_let_in_by_its_own_project_only(pool: PgPool) {
    let two = two(pool).await;
    let accepted = two.allow(&two.mia, two.db, "guest:guest0.example.org").await.unwrap();
    let plan = two.plan().await;
    assert_eq!(plan.firewall.len(), 1);
    let rule = &plan.firewall[0];
    assert_eq!((rule.id, rule.ports.to_string()), (accepted.rule, "5432".to_owned()));
    assert_eq!(rule.from, [network("10.5.0.10")]);
    assert_eq!(rule.to, ["10.5.0.11".parse::<std::net::Ipv4Addr>().unwrap()]);

    // Another project's guest is not there, neither by its name nor by its address.
    at_field(two.allow(&two.mia, two.db, "guest:guest2.example.org").await, "from", "no guest");
    at_field(two.allow(&two.mia, two.db, "10.5.0.12").await, "from", "name a guest");
    at_field(two.allow(&two.mia, two.db, "10.5.0.0/24").await, "from", "name a guest");
    at_field(two.allow(&two.mia, two.db, "guest:guest1.example.org").await, "from", "itself");
    at_field(two.allow(&two.mia, two.db, "guest:guest0.example.org").await, "from", "such a rule");
    at_field(two.allow(&two.mia, two.db, "network:office").await, "from", "no network office");
    // And another project's guest can't be opened.
    hidden(two.allow(&two.bob, two.db, "anywhere").await);
    hidden(two.remove(&two.bob, accepted.rule).await);
    hidden(two.world.ask(&two.bob, GetGuestFirewall { guest: two.db }).await);
    let viewer = two.world.member("vera", &[("atlas", ProjectRole::Viewer)]).await;
    forbidden(two.allow(&viewer, two.db, "anywhere").await);
    let seen = two.world.ask(&viewer, GetGuestFirewall { guest: two.db }).await.unwrap();
    assert!(!seen.may_change && seen.rules.len() == 1);
    assert!(seen.sources.iter().all(|source| source.to_string() != "guest:guest2.example.org"), "{:?}", seen.sources);
    assert_eq!(two.world.count("select count(*) from audit where action = 'firewall.allow'").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_can_never_be_between_two_nodes_is_refused(pool: PgPool) {
    let two = two(pool).await;
    two.world
        .run(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
             select '0199d3c0-0000-7000-8000-000000000002', '192.0.2.2', 22, 'root', host_key, '{dev}', 'ready',
                 '10.6.0.1/16', 'lxcbr1' from nodes",
        )
        .await;
    two.world
        .run(
            "update guests set node_id = '0199d3c0-0000-7000-8000-000000000002', ip = '10.6.0.10'
             where name = 'guest0.example.org'",
        )
        .await;
    let asked = GetGuestFirewall { guest: two.db };
    let offered = two.world.ask(&two.mia, asked).await.unwrap().sources;
    assert!(offered.iter().any(|source| source.to_string() == "guest:guest0.example.org"));
    let allow = async |from: &str, protocol, ports: &str| {
        let (from, ports) = (from.parse().unwrap(), ports.parse().unwrap());
        two.world.ask(&two.mia, AllowToGuest { guest: two.db, from, protocol, ports, comment: None }).await
    };
    let web = "guest:guest0.example.org";
    at_field(allow(web, Transport::Udp, "53").await, "protocol", "by TCP only");
    at_field(allow(web, Transport::Tcp, "8000-8016").await, "ports", "16 ports at most");
    allow(web, Transport::Tcp, "8000-8015").await.unwrap();
    // Of an environment those on the node come, and the rule says how many don't.
    allow("environment:dev", Transport::Udp, "53").await.unwrap();
    allow("environment:dev", Transport::Tcp, "1-65535").await.unwrap();
    allow("environment:dev", Transport::Tcp, "5432").await.unwrap();
    let shown = two.world.ask(&two.mia, GetGuestFirewall { guest: two.db }).await.unwrap();
    let elsewhere: Vec<u32> = shown.rules.iter().map(|rule| rule.elsewhere).collect();
    assert_eq!(elsewhere, [0, 1, 1, 0]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_rule_of_an_environment_follows_its_guests(pool: PgPool) {
    let two = two(pool).await;
    let asked = AllowToEnvironment {
        project: "atlas".parse().unwrap(),
        environment: Environment::Dev,
        from: "198.51.100.0/24".parse().unwrap(),
        protocol: Transport::Udp,
        ports: "5000-5010".parse().unwrap(),
        comment: Some("monitoring".parse().unwrap()),
    };
    hidden(two.world.ask(&two.bob, asked.clone()).await);
    two.world.ask(&two.mia, asked).await.unwrap();
    assert_eq!(two.plan().await.firewall[0].to.len(), 2);
    two.world.guest(two.atlas, Environment::Dev).await;
    assert_eq!(two.plan().await.firewall[0].to.len(), 2, "a guest without a route is not there yet");
    two.world.run("update guests set routed = true").await;
    assert_eq!(two.plan().await.firewall[0].to.len(), 3);
    let asked = GetEnvironmentFirewall { project: "atlas".parse().unwrap(), environment: Environment::Dev };
    let shown = two.world.ask(&two.mia, asked).await.unwrap();
    assert_eq!((shown.rules.len(), shown.rules[0].comment.as_deref()), (1, Some("monitoring")));
    let of_guest = two.world.ask(&two.mia, GetGuestFirewall { guest: two.web }).await.unwrap();
    assert_eq!(of_guest.rules.len(), 1, "what holds for a guest is shown with it");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_port_of_a_node_leads_to_one_guest(pool: PgPool) {
    let two = two(pool).await;
    assert_eq!(two.publish(&two.mia, two.web, None).await.unwrap().node_port, 30_000);
    assert_eq!(two.publish(&two.bob, two.of_bob, None).await.unwrap().node_port, 30_001);
    at_field(two.publish(&two.bob, two.of_bob, Some(30_000)).await, "node_port", "published already");
    for (port, why) in [(22, "own services"), (80, "own services"), (40_000, "SSH of guests"), (8080, "an operator")] {
        at_field(two.publish(&two.mia, two.web, Some(port)).await, "node_port", why);
    }
    at_field(two.publish(&two.ops, two.web, Some(443)).await, "node_port", "own services");
    two.publish(&two.ops, two.web, Some(8080)).await.unwrap();
    hidden(two.publish(&two.bob, two.web, None).await);
    // The line of Corpus is nobody's to lead elsewhere.
    two.world.run("update nodes set ssh_port = 30002").await;
    at_field(two.publish(&two.ops, two.web, Some(30_002)).await, "node_port", "Corpus reaches");
    assert_eq!(two.publish(&two.mia, two.web, None).await.unwrap().node_port, 30_003);
    let plan = two.plan().await;
    let led: Vec<(u16, String)> = plan.published.iter().map(|one| (one.port, one.to.to_string())).collect();
    let web = || "10.5.0.10".to_owned();
    assert_eq!(led, [(30_000, web()), (30_001, "10.5.0.12".into()), (8080, web()), (30_003, web())]);
    // What the database holds, whoever writes.
    for wrong in [
        "update firewall_rules set node_port = 30000 where node_port = 30001",
        "update firewall_rules set node_port = 22 where node_port = 30001",
        "update firewall_rules set node_port = 45000 where node_port = 30001",
        "update firewall_rules set node_port = 30002 where node_port = 30001",
        "update firewall_rules set project_id = (select id from projects where name = 'atlas') where node_port = 30001",
    ] {
        sqlx::query(wrong).execute(&two.world.db).await.unwrap_err();
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn published_ports_are_taken_of_a_quota(pool: PgPool) {
    let two = two(pool).await;
    let version = two.world.ask(&two.ops, GetQuotaPolicy {}).await.unwrap().version;
    let ports = Some(1_u64.try_into().unwrap());
    let policy = SetQuotaPolicy {
        guests: None,
        memory: None,
        cpu: None,
        storage: None,
        names: None,
        ports,
        backups: None,
        version,
    };
    two.world.ask(&two.ops, policy).await.unwrap();
    let first = two.publish(&two.mia, two.web, None).await.unwrap();
    at_field(two.publish(&two.mia, two.db, None).await, "node_port", "1 of 1 published port");
    two.publish(&two.bob, two.of_bob, None).await.unwrap();
    // What is given back can be taken again.
    two.world.ask(&two.mia, CancelJob { job: first.job }).await.unwrap();
    assert_eq!(two.world.count("select count(*) from firewall_rules").await, 1);
    two.publish(&two.mia, two.db, None).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_operators_keep_out_no_project_lifts(pool: PgPool) {
    let two = two(pool).await;
    let everywhere = |from: &str| BlockEverywhere {
        from: from.parse().unwrap(),
        protocol: None,
        ports: None,
        comment: Some("it attacks".parse().unwrap()),
    };
    forbidden(two.world.ask(&two.mia, everywhere("203.0.113.0/24")).await);
    let block = two.world.ask(&two.ops, everywhere("203.0.113.0/24")).await.unwrap().rule;
    two.in_force().await;
    two.allow(&two.mia, two.web, "203.0.113.7").await.unwrap();
    let plan = two.plan().await;
    assert_eq!((plan.blocks.len(), plan.blocks[0].id, plan.firewall.len()), (1, block, 1));
    hidden(two.remove(&two.mia, block).await);
    let shown = two.world.ask(&two.mia, GetGuestFirewall { guest: two.web }).await.unwrap();
    assert_eq!(shown.rules.len(), 2, "its members see what keeps them out");
    // Corpus does not cut itself off, and guests are no addresses.
    two.world.run("insert into infrastructure (host, address) values ('the servers', '192.0.2.5')").await;
    at_field(two.world.ask(&two.ops, everywhere("192.0.2.0/24")).await, "from", "cut itself off");
    at_field(two.world.ask(&two.ops, everywhere("10.5.0.12")).await, "from", "network of guests");
    at_field(two.world.ask(&two.ops, everywhere("anywhere")).await, "from", "everybody");
    let node = two.world.node_id();
    let ports = Some("22".parse().unwrap());
    let at_node = BlockAtNode { node, from: "198.51.100.1".parse().unwrap(), protocol: None, ports, comment: None };
    at_field(two.world.ask(&two.ops, at_node.clone()).await, "protocol", "choose");
    two.world.ask(&two.ops, BlockAtNode { protocol: Some(Transport::Tcp), ..at_node }).await.unwrap();
    let allow = AllowToNode {
        node,
        from: "198.51.100.9".parse().unwrap(),
        protocol: Transport::Tcp,
        ports: "9100".parse().unwrap(),
        comment: None,
    };
    forbidden(two.world.ask(&two.mia, allow.clone()).await);
    two.world.ask(&two.ops, allow).await.unwrap();
    assert_eq!(two.plan().await.firewall.iter().map(|rule| rule.to.len()).max(), Some(3), "it is of all guests");
    assert_eq!(two.world.ask(&two.ops, GetNodeFirewall { node }).await.unwrap().rules.len(), 3);
    two.remove(&two.ops, block).await.unwrap();
    assert_eq!(two.plan().await.blocks.len(), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_named_network_is_what_it_is_now(pool: PgPool) {
    let two = two(pool).await;
    let list = |text: &str| -> NetworkList { vec![network(text)].try_into().unwrap() };
    let create = CreateNetwork { name: "office".parse().unwrap(), networks: list("198.51.100.0/24"), comment: None };
    forbidden(two.world.ask(&two.mia, create.clone()).await);
    let id = two.world.ask(&two.ops, create.clone()).await.unwrap().network;
    at_field(two.world.ask(&two.ops, create).await, "name", "already");
    two.allow(&two.mia, two.web, "network:office").await.unwrap();
    assert_eq!(two.plan().await.firewall[0].from, [network("198.51.100.0/24")]);
    let networks = two.world.ask(&two.ops, ListNetworks {}).await.unwrap().items;
    let version = networks[0].version.clone();
    let set = SetNetwork { network: id, networks: list("192.0.2.128/25"), comment: None, version };
    let changed = two.world.ask(&two.ops, set.clone()).await.unwrap();
    assert!(changed.job.is_some());
    assert_eq!(two.plan().await.firewall[0].from, [network("192.0.2.128/25")]);
    assert_eq!(two.world.ask(&two.ops, set).await.unwrap_err().status, 412);
    conflict(two.world.ask(&two.ops, RemoveNetwork { network: id }).await, "1 rule names it");
    // One that is cancelled before it began is what it was.
    two.world.ask(&two.ops, CancelJob { job: changed.job.unwrap() }).await.unwrap();
    assert_eq!(two.plan().await.firewall[0].from, [network("198.51.100.0/24")]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_rule_goes_once_it_is_there(pool: PgPool) {
    let two = two(pool).await;
    let rule = two.allow(&two.mia, two.db, "guest:guest0.example.org").await.unwrap().rule;
    conflict(two.remove(&two.mia, rule).await, "being brought");
    two.in_force().await;
    hidden(two.world.ask(&two.mia, UnpublishPort { rule }).await);
    two.remove(&two.mia, rule).await.unwrap();
    conflict(two.remove(&two.mia, rule).await, "already");
    assert!(two.plan().await.firewall.is_empty());
    let shown = two.world.ask(&two.mia, GetGuestFirewall { guest: two.db }).await.unwrap();
    assert_eq!(shown.rules[0].state, RuleState::Removing);
    assert!(shown.rules[0].job.is_some(), "the job that is on it is told");
    // A rule goes with the guest that it lets in.
    two.world.run("delete from jobs").await;
    two.world.run("delete from guests where name = 'guest0.example.org'").await;
    assert_eq!(two.world.count("select count(*) from firewall_rules").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_tells_of_its_own_guests_only(pool: PgPool) {
    let two = two(pool).await;
    let rule = two.allow(&two.mia, two.db, "guest:guest0.example.org").await.unwrap().rule;
    let drop = |to: &str| Dropped {
        to: to.parse().unwrap(),
        from: "10.5.0.12".parse().unwrap(),
        protocol: Transport::Tcp,
        port: 22,
        packets: u64::MAX,
        age_s: u32::MAX,
    };
    let reading = FirewallReading {
        counts: vec![
            RuleCount { id: rule, packets: 3, bytes: 180 },
            RuleCount { id: rule, packets: u64::MAX, bytes: 1 },
            RuleCount { id: "0199d3c0-0000-7000-8000-00000000dead".parse().unwrap(), packets: 1, bytes: 1 },
        ],
        drops: vec![drop("10.5.0.11"), drop("10.9.0.1")],
    };
    let mut conn = two.world.db.acquire().await.unwrap();
    for _ in 0..2 {
        readings::keep(&mut conn, two.world.node_id(), chrono::Utc::now(), &reading).await.unwrap();
    }
    std::mem::drop(conn);
    let shown = two.world.ask(&two.mia, GetGuestFirewall { guest: two.db }).await.unwrap();
    assert!(shown.rules[0].packets.is_some() && shown.read_at.is_some());
    assert_eq!(shown.drops.len(), 1);
    assert_eq!(shown.drops[0].from_guest, None, "a guest of another project is an address");
    assert_eq!(two.world.count("select count(*) from firewall_drops").await, 1);
}
