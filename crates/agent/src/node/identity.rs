//! Who may send what on which port of the bridge: a guest is its port, its MAC and its address.
//!
//! A guest's root owns its end of the cable, and may give itself any address and any MAC. So nothing
//! passes the host's end but IPv4 from the guest's own address and MAC, and ARP that speaks for
//! them; the bridge learns nothing else either, since this comes before it learns. No other kind
//! of frame passes: no IPv6, VLAN, STP or LLDP. The other way only what is for the guest is
//! delivered: a frame that the bridge sends to all ports, because it does not know where its
//! receiver is, is no neighbour's to read. Guests have no way to each other at all; the few
//! allowed pairs are let through without connection tracking, which not every kernel has for bridges.
//!
//! The node asks nobody where a guest is: its neighbour entries are fixed, as long as the bridge lives.

use std::fmt::Write;
use std::net::Ipv4Addr;

use corpus_protocol::{FirewallRule, GuestPort, NodePlan};

use crate::drivers::interface;

/// The host's ends of the guests' cables begin so; see the drivers.
const CABLES: &str = "cg*";

/// The table, with an empty set of ports.
pub fn table(between: &[&FirewallRule]) -> String {
    let between: String = between.iter().map(|rule| let_between(rule)).collect();
    format!(
        "\
table bridge corpus
delete table bridge corpus
table bridge corpus {{
	set ports {{
		type ifname . ether_addr . ipv4_addr
	}}
	set asking {{
		type ifname
		size 65535
		flags dynamic,timeout
		timeout 10s
	}}
	chain prerouting {{
		type filter hook prerouting priority -310; policy accept;
		iifname \"{CABLES}\" jump from_port
	}}
	chain from_port {{
		ether type ip iifname . ether saddr . ip saddr @ports jump from_guest
		ether type arp iifname . ether saddr . arp saddr ip @ports iifname . arp saddr ether . arp saddr ip @ports update @asking {{ iifname limit rate 25/second burst 50 packets }} accept
		drop
	}}
	chain from_guest {{
		udp sport {{ 67, 68 }} drop
		ip daddr {{ 224.0.0.0/4, 255.255.255.255 }} drop
		accept
	}}
	chain input {{
		type filter hook input priority -310; policy accept;
		iifname \"{CABLES}\" ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 drop
	}}
	chain forward {{
		type filter hook forward priority -310; policy accept;
		iifname \"{CABLES}\" oifname \"{CABLES}\" jump between_guests
		oifname \"{CABLES}\" jump to_port
	}}
	chain output {{
		type filter hook output priority -310; policy accept;
		oifname \"{CABLES}\" jump to_port
	}}
	chain to_port {{
		ether type ip oifname . ether daddr . ip daddr @ports accept
		ether type arp oifname . ether daddr . arp daddr ip @ports accept
		drop
	}}
	chain between_guests {{
{between}		drop
	}}
}}
"
    )
}

/// A connection and its replies (never one opened from the allowed port), and the ARP of the two.
fn let_between(rule: &FirewallRule) -> String {
    let FirewallRule { from, to, port } = rule;
    let arp = |a: &Ipv4Addr, b: &Ipv4Addr| {
        format!("\t\toifname \"{}\" arp saddr ip {a} arp daddr ip {b} accept\n", interface(*b))
    };
    format!(
        "\t\tip saddr {from} ip daddr {to} tcp dport {port} accept\n\
         \t\tip saddr {to} ip daddr {from} tcp sport {port} tcp flags & (syn | ack) != syn accept\n{}{}",
        arp(from, to),
        arp(to, from)
    )
}

/// A port as nft writes it.
pub fn element(port: &GuestPort) -> String {
    format!("\"{}\" . {} . {}", interface(port.ip), port.mac, port.ip)
}

/// The lines of `ports.nft`: the set holds these and no others.
pub fn ports(plan: &NodePlan) -> String {
    let mut text = "flush set bridge corpus ports\n".to_owned();
    for port in sorted(plan) {
        let _ = writeln!(text, "add element bridge corpus ports {{ {} }}", element(port));
    }
    text
}

/// The lines of `neighbours`, for `ip -batch`.
pub fn neighbours(plan: &NodePlan) -> String {
    sorted(plan).into_iter().fold(String::new(), |mut text, port| {
        let _ = writeln!(text, "neigh replace {} lladdr {} dev {} nud permanent", port.ip, port.mac, plan.bridge);
        text
    })
}

fn sorted(plan: &NodePlan) -> Vec<&GuestPort> {
    let mut ports: Vec<&GuestPort> = plan.ports.iter().collect();
    ports.sort_by_key(|port| port.ip);
    ports
}
