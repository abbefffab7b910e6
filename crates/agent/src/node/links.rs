//! The ways between the proxies of nodes, in haproxy's words.
//!
//! What another node brings comes by TLS at a port of its own. Who it is stands in its certificate, and which guest it
//! wants in the name that it asks for (SNI), a name below the node's own; both together are looked up in `lent.map`, so that a node reaches no guest but
//! those that were lent to it, and what it says in a header decides nothing. The other way round, a guest of another node
//! is a member of a pool like any other, whose server is that node's port. Its check goes the whole way, so a node that is
//! lost, or a guest behind it, is found out at once.
//!
//! What a guest did not take, since it takes no connection just now or has all that it can, is brought to another one, as
//! within a node: the other proxy says so by a status of its own ([`NOT_TAKEN`]), and never for what a guest has seen.
//!
//! One file holds the certificate, its key and the authority's certificate. Without it there are neither this port nor
//! members on other nodes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use corpus_domain::{CertifiedName, NodeId};
use corpus_protocol::{LINK_PORT, NodePlan, PoolMember, link_name};

use super::places::Places;
use super::proxy::guests_limits;
use super::rules::addresses;
use crate::digest::sha256;

/// What one proxy answers another for a request that no guest has seen; 425 is one of those that haproxy can try again by.
const NOT_TAKEN: u16 = 425;
/// What tells it from a guest's own answer.
const MARK: &str = "X-Corpus-Not-Taken";

/// The lines of a pool with members on other nodes: what was not taken there is tried elsewhere, and where nobody takes it
/// the visitor is told what it would be told within a node.
pub fn tried_again() -> String {
    format!(
        "    retry-on conn-failure {NOT_TAKEN}
    http-response set-status 503 if {{ res.hdr({MARK}) -m found }}
    http-response del-header {MARK}
"
    )
}

/// By what this node is known to others, and knows them.
#[derive(Debug, Clone)]
pub struct Identity(pub PathBuf);

impl Identity {
    /// How TLS is spoken between nodes, at both ends.
    pub fn tls(&self) -> String {
        let file = self.0.display();
        format!("ssl crt {file} ca-file {file} verify required ssl-min-ver TLSv1.3")
    }

    /// What follows the name of a member on another node in the line of its server.
    pub fn server(&self, member: &PoolMember, node: NodeId) -> String {
        format!(
            "{ip}:{LINK_PORT} {tls} sni str({name}) check-sni {name}",
            ip = member.ip,
            tls = self.tls(),
            name = asked(member.guest.as_str(), &link_name(node)),
        )
    }
}

/// By what a guest is asked for at its node: a name below the node's own, since what was asked for must stand in the
/// certificate that is shown. One label of 32 digits, whatever the guest is called.
pub fn asked(what: &str, node: &str) -> String {
    let digest = sha256(what.as_bytes());
    format!("{}.{node}", digest.get(..32).unwrap_or(&digest))
}

/// The lines of `lent.map`: node and guest, the guest's address.
pub fn lent(plan: &NodePlan) -> String {
    let Some(links) = &plan.links else { return String::new() };
    let own = links.certificate.names.first().map(CertifiedName::as_str).unwrap_or_default();
    let mut lent = BTreeMap::new();
    for one in &links.lent {
        let asked = asked(one.guest.as_str(), own);
        lent.extend(one.to.iter().map(|node| (format!("{}/{asked}", link_name(*node)), one.ip)));
    }
    lent.into_iter().fold(String::new(), |mut text, (key, ip)| {
        let _ = writeln!(text, "{key} {ip}");
        text
    })
}

/// The frontend that takes what others bring, and where it goes. A visitor's address stands in the header that the first
/// proxy wrote.
pub fn configuration(folder: &Path, identity: &Identity, places: Places) -> String {
    let Places { http, http_of_guest: of_guest, .. } = places;
    format!(
        "\
frontend links
    mode http
    maxconn {http}
    bind :{LINK_PORT} {tls} alpn http/1.1
    http-request set-var(txn.to) ssl_fc_sni,lower
    http-request set-var(txn.guest) ssl_c_s_dn(CN),concat(/,txn.to),map_str_ip({folder}/lent.map)
    http-request return status 421 content-type text/plain string \"No guest of this name for this node.\\n\" unless {{ var(txn.guest) -m found }}
    http-request track-sc1 var(txn.guest) table http_guests
{limits}    http-after-response set-header {MARK} yes if {{ status 503 }} !{{ var(txn.taken) -m found }}
    http-after-response set-status {NOT_TAKEN} if {{ status 503 }} !{{ var(txn.taken) -m found }}
    default_backend http_lent

backend http_lent
    mode http
    option http-server-close
    retries 1
    http-reuse never
    http-request set-dst var(txn.guest)
    http-response set-var(txn.taken) bool(true)
    server guest 0.0.0.0:80 maxconn {http}

",
        tls = identity.tls(),
        limits = guests_limits(of_guest),
        folder = folder.display(),
    )
}

/// The lines of the firewall that close the port to all others.
pub fn closed(plan: &NodePlan) -> String {
    let Some(links) = &plan.links else { return String::new() };
    let others =
        if links.peers.is_empty() { String::new() } else { format!("ip saddr != {} ", addresses(&links.peers)) };
    format!("\t\ttcp dport {LINK_PORT} meta nfproto ipv6 drop\n\t\t{others}tcp dport {LINK_PORT} drop\n")
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{linked, plan};
    use super::*;

    #[test]
    fn a_guest_is_open_to_those_that_share_with_it() {
        let plan = linked();
        let node = plan.links.as_ref().unwrap().lent[0].to[0];
        let own = plan.links.as_ref().unwrap().certificate.names[0].as_str();
        let asked = asked("a.example.org", own);
        assert_eq!(lent(&plan), format!("{node}.node.internal/{asked} 10.5.0.10\n"));
        assert_eq!(lent(&super::super::plan::tests::plan()), "");
    }

    #[test]
    fn the_port_is_closed_to_all_others() {
        assert_eq!(closed(&plan()), "");
        let mut plan = linked();
        assert!(closed(&plan).contains("ip saddr != { 192.0.2.8 } tcp dport 7443 drop\n"), "{}", closed(&plan));
        plan.links.as_mut().unwrap().peers.clear();
        assert!(closed(&plan).ends_with("\t\ttcp dport 7443 drop\n"));
    }

    #[test]
    fn a_member_elsewhere_is_asked_for_by_its_name_and_nobody_else_answers() {
        let plan = linked();
        let member = plan.pools[0].members.iter().find(|member| member.via.is_some()).unwrap();
        let line = Identity("/etc/corpus/certificates/x.pem".into()).server(member, member.via.unwrap());
        assert!(line.starts_with("192.0.2.8:7443 ssl crt /etc/corpus/certificates/x.pem ca-file "), "{line}");
        let asked = asked(member.guest.as_str(), &link_name(member.via.unwrap()));
        let end = format!(" verify required ssl-min-ver TLSv1.3 sni str({asked}) check-sni {asked}");
        assert!(line.ends_with(&end), "{line}");
    }
}
