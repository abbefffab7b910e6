//! The pages of firewalls, with sample values: rules of each kind, and what was kept out.

use std::net::Ipv4Addr;

use corpus_api::Version;
use corpus_api::firewall::networks::{NamedNetwork, Networks};
use corpus_api::firewall::nodes::NodeFirewall;
use corpus_api::firewall::{EnvironmentFirewall, FarGuest, FirewallDrop, FirewallRuleLine, GuestFirewall};
use corpus_api::intrusion::{
    BlockedAddress, BlockedAddressPage, FailingAddress, GuestSigns, GuestSignsLine, IntrusionRules, IntrusionSigns,
    NodeSigns, SignCount,
};
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::{environment_firewall, guest_firewall, intrusion, networks, node_firewall};
use corpus_app::route::Route;
use corpus_domain::{
    BlockId, Environment, FirewallRuleId, GuestId, JobId, NamedNetworkId, NodeId, RuleAction, RuleState, Transport,
};

use crate::project_samples::{before, id, word};
use crate::samples;

/// The page of a route, if it is one of these; `variant` is `empty`, or `wrong` for a form that came back.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let wrong = || {
        let values = [("from", "10.5.0.12"), ("protocol", "udp"), ("ports", "53")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        FormState::new("allow", values).error("from", "10.5.0.12 is in the network of guests: name a guest instead")
    };
    let form = if variant == "wrong" { wrong() } else { FormState::default() };
    let is_empty = variant == "empty";
    Some(match route {
        Route::GuestFirewall(_) => {
            let view = guest_firewall::firewall_view(&guest(is_empty), &samples::quota(), &form);
            Page::new("guest-firewall", "Firewall", view).under("Guests", "/guests")
        }
        Route::EnvironmentFirewall(..) => {
            let firewall = EnvironmentFirewall {
                project: word("carto-api"),
                environment: Environment::Dev,
                rules: rules(is_empty).into_iter().filter(|rule| rule.environment.is_some()).collect(),
                sources: sources(),
                may_change: true,
            };
            Page::new("environment-firewall", "Firewall", environment_firewall::firewall_view(&firewall, &form))
                .under("Projects", "/projects")
        }
        Route::NodeFirewall(_) => {
            let of_node = |rule: &FirewallRuleLine| rule.node.is_some() || rule.action == RuleAction::Block;
            let firewall = NodeFirewall {
                node: NodeId(id(1)),
                address: word("192.0.2.7"),
                rules: rules(is_empty).into_iter().filter(of_node).collect(),
                published: u32::from(!is_empty),
                sources: sources(),
            };
            Page::new("node-firewall", "Firewall", node_firewall::firewall_view(&firewall, &form))
                .under("Compute nodes", "/nodes")
        }
        Route::Networks => Page::new("networks", "Networks", networks::networks_view(&named(is_empty), &form)),
        Route::Intrusion => {
            let (blocked, ended) = (blocked(is_empty, false), blocked(is_empty, true));
            let view = intrusion::intrusion_view(&found(is_empty), (&blocked, &ended.items), &form);
            Page::new("intrusion", "Intrusion", view)
        }
        _ => return None,
    })
}

fn sources() -> Vec<corpus_domain::RuleSource> {
    ["anywhere", "environment:dev", "network:office", "guest:web.carto.example.net"].map(word).into()
}

/// Who may reach a guest.
pub fn guest(is_empty: bool) -> GuestFirewall {
    let drop = |from: &str, port, packets, ago| FirewallDrop {
        from: word(from),
        from_guest: (port == 5432).then(|| word("worker.carto.example.net")),
        protocol: Transport::Tcp,
        port,
        packets,
        last_at: before(ago),
    };
    GuestFirewall {
        guest: GuestId(id(11)),
        name: word("db.carto.example.net"),
        project: word("carto-api"),
        environment: Environment::Dev,
        node: NodeId(id(1)),
        node_address: "192.0.2.7".to_owned(),
        rules: rules(is_empty),
        drops: if is_empty {
            Vec::new()
        } else {
            vec![drop("10.5.0.14", 5432, 6, 4), drop("203.0.113.9", 22, 310, 95)]
        },
        signs: if is_empty { GuestSigns::default() } else { signs(12, 418) },
        read_at: (!is_empty).then(|| before(3)),
        sources: sources(),
        may_change: true,
    }
}

fn rules(is_empty: bool) -> Vec<FirewallRuleLine> {
    let rule = |number, action, from: &str| FirewallRuleLine {
        id: FirewallRuleId(id(number)),
        action,
        state: RuleState::InForce,
        project: Some(word("carto-api")),
        guest: Some(GuestId(id(11))),
        guest_name: Some(word("db.carto.example.net")),
        environment: None,
        node: None,
        node_address: None,
        from: word(from),
        networks: Vec::new(),
        protocol: Some(Transport::Tcp),
        ports: Some(word("5432")),
        node_port: None,
        comment: None,
        by: Some(word("dev.lead")),
        created_at: before(86_400),
        packets: Some(48_213),
        bytes: Some(7_340_032),
        elsewhere: 0,
        far: Vec::new(),
        job: None,
    };
    let wanted = FirewallRuleLine {
        state: RuleState::Wanted,
        packets: None,
        bytes: None,
        job: Some(JobId(id(41))),
        far: vec![FarGuest { guest: word("db.carto.example.net"), address: Ipv4Addr::new(198, 18, 0, 3) }],
        ..rule(62, RuleAction::Allow, "guest:worker.carto.example.net")
    };
    let published = FirewallRuleLine {
        node: Some(NodeId(id(1))),
        node_address: Some(word("192.0.2.7")),
        node_port: Some(30_010),
        comment: Some("The replica at the other site".to_owned()),
        packets: Some(0),
        ..rule(63, RuleAction::Publish, "network:office")
    };
    let of_environment = FirewallRuleLine {
        guest: None,
        guest_name: None,
        environment: Some(Environment::Dev),
        elsewhere: 2,
        ..rule(64, RuleAction::Allow, "environment:staging")
    };
    let blocked = FirewallRuleLine {
        project: None,
        guest: None,
        guest_name: None,
        protocol: None,
        ports: None,
        networks: vec![word("203.0.113.0/24")],
        by: Some(word("ops.lead")),
        ..rule(65, RuleAction::Block, "network:scanners")
    };
    let all =
        vec![rule(61, RuleAction::Allow, "guest:web.carto.example.net"), wanted, published, of_environment, blocked];
    if is_empty { Vec::new() } else { all }
}

/// Networks that have a name.
pub fn named(is_empty: bool) -> Networks {
    let network = |number, name: &str, networks: &[&str], rules| NamedNetwork {
        id: NamedNetworkId(id(number)),
        name: word(name),
        networks: networks.iter().map(|one| word(one)).collect(),
        comment: Some("Behind the line of the town hall".to_owned()),
        rules,
        created_at: before(200_000),
        version: Version::of(&name),
    };
    let items = vec![
        network(71, "office", &["198.51.100.0/24", "203.0.113.7"], 3),
        network(72, "scanners", &["203.0.113.0/24"], 0),
    ];
    let blocks = rules(is_empty).into_iter().filter(|rule| rule.action == RuleAction::Block).collect();
    Networks { items: if is_empty { Vec::new() } else { items }, blocks }
}

fn signs(refused: u64, dropped: u64) -> GuestSigns {
    let count = |hour| SignCount { hour, day: hour * 9 };
    GuestSigns { refused_ssh: count(refused), dropped_packets: count(dropped) }
}

/// What nodes counted, and who failed.
pub fn found(is_empty: bool) -> IntrusionSigns {
    let rules = IntrusionRules {
        failures: 20,
        window_minutes: 10,
        block_minutes: 60,
        dropped_packets: 100_000,
        tls_errors: 10_000,
    };
    let node = NodeSigns {
        node: NodeId(id(1)),
        address: word("192.0.2.7"),
        guests: signs(31, 418),
        tls_errors: SignCount { hour: 7, day: 90 },
        read_at: Some(before(40)),
    };
    let guest = GuestSignsLine {
        guest: GuestId(id(11)),
        name: word("db.carto.example.net"),
        project: word("carto-api"),
        signs: signs(12, 418),
    };
    let address = |text: &str, refused| FailingAddress { address: word(text), refused, guests: 2, last_at: before(80) };
    let addresses = vec![address("203.0.113.9", 14), address("2001:db8:7:1::/64", 3)];
    if is_empty {
        return IntrusionSigns { nodes: Vec::new(), guests: Vec::new(), addresses: Vec::new(), blocked: 0, rules };
    }
    IntrusionSigns { nodes: vec![node], guests: vec![guest], addresses, blocked: 2, rules }
}

/// Addresses that are kept out, or were.
pub fn blocked(is_empty: bool, ended: bool) -> BlockedAddressPage {
    let block = |number, address: &str, by_hand: bool| BlockedAddress {
        id: BlockId(id(number)),
        address: word(address),
        why: if by_hand { "Scans all names of ours" } else { "20 refused SSH logins at 3 guests within 10 minutes" }
            .to_owned(),
        since: before(900),
        until: before(-2_700),
        by: by_hand.then(|| word("ops.lead")),
        ended_at: ended.then(|| before(60)),
        lifted_by: ended.then(|| word("ops.lead")),
    };
    let items = vec![block(81, "198.51.100.77", false), block(82, "2001:db8:9:1::/64", true)];
    BlockedAddressPage { items: if is_empty { Vec::new() } else { items }, next: None }
}
