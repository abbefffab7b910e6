//! What a plan must be before anything is rendered from it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use corpus_domain::{Ipv4Network, SSH_PORTS, Transport};
use corpus_protocol::{Links, MAX_CERTIFICATES, MAX_FAR_PORTS, MAX_PEERS, NAMES_OF_CERTIFICATE, NodePlan, is_stand_in};

use crate::failure::Failure;

/// An interface's name becomes part of rendered files: 1 to 15 letters, digits and hyphens.
pub fn require_interface_name(name: &str) -> Result<(), Failure> {
    let fits = (1..=15).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if fits {
        return Ok(());
    }
    let shown: String = name.chars().take(40).collect();
    Err(Failure::Invalid(format!(
        "{shown:?} is no name for a bridge: a lower-case letter, then letters, digits and hyphens, 15 characters at most"
    )))
}

/// The plan is in itself without contradiction.
pub fn require_sound(plan: &NodePlan) -> Result<(), Failure> {
    require_interface_name(&plan.bridge)?;
    let mut ports = BTreeSet::new();
    for route in &plan.ssh_routes {
        require_guest_address(plan, route.ip)?;
        if !ports.insert(route.port) {
            return Err(Failure::Invalid(format!("two guests have the SSH port {}", route.port.get())));
        }
    }
    let mut names = BTreeMap::new();
    for route in &plan.http_routes {
        require_guest_address(plan, route.ip)?;
        if names.insert((&route.name, route.wildcard), route.ip).is_some_and(|other| other != route.ip) {
            return Err(Failure::Invalid(format!("the name {} leads to two guests", route.name)));
        }
    }
    let (mut ips, mut macs) = (BTreeSet::new(), BTreeSet::new());
    for ip in &plan.isolated {
        require_guest_address(plan, *ip)?;
    }
    for port in &plan.ports {
        require_guest_address(plan, port.ip)?;
        if !ips.insert(port.ip) || !macs.insert(port.mac.to_string()) {
            return Err(Failure::Invalid(format!("two guests have the address {} or the MAC {}", port.ip, port.mac)));
        }
    }
    require_certificates(plan)?;
    require_challenges(plan)?;
    require_sound_pools(plan)?;
    require_sound_links(plan)?;
    super::mail::require_sound(plan)?;
    require_sound_rules(plan)
}

/// Rules lead to guests of the node, and what they name of its network is guests.
fn require_sound_rules(plan: &NodePlan) -> Result<(), Failure> {
    let own: Ipv4Network = Ipv4Network::new(plan.network.network(), plan.network.prefix());
    let mut published = BTreeSet::new();
    for rule in &plan.firewall {
        rule.to.iter().try_for_each(|to| require_guest_address(plan, *to))?;
        for from in rule.from.iter().filter(|from| own.holds(**from)) {
            let Some(guest) = from.single() else {
                return Err(Failure::Invalid(format!("{from} is a part of the guests' network; name the guests")));
            };
            require_guest_address(plan, guest)?;
        }
    }
    for one in &plan.published {
        require_guest_address(plan, one.to)?;
        if one.port < 1024 || SSH_PORTS.contains(&one.port) || one.to_port == 0 {
            return Err(Failure::Invalid(format!("port {} of the node is not for a guest's own port", one.port)));
        }
        if !published.insert((one.protocol, one.port)) {
            return Err(Failure::Invalid(format!("port {}/{} leads to two guests", one.port, one.protocol)));
        }
    }
    Ok(())
}

fn require_certificates(plan: &NodePlan) -> Result<(), Failure> {
    require_at_most(plan.certificates.len(), "certificates")?;
    let mut ids = BTreeSet::new();
    for one in plan.all_certificates() {
        if !ids.insert(one.id) {
            return Err(Failure::Invalid(format!("certificate {} is served twice", one.id)));
        }
        if one.digest.len() != 64 || !one.digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(Failure::Invalid(format!("the digest of certificate {} is none", one.id)));
        }
        if !(1..=NAMES_OF_CERTIFICATE).contains(&one.names.len()) {
            let count = one.names.len();
            return Err(Failure::Invalid(format!(
                "certificate {} is for {count} names, not 1 to {NAMES_OF_CERTIFICATE}",
                one.id
            )));
        }
    }
    Ok(())
}

/// Token and answer become part of a map, and the answer of what the proxy says in a name's name.
fn require_challenges(plan: &NodePlan) -> Result<(), Failure> {
    require_at_most(plan.challenges.len(), "challenges")?;
    let is_base64url = |text: &str| {
        (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let mut places = BTreeSet::new();
    for one in &plan.challenges {
        let thumbprint = one.answer.strip_prefix(&one.token).and_then(|rest| rest.strip_prefix('.'));
        if !is_base64url(&one.token) || !thumbprint.is_some_and(is_base64url) || one.answer.len() > 256 {
            return Err(Failure::Invalid(format!("a challenge of {} is none of ACME", one.name)));
        }
        if !places.insert((&one.name, &one.token)) {
            return Err(Failure::Invalid(format!("a challenge of {} has two answers", one.name)));
        }
    }
    Ok(())
}

fn require_at_most(count: usize, what: &str) -> Result<(), Failure> {
    if count <= MAX_CERTIFICATES {
        return Ok(());
    }
    Err(Failure::Invalid(format!("{count} {what} are more than the {MAX_CERTIFICATES} that a node serves")))
}

/// Each guest of the node is in one pool at most: what asks for a pool's name is known by its address. One on another node
/// may be in several, once in each.
fn require_sound_pools(plan: &NodePlan) -> Result<(), Failure> {
    let (mut ids, mut here, mut ips) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for pool in &plan.pools {
        let mut guests = BTreeSet::new();
        if !ids.insert(&pool.id) || pool.members.is_empty() {
            return Err(Failure::Invalid(format!("the pool {} is there twice, or has no members", pool.id)));
        }
        if pool.check.as_ref().is_some_and(|check| !(100..=599).contains(&check.status)) {
            return Err(Failure::Invalid(format!("the check of the pool {} waits for no status of HTTP", pool.id)));
        }
        for member in &pool.members {
            // Several may be on one other node, and have its address.
            let is_alone = member.via.is_some() || ips.insert(member.ip);
            if member.via.is_none() {
                require_guest_address(plan, member.ip)?;
            }
            let is_once = member.via.is_some() || here.insert(&member.guest);
            if !guests.insert(&member.guest) || !is_once || !is_alone {
                return Err(Failure::Invalid(format!(
                    "{} is in a pool twice, or not alone at its address",
                    member.guest
                )));
            }
        }
    }
    for route in &plan.http_routes {
        let Some(pool) = &route.pool else { continue };
        // Names of pools are looked up as they are.
        if route.wildcard {
            return Err(Failure::Invalid(format!("the wildcard *.{} leads to a pool", route.name)));
        }
        if !ids.contains(pool) {
            return Err(Failure::Invalid(format!("the name {} leads to a pool that is not there", route.name)));
        }
    }
    Ok(())
}

/// Who is brought to another node is known there, and nobody is lent whose address is no guest's.
fn require_sound_links(plan: &NodePlan) -> Result<(), Failure> {
    let Some(links) = &plan.links else {
        let elsewhere = plan.pools.iter().flat_map(|pool| &pool.members).find(|member| member.via.is_some());
        return elsewhere.map_or(Ok(()), |member| {
            Err(Failure::Invalid(format!("{} is on another node, and there is no way to it", member.guest)))
        });
    };
    if links.peers.len() > MAX_PEERS {
        return Err(Failure::Invalid(format!("{} nodes are more than {MAX_PEERS}", links.peers.len())));
    }
    let mut guests = BTreeSet::new();
    for one in &links.lent {
        require_guest_address(plan, one.ip)?;
        if !guests.insert(&one.guest) {
            return Err(Failure::Invalid(format!("{} is lent twice", one.guest)));
        }
    }
    require_sound_far(plan, links)
}

/// What stands in for a guest stands in for one, and rules lead nowhere else; what is open is of guests.
fn require_sound_far(plan: &NodePlan, links: &Links) -> Result<(), Failure> {
    let (mut stand_ins, mut guests) = (BTreeSet::new(), BTreeSet::new());
    for way in &links.ways {
        if !is_stand_in(way.stand_in) || !stand_ins.insert(way.stand_in) || !guests.insert(&way.guest) {
            return Err(Failure::Invalid(format!("{} does not stand in for {} alone", way.stand_in, way.guest)));
        }
    }
    for rule in &links.let_out {
        let guests = rule.from.iter().map(|from| from.single().ok_or(from));
        for guest in guests {
            let guest = guest.map_err(|from| Failure::Invalid(format!("{from} is no guest")))?;
            require_guest_address(plan, guest)?;
        }
        if let Some(other) = rule.to.iter().find(|to| !stand_ins.contains(to)) {
            return Err(Failure::Invalid(format!("{other} stands in for no guest")));
        }
        if rule.protocol != Transport::Tcp || rule.ports.last() - rule.ports.first() >= MAX_FAR_PORTS {
            return Err(Failure::Invalid(format!("{}/{} leads to no other node", rule.ports, rule.protocol)));
        }
    }
    let mut opened = BTreeSet::new();
    for one in &links.open {
        require_guest_address(plan, one.ip)?;
        if !opened.insert(&one.guest) || one.to.iter().any(|to| to.ports.is_empty()) || one.to.is_empty() {
            return Err(Failure::Invalid(format!("{} is open twice, or to nobody", one.guest)));
        }
    }
    Ok(())
}

pub(super) fn require_guest_address(plan: &NodePlan, ip: Ipv4Addr) -> Result<(), Failure> {
    if plan.network.takes(ip) {
        return Ok(());
    }
    Err(Failure::Invalid(format!("{ip} is no address for a guest in {}", plan.network)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use corpus_domain::{BalancePolicy, DnsName, GuestNetwork, MacAddress, PoolId, Stickiness, Transport};
    use corpus_protocol::{
        Block, Egress, FirewallRule, GuestPort, HealthCheck, HttpChallenge, HttpRoute, Https, LentGuest, OpenGuest,
        OpenTo, Pool, PoolMember, PublishedPort, ServedCertificate, SshRoute, Way, ZoneServers,
    };
    use proptest::prelude::*;

    pub fn plan() -> NodePlan {
        let (a, b) = (Ipv4Addr::new(10, 5, 0, 10), Ipv4Addr::new(10, 5, 0, 11));
        let ssh =
            |guest: &str, port: u16, ip| SshRoute { guest: guest.parse().unwrap(), port: port.try_into().unwrap(), ip };
        let http = |name: &str, guest: &str, ip| HttpRoute {
            name: name.parse().unwrap(),
            wildcard: false,
            guest: guest.parse().unwrap(),
            ip,
            https: Https::default(),
            pool: None,
        };
        let id = |number: u8| format!("0199d3c0-0000-7000-8000-0000000000{number:02}").parse().unwrap();
        let rule = |number, from: &[&str], to, protocol, ports: &str| FirewallRule {
            id: id(number),
            from: from.iter().map(|one| one.parse().unwrap()).collect(),
            to: vec![to],
            protocol,
            ports: ports.parse().unwrap(),
        };
        let published = |number, protocol, port, to, to_port, from: &str| PublishedPort {
            id: id(number),
            protocol,
            port,
            to,
            to_port,
            from: vec![from.parse().unwrap()],
        };
        let block = |number, from: &str, only: Option<(Transport, &str)>| Block {
            id: id(number),
            from: vec![from.parse().unwrap()],
            only: only.map(|(protocol, ports)| (protocol, ports.parse().unwrap())),
        };
        let port = |guest: &str, ip| GuestPort { guest: guest.parse().unwrap(), ip, mac: MacAddress::for_ip(ip) };
        NodePlan {
            revision: 7,
            bridge: "lxcbr1".into(),
            network: GuestNetwork::DEFAULT,
            ssh_routes: vec![ssh("b.example.org", 40_001, b), ssh("a.example.org", 40_000, a)],
            http_routes: vec![http("www.example.org", "a.example.org", a), http("b.example.org", "b.example.org", b)],
            firewall: vec![
                rule(1, &["192.0.2.1", "192.0.2.0/28"], a, Transport::Tcp, "5432"),
                rule(2, &["10.5.0.11"], a, Transport::Tcp, "3306"),
                rule(3, &["10.5.0.11", "198.51.100.0/24"], a, Transport::Udp, "5000-5010"),
                rule(4, &["0.0.0.0/0", "192.0.2.1"], b, Transport::Tcp, "8080"),
            ],
            published: vec![
                published(5, Transport::Tcp, 30_001, a, 80, "0.0.0.0/0"),
                published(6, Transport::Udp, 30_001, b, 53, "192.0.2.0/24"),
            ],
            blocks: vec![block(7, "203.0.113.0/24", None), block(8, "192.0.2.9", Some((Transport::Tcp, "22")))],
            blocked: ["203.0.113.7", "2001:db8:1:2::7"].map(|one| one.parse().unwrap()).into(),
            ports: vec![port("a.example.org", a), port("b.example.org", b)],
            isolated: vec![],
            egress: Egress {
                denied: vec![Ipv4Addr::new(198, 51, 100, 7), Ipv4Addr::new(192, 0, 2, 9)],
                sites: vec![Ipv4Addr::new(198, 51, 100, 7)],
                allowed: ["10.1.2.3/32:5432", "10.9.0.0/24", "10.1.2.3:53/udp"]
                    .map(|rule| rule.parse().unwrap())
                    .into(),
            },
            zones: vec![ZoneServers {
                zone: "lab.corpus.test".parse().unwrap(),
                servers: vec!["192.0.2.53:5353".parse().unwrap()],
            }],
            certificates: vec![certificate(1, &["www.example.org", "*.b.example.org"])],
            challenges: vec![challenge("x.example.org", "tok_-1", "tok_-1.thumb")],
            pools: vec![],
            links: None,
            mail: None,
        }
    }

    pub fn certificate(number: u128, names: &[&str]) -> ServedCertificate {
        ServedCertificate {
            id: format!("00000000-0000-7000-8000-{number:012}").parse().unwrap(),
            digest: "0a".repeat(32),
            names: names.iter().map(|name| name.parse().unwrap()).collect(),
        }
    }

    fn challenge(name: &str, token: &str, answer: &str) -> HttpChallenge {
        HttpChallenge { name: name.parse().unwrap(), token: token.into(), answer: answer.into() }
    }

    /// The same with a name that both guests share.
    pub fn balanced() -> NodePlan {
        let mut plan = plan();
        let id: PoolId = "0199d3c0-0000-7000-8000-000000000001-prod".parse().unwrap();
        let host: DnsName = "shop.example.org".parse().unwrap();
        let first = &plan.ports[0];
        plan.http_routes.push(HttpRoute {
            name: host.clone(),
            wildcard: false,
            guest: first.guest.clone(),
            ip: first.ip,
            https: Https::default(),
            pool: Some(id.clone()),
        });
        let member = |port: &GuestPort| PoolMember { guest: port.guest.clone(), ip: port.ip, active: true, via: None };
        plan.pools.push(Pool {
            id,
            members: plan.ports.iter().rev().map(member).collect(),
            policy: BalancePolicy::RoundRobin,
            stickiness: Stickiness::None,
            check: Some(HealthCheck { host, path: "/health".parse().unwrap(), status: 200 }),
        });
        plan
    }

    /// The same with a third guest on another node, to which one of these two is lent.
    pub fn linked() -> NodePlan {
        let mut plan = balanced();
        let (other, node) = (Ipv4Addr::new(192, 0, 2, 8), "0199d3c0-0000-7000-8000-0000000000aa".parse().unwrap());
        let guest = "c.example.org".parse().unwrap();
        plan.pools[0].members.push(PoolMember { guest, ip: other, active: true, via: Some(node) });
        let lent = &plan.ports[0];
        plan.links = Some(Links {
            certificate: certificate(9, &["0199d3c0-0000-7000-8000-0000000000bb.node.internal"]),
            peers: vec![other],
            lent: vec![LentGuest { guest: lent.guest.clone(), ip: lent.ip, to: vec![node] }],
            ways: vec![],
            let_out: vec![],
            open: vec![],
        });
        plan
    }

    /// The same with a guest on the other node that the first one may reach, and by which the second one may be.
    pub fn far() -> NodePlan {
        let mut plan = linked();
        let [first, second] = [&plan.ports[0], &plan.ports[1]].map(|port| (port.guest.clone(), port.ip));
        let links = plan.links.as_mut().unwrap();
        let (node, node_ip, stand_in) = (links.lent[0].to[0], links.peers[0], Ipv4Addr::new(198, 18, 0, 3));
        links.ways.push(Way { guest: "d.example.org".parse().unwrap(), stand_in, node, node_ip });
        links.let_out.push(FirewallRule {
            id: "0199d3c0-0000-7000-8000-000000000021".parse().unwrap(),
            from: vec![first.1.into()],
            to: vec![stand_in],
            protocol: Transport::Tcp,
            ports: "5432".parse().unwrap(),
        });
        let to = vec![OpenTo { node, ports: vec![8080, 8081] }];
        links.open.push(OpenGuest { guest: second.0, ip: second.1, to });
        plan
    }

    #[test]
    fn what_stands_in_for_a_guest_is_no_address_of_anything_else() {
        require_sound(&far()).unwrap();
        let refuse = |change: &dyn Fn(&mut Links)| {
            let mut plan = far();
            change(plan.links.as_mut().unwrap());
            require_sound(&plan).unwrap_err().to_string()
        };
        let outside = Ipv4Addr::new(192, 0, 2, 7);
        assert!(refuse(&|links| links.ways[0].stand_in = outside).contains("does not stand in"));
        assert!(refuse(&|links| links.ways.push(links.ways[0].clone())).contains("alone"));
        assert!(refuse(&|links| links.let_out[0].to = vec![outside]).contains("stands in for no guest"));
        assert!(refuse(&|links| links.let_out[0].from = vec![outside.into()]).contains("no address for a guest"));
        assert!(refuse(&|links| links.let_out[0].from = vec![Ipv4Network::ANY]).contains("is no guest"));
        assert!(refuse(&|links| links.let_out[0].protocol = Transport::Udp).contains("no other node"));
        assert!(refuse(&|links| links.let_out[0].ports = "1-17".parse().unwrap()).contains("no other node"));
        assert!(refuse(&|links| links.open[0].ip = outside).contains("no address for a guest"));
        assert!(refuse(&|links| links.open[0].to.clear()).contains("to nobody"));
    }

    #[test]
    fn who_is_on_another_node_is_brought_there() {
        require_sound(&linked()).unwrap();
        let refuse = |change: &dyn Fn(&mut NodePlan)| {
            let mut plan = linked();
            change(&mut plan);
            require_sound(&plan).unwrap_err().to_string()
        };
        assert!(refuse(&|plan| plan.links = None).contains("no way to it"));
        assert!(refuse(&|plan| plan.links.as_mut().unwrap().lent[0].ip = Ipv4Addr::LOCALHOST).contains("127.0.0.1"));
        let twice = |plan: &mut NodePlan| {
            let links = plan.links.as_mut().unwrap();
            links.lent.push(links.lent[0].clone());
        };
        assert!(refuse(&twice).contains("lent twice"));
        assert!(
            refuse(&|plan| plan.certificates.push(plan.links.as_ref().unwrap().certificate.clone())).contains("twice")
        );
        let pools = |change: &dyn Fn(&mut Pool)| {
            let mut plan = linked();
            let mut other = plan.pools[0].clone();
            other.id = "0199d3c0-0000-7000-8000-000000000002-guest".parse().unwrap();
            other.members.retain(|member| member.via.is_some());
            change(&mut other);
            plan.pools.push(other);
            require_sound(&plan)
        };
        pools(&|_| ()).unwrap();
        let again = |pool: &mut Pool| pool.members.push(pool.members[0].clone());
        assert!(pools(&again).unwrap_err().to_string().contains("in a pool twice"));
        let many = |plan: &mut NodePlan| plan.links.as_mut().unwrap().peers = vec![Ipv4Addr::LOCALHOST; 1001];
        assert!(refuse(&many).contains("1001 nodes"));
    }

    #[test]
    fn a_pool_is_whole_and_its_members_are_in_no_other() {
        require_sound(&balanced()).unwrap();
        let refuse = |change: &dyn Fn(&mut NodePlan)| {
            let mut plan = balanced();
            change(&mut plan);
            require_sound(&plan).unwrap_err().to_string()
        };
        assert!(refuse(&|plan| plan.pools.clear()).contains("shop.example.org leads to a pool"));
        let wild = |plan: &mut NodePlan| plan.http_routes.iter_mut().for_each(|route| route.wildcard = true);
        assert!(refuse(&wild).contains("the wildcard *.shop.example.org leads to a pool"));
        assert!(refuse(&|plan| plan.pools[0].members.clear()).contains("no members"));
        assert!(refuse(&|plan| plan.pools.push(plan.pools[0].clone())).contains("there twice"));
        assert!(refuse(&|plan| plan.pools[0].members[0].ip = plan.pools[0].members[1].ip).contains("not alone"));
        assert!(refuse(&|plan| plan.pools[0].members[0].ip = Ipv4Addr::LOCALHOST).contains("127.0.0.1"));
        assert!(refuse(&|plan| plan.pools[0].check.as_mut().unwrap().status = 7).contains("no status"));
        let twice = |plan: &mut NodePlan| {
            let mut other = plan.pools[0].clone();
            other.id = "0199d3c0-0000-7000-8000-000000000002-prod".parse().unwrap();
            plan.pools.push(other);
        };
        assert!(refuse(&twice).contains("in a pool twice"));
    }

    #[test]
    fn contradictions_are_named() {
        require_sound(&plan()).unwrap();
        let refuse = |change: &dyn Fn(&mut NodePlan)| {
            let mut plan = plan();
            change(&mut plan);
            require_sound(&plan).unwrap_err().to_string()
        };
        assert!(refuse(&|plan| plan.ssh_routes[0].port = plan.ssh_routes[1].port).contains("40000"));
        assert!(refuse(&|plan| plan.http_routes[0].name = "b.example.org".parse().unwrap()).contains("two guests"));
        assert!(refuse(&|plan| plan.firewall[0].to = vec![Ipv4Addr::LOCALHOST]).contains("127.0.0.1"));
        assert!(
            refuse(&|plan| plan.firewall[0].from = vec!["10.5.0.0/24".parse().unwrap()]).contains("name the guests")
        );
        assert!(refuse(&|plan| plan.firewall[0].from = vec!["10.5.0.1".parse().unwrap()]).contains("10.5.0.1"));
        assert!(refuse(&|plan| plan.published[0].to = plan.network.gateway()).contains("10.5.0.1"));
        assert!(refuse(&|plan| plan.published[1].protocol = Transport::Tcp).contains("two guests"));
        for port in [22, 443, 40_000, 50_000] {
            assert!(refuse(&|plan| plan.published[0].port = port).contains("not for a guest"));
        }
        assert!(refuse(&|plan| plan.ports[0].ip = plan.network.gateway()).contains("10.5.0.1"));
        assert!(refuse(&|plan| plan.ports[0].mac = plan.ports[1].mac).contains("00:16:3e:05:00:0b"));
        assert!(refuse(&|plan| plan.bridge = "br0\"; drop".into()).contains("bridge"));
        assert!(refuse(&|plan| plan.certificates.push(plan.certificates[0].clone())).contains("twice"));
        assert!(refuse(&|plan| plan.certificates[0].names.clear()).contains("0 names"));
        let many = |plan: &mut NodePlan| {
            plan.certificates = (0..5001).map(|number| certificate(number, &["a.b"])).collect();
        };
        assert!(refuse(&many).contains("5001 certificates"));
        for digest in ["", "0a", &"0A".repeat(32), &"0g".repeat(32), &format!("{}\n", "0a".repeat(31))] {
            assert!(refuse(&|plan| plan.certificates[0].digest = digest.into()).contains("digest"));
        }
        let twice = challenge("x.example.org", "tok_-1", "tok_-1.other");
        assert!(refuse(&|plan| plan.challenges.push(twice.clone())).contains("two answers"));
    }

    #[test]
    fn a_challenge_says_nothing_but_its_token_and_a_thumbprint() {
        let long = "a".repeat(129);
        for (token, answer) in [
            ("", ".x"),
            ("t", "t"),
            ("t", "t."),
            ("t", "u.x"),
            ("t", "t.x.y"),
            ("t", "t.x y"),
            ("t", "t.x\ny z"),
            ("t", "t.%[env(HOME)]"),
            ("a/b", "a/b.x"),
            ("a b", "a b.x"),
            ("t.u", "t.u.x"),
            ("t", "t.é"),
            (&long, &format!("{long}.x")),
            ("t", &format!("t.{long}")),
        ] {
            let plan = NodePlan { challenges: vec![challenge("x.example.org", token, answer)], ..plan() };
            assert!(require_sound(&plan).is_err(), "{token:?} {answer:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bridge_name_leaves_its_word(name in ".{0,20}") {
            if require_interface_name(&name).is_ok() {
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
            }
        }
    }
}
