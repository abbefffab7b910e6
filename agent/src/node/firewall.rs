//! The firewall of the guests, in tables of its own that are replaced in one transaction.
//!
//! Towards guests everything is dropped but replies and what the plan lets through; the proxy's
//! connections come from the node itself and don't pass here. From guests everything may leave
//! the node, behind its address; to the node itself only ping, replies to the proxy, and what the
//! world may ask of the proxy get through: a guest checks its own site on the way that the world takes. Guests don't reach each other: frames between ports of our bridge are dropped in the
//! bridge's own table, also those of ARP, so no guest can pose as the gateway. Connection
//! tracking of bridges is not in every kernel, so the few allowed pairs are let through without.
//!
//! Only our tables are touched: the host's own rules stay as they are.

use std::net::Ipv4Addr;
use std::path::Path;

use corpus_protocol::{FirewallRule, NodePlan};

/// The host's ends of the guests' cables begin so; see the drivers.
const PORTS: &str = "cg*";

/// The text for `nft -f`.
pub fn rules(plan: &NodePlan) -> String {
    let bridge = &plan.bridge;
    let gateway = plan.network.gateway();
    let network = format!("{}/{}", plan.network.network(), plan.network.prefix());
    let mut rules: Vec<&FirewallRule> = plan.firewall.iter().collect();
    rules.sort_by_key(|rule| (rule.to, rule.from, rule.port));
    rules.dedup();
    let (near, far): (Vec<&FirewallRule>, Vec<&FirewallRule>) =
        rules.into_iter().partition(|rule| plan.network.takes(rule.from));
    let to_guests: String = far.iter().map(|rule| indented(&let_in(rule))).collect();
    let between: String = near.iter().map(|rule| let_between(rule)).collect();
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
table inet corpus
delete table inet corpus
table inet corpus {{
	chain forward {{
		type filter hook forward priority filter; policy accept;
		iifname \"{bridge}\" ip saddr != {network} drop
		iifname \"{bridge}\" meta nfproto ipv6 drop
		oifname \"{bridge}\" jump to_guests
	}}
	chain to_guests {{
		ct state established,related accept
{to_guests}		drop
	}}
	chain input {{
		type filter hook input priority filter; policy accept;
		iifname \"{bridge}\" jump from_guests
	}}
	chain from_guests {{
		ct state established,related accept
		icmp type echo-request accept
		icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert }} accept
		ip daddr {gateway} tcp dport {{ 80, 443 }} accept
		drop
	}}
	chain postrouting {{
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr {network} oifname != \"{bridge}\" masquerade
	}}
}}
table bridge corpus
delete table bridge corpus
table bridge corpus {{
	chain forward {{
		type filter hook forward priority filter; policy accept;
		iifname \"{PORTS}\" oifname \"{PORTS}\" jump between_guests
	}}
	chain between_guests {{
{between}		drop
	}}
}}
"
    )
}

fn indented(rule: &str) -> String {
    format!("\t\t{rule}\n")
}

fn let_in(rule: &FirewallRule) -> String {
    format!("ip saddr {} ip daddr {} tcp dport {} accept", rule.from, rule.to, rule.port)
}

/// A connection and its replies (never one opened from the allowed port), and the ARP of the two.
fn let_between(rule: &FirewallRule) -> String {
    let FirewallRule { from, to, port } = rule;
    let arp = |a: &Ipv4Addr, b: &Ipv4Addr| format!("\t\tarp saddr ip {a} arp daddr ip {b} accept\n");
    format!(
        "\t\t{}\n\t\tip saddr {to} ip daddr {from} tcp sport {port} tcp flags & (syn | ack) != syn accept\n{}{}",
        let_in(rule),
        arp(from, to),
        arp(to, from)
    )
}

/// The unit that loads the rules at boot, after a host's own nftables.service, which flushes all.
pub fn unit(folder: &Path) -> String {
    let rules = folder.join("firewall.nft");
    let rules = rules.display();
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
[Unit]
Description=Corpus: firewall of the guests
After=nftables.service corpus-network.service
Before=lxc.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f {rules}
ExecReload=/usr/sbin/nft -f {rules}
ExecStop=-/usr/sbin/nft delete table inet corpus
ExecStop=-/usr/sbin/nft delete table bridge corpus

[Install]
WantedBy=multi-user.target
"
    )
}
