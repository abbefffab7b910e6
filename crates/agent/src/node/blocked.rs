//! Addresses that are kept from the node and all its guests for a while: two sets of the firewall, which are replaced
//! without touching its rules.
//!
//! Whoever names them to the controller, some are never kept out: the one from which our own line comes, what Corpus
//! is made of, the node itself, its guests, and what is needed to be in a network at all. They are left out here, and
//! everything else of the plan comes into force: an address must not be able to hold up the plans of a node.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

use corpus_domain::{Ipv4Network, SourceAddress};
use corpus_protocol::{MAX_BLOCKED, NodePlan};

use super::check::lines_differ;
use super::own_line;
use crate::facts::addresses;
use crate::failure::Failure;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

/// The sets, and the chain that everything from outside passes first.
pub fn chain(bridge: &str) -> String {
    format!(
        "\tset blocked4 {{
		type ipv4_addr
	}}
	set blocked6 {{
		type ipv6_addr
		flags interval
	}}
	chain blocked {{
		type filter hook prerouting priority -160; policy accept;
		iifname {{ \"{bridge}\", \"lo\" }} accept
		ct direction reply accept
		ip saddr @blocked4 drop
		ip6 saddr @blocked6 drop
	}}
"
    )
}

/// The text for `nft -f` that fills the sets.
pub fn file(host: &Host, plan: &NodePlan) -> String {
    let mut text = "flush set inet corpus blocked4\nflush set inet corpus blocked6\n".to_owned();
    for source in kept_out(host, plan) {
        let set = if matches!(source, SourceAddress::V4(_)) { "blocked4" } else { "blocked6" };
        let _ = writeln!(text, "add element inet corpus {set} {{ {source} }}");
    }
    text
}

/// The sets hold what the file says.
pub fn load(task: &Task<'_>) -> Result<(), Failure> {
    Argv::new("nft").arg("-f").arg(task.host.configuration().join("blocked.nft")).run(task).map(drop)
}

/// The addresses of the plan that are kept out.
pub fn kept_out(host: &Host, plan: &NodePlan) -> BTreeSet<SourceAddress> {
    if plan.blocked.is_empty() {
        return BTreeSet::new();
    }
    let mut ours = addresses(host);
    ours.extend(own_line::client());
    ours.extend(plan.egress.denied.iter().chain(&plan.egress.sites).copied().map(IpAddr::V4));
    let given = plan.blocked.iter().take(MAX_BLOCKED).copied();
    given.filter(|one| is_somewhere(*one) && !is_guest(plan, *one) && !ours.iter().any(|own| one.holds(*own))).collect()
}

/// Tells how many of the plan's addresses are not kept out.
pub fn tell_left_out(task: &Task<'_>, plan: &NodePlan) {
    let left_out = plan.blocked.len().saturating_sub(kept_out(task.host, plan).len());
    if left_out > 0 {
        task.note(format!("{left_out} blocked addresses are let in: they are of Corpus itself, or of this node"));
    }
}

/// Loopback, and what neighbours of one link need to find each other, is nowhere in particular.
fn is_somewhere(source: SourceAddress) -> bool {
    match source {
        SourceAddress::V4(address) => {
            let nowhere = address.is_loopback() || address.is_unspecified() || address.is_link_local();
            !(nowhere || address.is_multicast() || address.is_broadcast())
        }
        SourceAddress::V6(first) => {
            first != Ipv6Addr::UNSPECIFIED && !first.is_multicast() && !first.is_unicast_link_local()
        }
    }
}

fn is_guest(plan: &NodePlan, source: SourceAddress) -> bool {
    let own = Ipv4Network::new(plan.network.network(), plan.network.prefix());
    matches!(source, SourceAddress::V4(address) if own.holds(address.into()))
}

/// What of the kernel's sets is not as planned, in a sentence.
pub fn difference(host: &Host, plan: &NodePlan, found: &BTreeSet<String>) -> Option<String> {
    let planned = kept_out(host, plan).iter().map(ToString::to_string).collect();
    lines_differ(&planned, found).map(|text| format!("the list of blocked addresses differs: it {text}"))
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;
    use crate::files;

    fn of(texts: &[&str]) -> Vec<SourceAddress> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_ours_is_never_kept_out() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let own = "fd00000000000001000000000000000a 02 40 00 80 eth0\n";
        files::write(&host.path("/proc/net/if_inet6"), own, 0o644).unwrap();
        let ours = [
            "127.0.0.1",
            "0.0.0.0",
            "169.254.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "fe80::1",
            "ff02::1",
            // Of the guests' network, the gateway too.
            "10.5.0.1",
            "10.5.0.10",
            "10.5.255.254",
            // What Corpus is made of, other nodes.
            "198.51.100.7",
            "192.0.2.9",
            // A neighbour of the node's own address.
            "fd00:0:0:1::b",
        ];
        let blocked = of(&[&ours[..], &["203.0.113.7", "2001:db8:1:2::7", "2001:db8:1:2::8"]].concat());
        let plan = NodePlan { blocked, ..plan() };
        assert_eq!(kept_out(&host, &plan), of(&["203.0.113.7", "2001:db8:1:2::"]).into_iter().collect());
        insta::assert_snapshot!(file(&host, &plan), @r"
        flush set inet corpus blocked4
        flush set inet corpus blocked6
        add element inet corpus blocked4 { 203.0.113.7 }
        add element inet corpus blocked6 { 2001:db8:1:2::/64 }
        ");
    }

    #[test]
    fn no_plan_makes_the_list_longer_than_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let many = (0..5_000_u32).map(|number| SourceAddress::V4(std::net::Ipv4Addr::from_bits(0xcb00_7100 + number)));
        let plan = NodePlan { blocked: many.collect(), ..plan() };
        assert_eq!(kept_out(&Host::below(folder.path()), &plan).len(), MAX_BLOCKED);
    }

    #[test]
    fn what_differs_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let plan = NodePlan { blocked: of(&["203.0.113.7"]), ..plan() };
        assert_eq!(difference(&host, &plan, &["203.0.113.7".to_owned()].into()), None);
        let told = difference(&host, &plan, &["203.0.113.8".to_owned()].into()).unwrap();
        assert_eq!(told, "the list of blocked addresses differs: it lacks 203.0.113.7, and it has besides 203.0.113.8");
    }
}
