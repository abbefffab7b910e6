//! What a plan must be before anything is rendered from it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use corpus_protocol::NodePlan;

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
        if names.insert(&route.name, route.ip).is_some_and(|other| other != route.ip) {
            return Err(Failure::Invalid(format!("the name {} leads to two guests", route.name)));
        }
    }
    let (mut ips, mut macs) = (BTreeSet::new(), BTreeSet::new());
    for port in &plan.ports {
        require_guest_address(plan, port.ip)?;
        if !ips.insert(port.ip) || !macs.insert(port.mac.to_string()) {
            return Err(Failure::Invalid(format!("two guests have the address {} or the MAC {}", port.ip, port.mac)));
        }
    }
    plan.firewall.iter().try_for_each(|rule| require_guest_address(plan, rule.to))
}

fn require_guest_address(plan: &NodePlan, ip: Ipv4Addr) -> Result<(), Failure> {
    if plan.network.takes(ip) {
        return Ok(());
    }
    Err(Failure::Invalid(format!("{ip} is no address for a guest in {}", plan.network)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use corpus_domain::{GuestNetwork, MacAddress};
    use corpus_protocol::{Egress, FirewallRule, GuestPort, HttpRoute, SshRoute, ZoneServers};
    use proptest::prelude::*;

    pub fn plan() -> NodePlan {
        let (a, b) = (Ipv4Addr::new(10, 5, 0, 10), Ipv4Addr::new(10, 5, 0, 11));
        let ssh =
            |guest: &str, port: u16, ip| SshRoute { guest: guest.parse().unwrap(), port: port.try_into().unwrap(), ip };
        let http =
            |name: &str, guest: &str, ip| HttpRoute { name: name.parse().unwrap(), guest: guest.parse().unwrap(), ip };
        let port = |guest: &str, ip| GuestPort { guest: guest.parse().unwrap(), ip, mac: MacAddress::for_ip(ip) };
        NodePlan {
            revision: 7,
            bridge: "lxcbr1".into(),
            network: GuestNetwork::DEFAULT,
            ssh_routes: vec![ssh("b.example.org", 40_001, b), ssh("a.example.org", 40_000, a)],
            http_routes: vec![http("www.example.org", "a.example.org", a), http("b.example.org", "b.example.org", b)],
            firewall: vec![
                FirewallRule { from: Ipv4Addr::new(192, 0, 2, 1), to: a, port: 5432 },
                FirewallRule { from: b, to: a, port: 3306 },
            ],
            ports: vec![port("a.example.org", a), port("b.example.org", b)],
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
        }
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
        assert!(refuse(&|plan| plan.firewall[0].to = Ipv4Addr::LOCALHOST).contains("127.0.0.1"));
        assert!(refuse(&|plan| plan.ports[0].ip = plan.network.gateway()).contains("10.5.0.1"));
        assert!(refuse(&|plan| plan.ports[0].mac = plan.ports[1].mac).contains("00:16:3e:05:00:0b"));
        assert!(refuse(&|plan| plan.bridge = "br0\"; drop".into()).contains("bridge"));
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
