//! Where guests may go: the internet, and not what is near.
//!
//! Private and other special networks are closed, also where cloud providers keep their metadata;
//! so are the addresses of what Corpus itself is made of, wherever they are. Another node is a
//! part of the world by its sites only. What ops list is open all the same. A reply passes
//! always; what a guest sends of its own accord is looked at packet by packet, so what is
//! closed later ends connections that are there.
//!
//! One guest can't use up what all share: its connections are counted before they are tracked.

use std::net::Ipv4Addr;

use corpus_domain::{EgressRule, Transport};
use corpus_protocol::Egress;

/// What is never the internet: RFC 1918, RFC 6598, RFC 6890, and Azure's own address.
const SPECIAL: [&str; 12] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
];

/// Connections of one guest that may be tracked at once. The smallest table of a node that has
/// the memory for guests holds sixteen times as many.
const TRACKED: u32 = 4096;
/// New ones a second, and at once.
const NEW: (u32, u32) = (500, 2000);

/// The rules for what a guest sends through the node.
pub fn leaving(egress: &Egress) -> String {
    let mut rules: Vec<String> = Vec::new();
    let mut allowed = egress.allowed.clone();
    allowed.sort_unstable();
    allowed.dedup();
    rules.extend(allowed.iter().map(let_out));
    rules.extend(listed(&egress.sites).map(|to| format!("ip daddr {to} tcp dport {{ 80, 443 }} accept")));
    rules.extend(listed(&egress.denied).map(|to| format!("ip daddr {to} {REFUSE}")));
    rules.push(format!("ip daddr {{ {} }} {REFUSE}", SPECIAL.join(", ")));
    rules.iter().fold(String::new(), |text, rule| text + "\t\t" + rule + "\n")
}

/// What keeps guests that are only tried from going anywhere through the node: what came from outside of itself was answered
/// before.
pub fn isolated(guests: &[Ipv4Addr]) -> String {
    listed(guests).map(|from| format!("\t\tip saddr {from} drop\n")).unwrap_or_default()
}

/// The same for the node itself: they answer it, and ask nothing of it, not even for names.
pub fn isolated_here(guests: &[Ipv4Addr]) -> String {
    let rule = |from| {
        format!("\t\tip saddr {from} ct state established ct direction reply accept\n\t\tip saddr {from} drop\n")
    };
    listed(guests).map(rule).unwrap_or_default()
}

const REFUSE: &str = "reject with icmp type admin-prohibited";

fn listed(addresses: &[Ipv4Addr]) -> Option<String> {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let texts: Vec<String> = sorted.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| format!("{{ {} }}", texts.join(", ")))
}

fn let_out(rule: &EgressRule) -> String {
    match rule.port {
        Some((Transport::Tcp, port)) => format!("ip daddr {} tcp dport {port} accept", rule.to),
        Some((Transport::Udp, port)) => format!("ip daddr {} udp dport {port} accept", rule.to),
        None => format!("ip daddr {} accept", rule.to),
    }
}

/// The sets and the chain that bound what of the node's connection tracking is a guest's.
pub fn bounds(bridge: &str) -> String {
    let (rate, burst) = NEW;
    format!(
        "\
	set connections {{
		type ipv4_addr
		size 65535
		flags dynamic
	}}
	set opening {{
		type ipv4_addr
		size 65535
		flags dynamic,timeout
		timeout 10s
	}}
	chain bounds {{
		type filter hook prerouting priority mangle; policy accept;
		iifname \"{bridge}\" ct state invalid drop
		iifname \"{bridge}\" ct state new update @opening {{ ip saddr limit rate over {rate}/second burst {burst} packets }} drop
		iifname \"{bridge}\" ct state new add @connections {{ ip saddr ct count over {TRACKED} }} drop
	}}
"
    )
}
