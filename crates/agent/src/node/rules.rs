//! What the plan lets through to guests besides replies, what it publishes, and what it keeps out.
//!
//! Each packet towards a guest is held against the rules, not only the first of a connection: a rule that
//! is taken away ends what it had let in. What a rule matched is counted under the rule's id, and what no
//! rule let in is kept for a while in a set, of which one guest can fill a small part only.

use std::net::Ipv4Addr;

use corpus_domain::{FirewallRuleId, Ipv4Network, SSH_PORTS};
use corpus_protocol::{Block, FirewallRule, NodePlan, PublishedPort};

use super::far::let_out;

/// Drops that are kept at once, in each of two tables.
const DROPS: u32 = 4096;
/// Different ones of one guest a minute, and at once: what is scanned does not use up what all share.
const NOTED: (u32, u32) = (2, 20);
/// What a drop is told apart by.
const DROP: &str = "ip daddr . ip saddr . meta l4proto . th dport";
/// How long a drop is kept, in seconds.
pub const KEPT_S: u64 = 600;

/// A rule, and those of its sources that are other guests, or those that are not.
pub struct Part<'a> {
    pub rule: &'a FirewallRule,
    pub from: Vec<Ipv4Network>,
}

/// The rules between guests, and those for what comes from outside, each in an order that stays.
pub fn near_and_far(plan: &NodePlan) -> (Vec<Part<'_>>, Vec<Part<'_>>) {
    let mut rules: Vec<&FirewallRule> = plan.firewall.iter().filter(|rule| !rule.to.is_empty()).collect();
    rules.sort_by_key(|rule| rule.id);
    rules.dedup_by_key(|rule| rule.id);
    let is_near = |one: &Ipv4Network| one.single().is_some_and(|address| plan.network.takes(address));
    let part = |near: bool| {
        let of = |rule: &&'_ FirewallRule| rule.from.iter().copied().filter(|one| is_near(one) == near).collect();
        let parts = rules.iter().map(|rule| Part { rule, from: fewest(of(rule)) });
        parts.filter(|part| !part.from.is_empty()).collect::<Vec<_>>()
    };
    (part(true), part(false))
}

/// In order, without those that lie in another one: nft takes no set of overlapping networks.
fn fewest(mut networks: Vec<Ipv4Network>) -> Vec<Ipv4Network> {
    networks.sort_unstable();
    networks.dedup();
    let all = networks.clone();
    networks.retain(|one| !all.iter().any(|other| other != one && other.holds(*one)));
    networks
}

/// What counts a rule.
pub fn counter(id: FirewallRuleId) -> String {
    format!("r{}", id.0.simple())
}

/// The rule that is counted by it.
pub fn counted(name: &str) -> Option<FirewallRuleId> {
    name.strip_prefix('r').filter(|id| id.len() == 32)?.parse().ok()
}

/// The declarations of counters.
pub fn counters(ids: impl Iterator<Item = FirewallRuleId>) -> String {
    let mut ids: Vec<FirewallRuleId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().fold(String::new(), |text, id| text + "\tcounter " + &counter(id) + " { packets 0 bytes 0 }\n")
}

/// The counters of the table that filters what is routed.
pub fn routed_counters(plan: &NodePlan, far: &[Part<'_>]) -> String {
    let rules = far.iter().map(|part| part.rule.id);
    let rest = plan.published.iter().map(|port| port.id).chain(plan.blocks.iter().map(|block| block.id));
    let let_out = let_out(plan).into_iter().map(|rule| rule.id);
    counters(rules.chain(rest).chain(let_out))
}

/// The sets of what was dropped: each for a while, and how many of each guest.
pub fn sets() -> String {
    format!(
        "\tset dropped {{
		type ipv4_addr . ipv4_addr . inet_proto . inet_service
		size {DROPS}
		flags dynamic,timeout
		timeout {KEPT_S}s
	}}
	set noting {{
		type ipv4_addr
		size {DROPS}
		flags dynamic,timeout
		timeout {KEPT_S}s
	}}
	set losses {{
		type ipv4_addr
		size 65535
		flags dynamic,timeout
		timeout 1h
	}}
"
    )
}

/// The lines that count and note a packet and drop it.
pub fn refuse() -> String {
    let (rate, burst) = NOTED;
    format!(
        "\t\tupdate @losses {{ ip daddr counter }}
		{DROP} @dropped update @dropped {{ {DROP} counter }} drop
		meta l4proto {{ tcp, udp }} update @noting {{ ip daddr limit rate {rate}/minute burst {burst} packets }} update @dropped {{ {DROP} counter }}
		drop
"
    )
}

/// The lines of the chain towards guests, in the order in which they count.
pub fn to_guests(plan: &NodePlan, far: &[Part<'_>]) -> String {
    let blocked = blocks(plan).into_iter().map(|block| {
        let only = block.only.map_or_else(String::new, |(protocol, ports)| format!("{protocol} dport {ports} "));
        format!("{}{only}counter name \"{}\" goto refused", from(&block.from), counter(block.id))
    });
    let published = published(plan).into_iter().map(|one| {
        let PublishedPort { protocol, port, to, to_port, .. } = one;
        format!(
            "{}ip daddr {to} {protocol} dport {to_port} ct status dnat ct original proto-dst {port} counter name \"{}\" accept",
            from(&one.from),
            counter(one.id)
        )
    });
    let let_in = far.iter().map(|part| {
        let FirewallRule { id, to, protocol, ports, .. } = part.rule;
        format!(
            "{}ip daddr {} {protocol} dport {ports} counter name \"{}\" accept",
            from(&part.from),
            addresses(to),
            counter(*id)
        )
    });
    lines(blocked.chain(published).chain(let_in))
}

/// What is kept from the proxy and from the SSH ports.
pub fn to_node(plan: &NodePlan) -> String {
    let of = |block: &&Block| block.only.is_none_or(|(protocol, _)| protocol == corpus_domain::Transport::Tcp);
    let blocked = blocks(plan).into_iter().filter(of).map(|block| {
        let only = block.only.map_or_else(String::new, |(_, ports)| format!("tcp dport {ports} "));
        format!(
            "{}tcp dport {{ 80, 443, {}-{} }} {only}counter name \"{}\" drop",
            from(&block.from),
            SSH_PORTS.start(),
            SSH_PORTS.end(),
            counter(block.id)
        )
    });
    lines(blocked)
}

/// Where the node's published ports lead.
pub fn leads(plan: &NodePlan) -> String {
    lines(published(plan).into_iter().map(|one| {
        let PublishedPort { protocol, port, to, to_port, .. } = one;
        format!("{}{protocol} dport {port} dnat ip to {to}:{to_port}", from(&one.from))
    }))
}

/// The rules between guests, for what a bridge filter of the kernel shows to the rules of what is routed.
pub fn between(near: &[Part<'_>]) -> String {
    lines(near.iter().map(|part| {
        let FirewallRule { to, protocol, ports, .. } = part.rule;
        format!("{}ip daddr {} {protocol} dport {ports} accept", from(&part.from), addresses(to))
    }))
}

fn lines(all: impl Iterator<Item = String>) -> String {
    all.fold(String::new(), |text, line| text + "\t\t" + &line + "\n")
}

fn blocks(plan: &NodePlan) -> Vec<&Block> {
    let mut blocks: Vec<&Block> = plan.blocks.iter().filter(|block| !block.from.is_empty()).collect();
    blocks.sort_by_key(|block| block.id);
    blocks
}

fn published(plan: &NodePlan) -> Vec<&PublishedPort> {
    let mut published: Vec<&PublishedPort> = plan.published.iter().filter(|one| !one.from.is_empty()).collect();
    published.sort_by_key(|one| (one.protocol, one.port));
    published
}

/// Whoever it comes from needs no match.
fn from(networks: &[Ipv4Network]) -> String {
    let networks = fewest(networks.to_vec());
    if networks.contains(&Ipv4Network::ANY) {
        return String::new();
    }
    let texts: Vec<String> = networks.iter().map(ToString::to_string).collect();
    format!("ip saddr {{ {} }} ", texts.join(", "))
}

/// A set of addresses, in order.
pub fn addresses(all: &[Ipv4Addr]) -> String {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let texts: Vec<String> = sorted.iter().map(ToString::to_string).collect();
    format!("{{ {} }}", texts.join(", "))
}
