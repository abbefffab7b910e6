//! By what names a guest finds the guests that it may reach: those that rules let it in to, here or on another node.
//!
//! `db.example.org.guest.internal` is the guest itself where it is on the same node, and the address that stands in for it
//! where it is on another one; so what a guest is told to use stays when the other one is made anew elsewhere. Each guest has a
//! view of its own in the resolver, known by its address, which it can't forge (see `identity`): which guests there are, and who
//! reaches whom, is nobody else's to ask. These names never leave the node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::Ipv4Addr;

use corpus_domain::{GUEST_ZONE, GuestName};
use corpus_protocol::NodePlan;

use super::far;

/// For how long an answer may be kept, in seconds.
const TTL_S: u32 = 10;

/// What the resolver says of these names: the lines of its server, and the views.
#[derive(Debug)]
pub struct Views {
    pub server: String,
    pub views: String,
}

/// The views of a plan.
pub fn views(plan: &NodePlan) -> Views {
    let zone = format!("    local-zone: \"{GUEST_ZONE}.\" static\n");
    let mut said = Views { server: zone.clone(), views: String::new() };
    for (guest, reached) in reached(plan) {
        let _ = writeln!(said.server, "    access-control-view: {guest}/32 \"{guest}\"");
        let _ = write!(said.views, "view:\n    name: \"{guest}\"\n    view-first: yes\n{zone}");
        for (name, ip) in reached {
            let _ = writeln!(said.views, "    local-data: \"{name}.{GUEST_ZONE}. {TTL_S} IN A {ip}\"");
        }
    }
    said
}

/// Whom each guest reaches, and at which address.
fn reached(plan: &NodePlan) -> BTreeMap<Ipv4Addr, BTreeSet<(&GuestName, Ipv4Addr)>> {
    let here = plan.ports.iter().map(|port| (port.ip, &port.guest));
    let there = far::of(plan).into_iter().flat_map(|links| &links.ways).map(|way| (way.stand_in, &way.guest));
    let names: BTreeMap<Ipv4Addr, &GuestName> = here.chain(there).collect();
    let mut reached: BTreeMap<Ipv4Addr, BTreeSet<_>> = BTreeMap::new();
    for rule in plan.firewall.iter().chain(far::let_out(plan)) {
        let guests = rule.from.iter().filter_map(|from| from.single()).filter(|from| plan.network.takes(*from));
        for guest in guests {
            let others = rule.to.iter().filter(|to| **to != guest);
            let found = others.filter_map(|to| Some((*names.get(to)?, *to)));
            reached.entry(guest).or_default().extend(found);
        }
    }
    reached.retain(|_, names| !names.is_empty());
    reached
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{far, plan};
    use super::*;

    #[test]
    fn a_guest_is_told_of_those_that_it_may_reach() {
        let near = views(&plan());
        assert_eq!(
            near.server,
            "    local-zone: \"guest.internal.\" static\n    access-control-view: 10.5.0.11/32 \"10.5.0.11\"\n"
        );
        assert!(near.views.contains("    local-data: \"a.example.org.guest.internal. 10 IN A 10.5.0.10\"\n"));
        assert!(!near.views.contains("b.example.org"), "{}", near.views);
        let both = views(&far()).views;
        assert!(both.contains("    local-data: \"d.example.org.guest.internal. 10 IN A 198.18.0.3\"\n"), "{both}");
        assert_eq!(both.matches("d.example.org").count(), 1, "nobody else is told of it");
    }
}
