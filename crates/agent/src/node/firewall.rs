//! The firewall of the guests, in tables of its own that are replaced in one transaction.
//!
//! Towards guests everything is dropped but replies and what the plan lets through (see `rules`); the
//! proxy's connections come from the node itself and don't pass here. From guests the internet may be
//! reached, behind the node's address (see `egress`); of the node itself, whichever of its
//! addresses is asked, only ping, the resolver, where mail is taken if it is, and what the world may
//! ask of the proxy: a guest checks its own site on the way that the world takes. Guests don't reach
//! each other, neither on the bridge (see `identity`) nor by way of the node, but where a rule says so; those of other nodes
//! they reach by way of the proxy (see `far`).
//!
//! A guest that is only tried reaches nothing (see `egress`).
//!
//! Who is kept out for a while is dropped before all of this (see `blocked`).
//!
//! Only our tables are touched: the host's own rules stay as they are.

use std::path::Path;

use corpus_protocol::NodePlan;

use super::{blocked, egress, far, identity, links, mail, rules};

/// Questions of one guest to the resolver a second, and at once.
const QUESTIONS: (u32, u32) = (200, 1000);
/// Connections of one guest to the resolver.
const RESOLVING: u32 = 16;

/// The text for `nft -f`; what is in the sets of ports and of blocked addresses comes from files beside it.
pub fn rules(folder: &Path, plan: &NodePlan) -> String {
    let bridge = &plan.bridge;
    let gateway = plan.network.gateway();
    let network = format!("{}/{}", plan.network.network(), plan.network.prefix());
    let (near, outside) = rules::near_and_far(plan);
    let far = far::chains(plan);
    let ((rate, burst), mail) = (QUESTIONS, Mail::of(plan));
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
table inet corpus
delete table inet corpus
table bridge corpus
delete table bridge corpus
include \"{folder}/counters*.nft\"
table inet corpus {{
{counters}	set questions {{
		type ipv4_addr
		size 65535
		flags dynamic,timeout
		timeout 10s
	}}
	set resolving {{
		type ipv4_addr
		size 65535
		flags dynamic
	}}
{sets}	chain untracked {{
		type filter hook prerouting priority raw; policy accept;
		iifname \"{bridge}\" ip daddr {gateway} udp dport 53 notrack
	}}
	chain untracked_answers {{
		type filter hook output priority raw; policy accept;
		oifname \"{bridge}\" ip saddr {gateway} udp sport 53 notrack
	}}
	chain forward {{
		type filter hook forward priority filter; policy accept;
{near}		iifname \"{bridge}\" oifname \"{bridge}\" drop
		iifname \"{bridge}\" jump leaving
		oifname \"{bridge}\" jump to_guests
	}}
	chain leaving {{
		ip saddr != {network} drop
		meta nfproto ipv6 drop
		ct state established,related ct direction reply accept
{isolated}{leaving}	}}
	chain to_guests {{
		ct state established,related ct direction reply accept
		ct state related accept
{to_guests}		goto refused
	}}
	chain refused {{
{refuse}	}}
	chain published {{
		type nat hook prerouting priority dstnat; policy accept;
		iifname != \"{bridge}\" fib daddr type local jump leads
{far_led}	}}
	chain leads {{
{leads}	}}
{between}	chain input {{
		type filter hook input priority filter; policy accept;
		iifname \"{bridge}\" jump from_guests
		iifname != {{ \"{bridge}\", \"lo\" }} jump from_outside
	}}
	chain from_outside {{
		ip daddr {gateway} meta l4proto {{ tcp, udp }} th dport 53 drop
{to_node}	}}
	chain from_guests {{
{isolated_here}		ip daddr {gateway} udp dport 53 update @questions {{ ip saddr limit rate {rate}/second burst {burst} packets }} accept
{far_of_guests}		ct state established,related accept
		icmp type echo-request accept
		ip daddr {gateway} tcp dport 53 add @resolving {{ ip saddr ct count {RESOLVING} }} accept
{mail}		tcp dport {{ 80, 443 }} accept
		drop
	}}
	chain postrouting {{
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr {network} oifname != \"{bridge}\" masquerade
	}}
}}
{identity}include \"{folder}/ports.nft\"
include \"{folder}/blocked.nft\"
",
        counters = rules::routed_counters(plan, &outside),
        isolated = egress::isolated(&plan.isolated),
        isolated_here = egress::isolated_here(&plan.isolated),
        sets = [mail.set, rules::sets(), blocked::chain(bridge), egress::bounds(bridge)].concat(),
        near = to_near(bridge, &near),
        leaving = far.leaving + &egress::leaving(&plan.egress),
        to_guests = rules::to_guests(plan, &outside),
        refuse = rules::refuse(),
        leads = rules::leads(plan),
        between = between(&near) + &far.own,
        mail = mail.of_guests,
        to_node = [links::closed(plan), far.of_others, mail.of_others, rules::to_node(plan)].concat(),
        far_led = far.led,
        far_of_guests = far.of_guests,
        identity = identity::table(&near),
        folder = folder.display(),
    )
}

fn to_near(bridge: &str, near: &[rules::Part<'_>]) -> String {
    if near.is_empty() {
        return String::new();
    }
    format!("\t\tiifname \"{bridge}\" oifname \"{bridge}\" jump between_guests\n")
}

/// What lets guests, and nobody else, to where the node takes their mail; nothing where it takes none.
#[derive(Default)]
struct Mail {
    set: String,
    of_guests: String,
    of_others: String,
}

impl Mail {
    fn of(plan: &NodePlan) -> Self {
        if plan.mail.is_none() {
            return Self::default();
        }
        let to = format!("\t\tip daddr {} tcp dport {}", plan.network.gateway(), mail::PORT);
        let few = format!("add @mailing {{ ip saddr ct count {} }}", mail::CONNECTIONS);
        Self {
            set: "\tset mailing {\n\t\ttype ipv4_addr\n\t\tsize 65535\n\t\tflags dynamic\n\t}\n".to_owned(),
            of_guests: format!("{to} {few} accept\n"),
            of_others: format!("{to} drop\n"),
        }
    }
}

/// Where the kernel shows frames of a bridge to these rules too (`br_netfilter`), what the table of the bridge lets
/// through must pass here again.
fn between(near: &[rules::Part<'_>]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let let_in = rules::between(near);
    format!("\tchain between_guests {{\n\t\tct state established,related ct direction reply accept\n{let_in}\t}}\n")
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

#[cfg(test)]
mod tests {
    use super::super::mail::tests::mailing;
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn guests_reach_where_mail_is_taken_only_if_it_is() {
        let folder = Path::new("/etc/corpus");
        let (without, with) = (rules(folder, &plan()), rules(folder, &mailing()));
        assert!(!without.contains("dport 25") && !without.contains("mailing"));
        let added: Vec<&str> = with.lines().filter(|line| !without.contains(line)).map(str::trim).collect();
        assert_eq!(
            added,
            [
                "set mailing {",
                "ip daddr 10.5.0.1 tcp dport 25 drop",
                "ip daddr 10.5.0.1 tcp dport 25 add @mailing { ip saddr ct count 20 } accept",
            ]
        );
    }

    /// Before anything else that lets guests out: no rule of a project opens it again.
    #[test]
    fn a_guest_that_is_tried_reaches_nothing() {
        let folder = Path::new("/etc/corpus");
        let isolated = NodePlan { isolated: vec![[10, 5, 0, 11].into(), [10, 5, 0, 10].into()], ..mailing() };
        let (without, with) = (rules(folder, &mailing()), rules(folder, &isolated));
        let all = "ip saddr { 10.5.0.10, 10.5.0.11 }";
        let added: Vec<&str> = with.lines().filter(|line| !without.contains(line)).map(str::trim).collect();
        let reply = format!("{all} ct state established ct direction reply accept");
        assert_eq!(added, [format!("{all} drop"), reply, format!("{all} drop")]);
        for (chain, first) in [("chain leaving {", "ip daddr"), ("chain from_guests {", "dport 53 update")] {
            let chain = with.split_once(chain).unwrap().1;
            assert!(chain.find(&format!("{all} drop")) < chain.find(first), "{chain}");
        }
    }
}
