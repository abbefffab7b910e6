//! From a guest to a guest of another node: what haproxy and nftables do for it at both ends.
//!
//! The far guest has an address here that stands in for its own. What a guest may send there is led to the node's own
//! proxy, which sees where it was going, looks up in two maps which node that is and by what the guest is asked for there,
//! and brings it to that node's proxy by TLS. That one knows the node by its certificate, looks up both in `far.map`, and
//! brings it to the guest. So a node that was taken over reaches those ports only that were opened to it, and a guest
//! those that a rule names: nothing that it sends decides where it comes to.
//!
//! Each packet is held against the rules, at both ends, as within a node: a rule that is taken away ends what it had let
//! in, whichever process of the proxy has the connection. At the end of the guest that is reached, the proxy is an account
//! of its own, which reaches sites, SSH and what is open to other nodes; nothing else of a guest.
//!
//! A connection may be silent for a day, as those to databases are. Each end asks after the other meanwhile, so one that
//! is lost is found out within a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use corpus_domain::CertifiedName;
use corpus_protocol::{FAR_PORT, FirewallRule, Links, NodePlan, STAND_INS, WAY_PORT, link_name};

use super::links::{Identity, asked};
use super::places::Places;
use super::rules::{addresses, counter};

/// How long nothing may be said, and how often each end is asked whether it is there.
const SILENT: &str = "24h";
const LOST: &str = "1m";

/// Connections that one guest, and one node, may open in ten seconds: each is a handshake at both ends.
const OPENED: (u32, u32) = (1000, 5000);

/// What of the plan is between guests of this node and of others.
pub fn of(plan: &NodePlan) -> Option<&Links> {
    plan.links.as_ref().filter(|links| links.is_between_guests())
}

/// What of the plan is let out to guests of other nodes, in an order that stays.
pub fn let_out(plan: &NodePlan) -> Vec<&FirewallRule> {
    let mut rules: Vec<&FirewallRule> = of(plan).map(|links| links.let_out.iter().collect()).unwrap_or_default();
    rules.retain(|rule| !rule.from.is_empty() && !rule.to.is_empty());
    rules.sort_by_key(|rule| rule.id);
    rules
}

/// By what a port of a guest is asked for; see `links::asked`.
fn asked_port(guest: &str, port: u16, node: &str) -> String {
    asked(&format!("{guest}:{port}"), node)
}

/// The lines of `ways.map`, where the node of a guest is, and of `asked.map`, by what the guest is asked for there; each by
/// the address and the port that were asked for here.
pub fn ways(plan: &NodePlan) -> [String; 2] {
    let mut lines = [BTreeMap::new(), BTreeMap::new()];
    let rules = let_out(plan);
    for way in of(plan).iter().flat_map(|links| &links.ways) {
        let of_way = rules.iter().filter(|rule| rule.to.contains(&way.stand_in));
        let ports: BTreeSet<u16> = of_way.flat_map(|rule| rule.ports.first()..=rule.ports.last()).collect();
        for port in ports {
            let key = format!("{}:{port}", way.stand_in);
            lines[1].insert(key.clone(), asked_port(way.guest.as_str(), port, &link_name(way.node)));
            lines[0].insert(key, way.node_ip.to_string());
        }
    }
    lines.map(|of| text(&of))
}

/// The lines of `far.map`: node and what it asks for, the guest's address and port.
pub fn open(plan: &NodePlan) -> String {
    let Some(links) = of(plan) else { return String::new() };
    let own = links.certificate.names.first().map(CertifiedName::as_str).unwrap_or_default();
    let mut opened = BTreeMap::new();
    for one in &links.open {
        for to in &one.to {
            let line = |port: &u16| {
                let asked = asked_port(one.guest.as_str(), *port, own);
                (format!("{}/{asked}", link_name(to.node)), format!("{}:{port}", one.ip))
            };
            opened.extend(to.ports.iter().map(line));
        }
    }
    text(&opened)
}

fn text(lines: &BTreeMap<String, String>) -> String {
    lines.iter().fold(String::new(), |mut text, (key, value)| {
        let _ = writeln!(text, "{key} {value}");
        text
    })
}

/// The parts of haproxy's configuration. What it is told by maps, so that no rule makes it begin anew.
pub fn configuration(folder: &Path, identity: &Identity, places: Places) -> String {
    let Places { far, far_of_one, .. } = places;
    let (folder, tls) = (folder.display(), identity.tls());
    let (client, server) = (asks_after("cli"), asks_after("srv"));
    let (by_guest, by_node) = OPENED;
    format!(
        "\
backend way_guests
    stick-table type ip size 100k expire 1m store conn_cur,conn_rate(10s)

backend far_nodes
    stick-table type ip size 10k expire 1m store conn_cur,conn_rate(10s)

frontend ways
    mode tcp
    maxconn {far}
    timeout client {SILENT}
{client}    bind :{WAY_PORT} tcp-ut {LOST}
    tcp-request connection track-sc0 src table way_guests
    tcp-request connection reject if {{ sc0_conn_cur gt {far_of_one} }} || {{ sc0_conn_rate gt {by_guest} }}
    tcp-request content set-var(sess.port) dst_port
    tcp-request content set-var(sess.to) dst,concat(:,sess.port)
    tcp-request content set-var(sess.node) var(sess.to),map_str_ip({folder}/ways.map)
    tcp-request content set-var(sess.asked) var(sess.to),map_str({folder}/asked.map)
    tcp-request content reject unless {{ var(sess.node) -m found }} {{ var(sess.asked) -m found }}
    tcp-request content set-dst var(sess.node)
    default_backend way_node

backend way_node
    mode tcp
    timeout server {SILENT}
    timeout tunnel {SILENT}
{server}    retries 0
    # A session that was begun with one node is never gone on with at another.
    server node 0.0.0.0:{FAR_PORT} {tls} sni var(sess.asked) no-ssl-reuse tcp-ut {LOST}

frontend far
    mode tcp
    maxconn {far}
    timeout client {SILENT}
{client}    bind :{FAR_PORT} {tls} tcp-ut {LOST}
    tcp-request connection track-sc0 src table far_nodes
    tcp-request connection reject if {{ sc0_conn_cur gt {far_of_one} }} || {{ sc0_conn_rate gt {by_node} }}
    tcp-request content set-var(sess.asked) ssl_fc_sni,lower
    tcp-request content set-var(sess.to) ssl_c_s_dn(CN),concat(/,sess.asked),map_str({folder}/far.map)
    tcp-request content reject unless {{ var(sess.to) -m found }}
    tcp-request content set-dst var(sess.to),field(1,:)
    tcp-request content set-dst-port var(sess.to),field(2,:)
    default_backend far_guest

backend far_guest
    mode tcp
    timeout server {SILENT}
    timeout tunnel {SILENT}
{server}    retries 0
    server guest 0.0.0.0 tcp-ut {LOST}

"
    )
}

/// Whether the other end is there is asked every quarter of a minute.
fn asks_after(end: &str) -> String {
    format!("    option {end}tcpka\n    {end}tcpka-idle 15s\n    {end}tcpka-intvl 15s\n    {end}tcpka-cnt 3\n")
}

/// What nftables does, in parts.
#[derive(Debug)]
pub struct Chains {
    /// Connections that are led to the proxy, in the chain for what is published.
    pub led: String,
    /// What is no guest is nothing else either, in the chain of what leaves.
    pub leaving: String,
    /// What guests send to the proxy that way, before what is established passes.
    pub of_guests: String,
    /// The chains for it, and for what the proxy sends to guests.
    pub own: String,
    /// Who comes from other nodes.
    pub of_others: String,
}

/// The parts, for the bridge of this name.
pub fn chains(plan: &NodePlan) -> Chains {
    let (bridge, rules) = (&plan.bridge, let_out(plan));
    let each = |line: &dyn Fn(&FirewallRule, &str, &str) -> String| {
        rules.iter().fold(String::new(), |mut text, rule| {
            let from: Vec<_> = rule.from.iter().filter_map(|one| one.single()).collect();
            let _ = writeln!(text, "\t\t{}", line(rule, &addresses(&from), &addresses(&rule.to)));
            text
        })
    };
    let led = each(&|rule, from, to| {
        format!("iifname \"{bridge}\" ip saddr {from} ip daddr {to} tcp dport {} redirect to :{WAY_PORT}", rule.ports)
    });
    let through = each(&|rule, from, to| {
        format!(
            "ip saddr {from} meta l4proto tcp ct status dnat ct original ip daddr {to} ct original proto-dst {} counter name \"{}\" accept",
            rule.ports,
            counter(rule.id)
        )
    });
    let back = each(&|rule, from, to| {
        format!(
            "meta l4proto tcp ct original ip saddr {from} ct original ip daddr {to} ct original proto-dst {} accept",
            rule.ports
        )
    });
    let [first, second] = STAND_INS;
    let leaving = if rules.is_empty() {
        String::new()
    } else {
        format!("\t\tip daddr {first}.{second}.0.0/16 reject with icmp type admin-prohibited\n")
    };
    let open = of(plan).iter().flat_map(|links| &links.open).fold(String::new(), |mut text, one| {
        let ports: BTreeSet<u16> = one.to.iter().flat_map(|to| to.ports.iter().copied()).collect();
        let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "\t\tip daddr {} tcp dport {{ {} }} accept", one.ip, ports.join(", "));
        text
    });
    Chains {
        led,
        leaving,
        of_guests: format!("\t\ttcp dport {WAY_PORT} jump to_ways\n"),
        own: format!(
            "	chain to_ways {{
{through}		drop
	}}
	chain from_node {{
		type filter hook output priority filter; policy accept;
		oifname \"{bridge}\" tcp sport {WAY_PORT} jump from_ways
		oifname \"{bridge}\" meta l4proto tcp ct direction original meta skuid \"haproxy\" jump from_proxy
	}}
	chain from_ways {{
{back}		drop
	}}
	chain from_proxy {{
		tcp dport {{ 22, 80 }} accept
{open}		drop
	}}
"
        ),
        of_others: of_others(plan),
    }
}

/// The port is closed to all but the nodes that come with connections; that of the node's own guests to all others.
fn of_others(plan: &NodePlan) -> String {
    let Some(links) = of(plan) else { return String::new() };
    let others =
        if links.peers.is_empty() { String::new() } else { format!("ip saddr != {} ", addresses(&links.peers)) };
    format!(
        "\t\ttcp dport {{ {FAR_PORT}, {WAY_PORT} }} meta nfproto ipv6 drop\n\t\ttcp dport {WAY_PORT} drop\n\
         \t\t{others}tcp dport {FAR_PORT} drop\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{far, plan};
    use super::*;

    #[test]
    fn a_guest_is_asked_for_at_its_node_by_address_and_port() {
        let plan = far();
        let links = plan.links.as_ref().unwrap();
        let way = &links.ways[0];
        let key = format!("{}:5432", way.stand_in);
        let [nodes, names] = ways(&plan);
        assert_eq!(nodes, format!("{key} 192.0.2.8\n"));
        let name = asked_port(way.guest.as_str(), 5432, &link_name(way.node));
        assert_eq!(names, format!("{key} {name}\n"));
        assert_eq!(name.split_once('.').unwrap().0.len(), 32);
        assert_eq!(
            [ways(&super::super::plan::tests::linked()), ways(&super::super::plan::tests::plan())].concat(),
            ["", "", "", ""]
        );
    }

    #[test]
    fn a_port_is_open_to_the_node_that_it_was_opened_to() {
        let plan = far();
        let links = plan.links.as_ref().unwrap();
        let own = links.certificate.names[0].as_str();
        let node = links.open[0].to[0].node;
        let line = |port| format!("{node}.node.internal/{} 10.5.0.11:{port}\n", asked_port("b.example.org", port, own));
        let mut opened = [line(8080), line(8081)];
        opened.sort();
        assert_eq!(open(&plan), opened.concat());
        assert_eq!(open(&super::super::plan::tests::plan()), "");
    }

    #[test]
    fn what_no_rule_leads_out_is_dropped_even_where_none_does() {
        let without = chains(&plan());
        assert_eq!((without.led.as_str(), without.leaving.as_str(), without.of_others.as_str()), ("", "", ""));
        assert!(without.of_guests.contains("tcp dport 7445 jump to_ways"));
        assert!(without.own.contains("chain to_ways {\n\t\tdrop\n\t}"));
        assert!(without.own.contains("chain from_ways {\n\t\tdrop\n\t}"));
        assert!(without.own.contains("tcp dport { 22, 80 } accept\n\t\tdrop\n"));
        let mut plan = far();
        assert!(chains(&plan).of_others.ends_with("ip saddr != { 192.0.2.8 } tcp dport 7444 drop\n"));
        plan.links.as_mut().unwrap().peers.clear();
        assert!(chains(&plan).of_others.ends_with("\t\ttcp dport 7444 drop\n"));
    }
}
