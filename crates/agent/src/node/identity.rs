//! Who may send what on which port of the bridge: a guest is its port, its MAC and its address.
//!
//! A guest's root owns its end of the cable, and may give itself any address and any MAC. So nothing
//! passes the host's end but IPv4 from the guest's own address and MAC, and ARP that speaks for
//! them; the bridge learns nothing else either, since this comes before it learns. No other kind
//! of frame passes: no IPv6, VLAN, STP or LLDP. The other way only what is for the guest is
//! delivered: a frame that the bridge sends to all ports, because it does not know where its
//! receiver is, is no neighbour's to read. Guests have no way to each other at all; what rules
//! allow is let through without connection tracking, which not every kernel has for bridges. A reply
//! of UDP is known by what was asked: a guest that may be asked can't ask back on its own.
//!
//! The node asks nobody where a guest is: its neighbour entries are fixed, as long as the bridge lives.

use std::fmt::Write;
use std::net::Ipv4Addr;

use corpus_domain::{Ipv4Network, Transport};
use corpus_protocol::{FirewallRule, GuestPort, NodePlan};

use super::rules::{self, Part, addresses, counter, refuse, sets};
use crate::drivers::interface;

/// The host's ends of the guests' cables begin so; see the drivers.
const CABLES: &str = "cg*";

/// Questions of UDP that a rule remembers, to let their answers back, and for how many seconds.
const QUESTIONS: (u32, u32) = (4096, 120);

/// The table, with an empty set of ports. One of before is gone by now.
pub fn table(near: &[Part<'_>]) -> String {
    let between: String = near.iter().map(let_between).collect();
    let asked: String = near.iter().filter(|part| part.rule.protocol == Transport::Udp).map(asked).collect();
    format!(
        "\
table bridge corpus {{
{counters}	set ports {{
		type ifname . ether_addr . ipv4_addr
	}}
	set asking {{
		type ifname
		size 65535
		flags dynamic,timeout
		timeout 10s
	}}
{drops}{asked}	chain prerouting {{
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
{between}{refuse}	}}
}}
",
        counters = rules::counters(near.iter().map(|part| part.rule.id)),
        drops = sets(),
        refuse = refuse(),
    )
}

/// What was asked by UDP: who, from which port, whom, which port.
fn asked(part: &Part<'_>) -> String {
    let (size, timeout) = QUESTIONS;
    format!(
        "\tset {} {{
		type ipv4_addr . inet_service . ipv4_addr . inet_service
		size {size}
		flags dynamic,timeout
		timeout {timeout}s
	}}
",
        asked_set(part.rule)
    )
}

fn asked_set(rule: &FirewallRule) -> String {
    format!("a{}", rule.id.0.simple())
}

/// Connections and their replies (never one opened from the allowed port), and the ARP of the two sides.
fn let_between(part: &Part<'_>) -> String {
    let FirewallRule { id, to, protocol, ports, .. } = part.rule;
    let from: Vec<Ipv4Addr> = part.from.iter().filter_map(|one: &Ipv4Network| one.single()).collect();
    let (askers, asked) = (addresses(&from), addresses(to));
    let count = format!("counter name \"{}\"", counter(*id));
    let through = format!("oifname . ip daddr {} ip saddr {askers} {protocol} dport {ports}", at_ports(to));
    let back = format!("oifname . ip daddr {} ip saddr {asked} {protocol} sport {ports}", at_ports(&from));
    let passes = match protocol {
        Transport::Tcp => {
            format!("\t\t{through} {count} accept\n\t\t{back} tcp flags & (syn | ack) != syn accept\n")
        }
        Transport::Udp => {
            let set = asked_set(part.rule);
            format!(
                "\t\t{through} update @{set} {{ ip saddr . udp sport . ip daddr . udp dport }} {count} accept\n\
                 \t\t{back} ip daddr . udp dport . ip saddr . udp sport @{set} accept\n"
            )
        }
    };
    let arp =
        |of: &str, at: &[Ipv4Addr]| format!("\t\toifname . arp daddr ip {} arp saddr ip {of} accept\n", at_ports(at));
    passes + &arp(&askers, to) + &arp(&asked, &from)
}

/// The guests, each at its own port of the bridge.
fn at_ports(guests: &[Ipv4Addr]) -> String {
    let mut sorted = guests.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let texts: Vec<String> = sorted.iter().map(|ip| format!("\"{}\" . {ip}", interface(*ip))).collect();
    format!("{{ {} }}", texts.join(", "))
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
