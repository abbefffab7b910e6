//! What a plan may not do to the node: cut the line that it came by, or take a port of somebody else.
//!
//! Both would be found out only when nobody can reach the node any more, so they are refused before anything
//! is changed.

use std::net::{IpAddr, Ipv4Addr};

use corpus_domain::{Ipv4Network, Transport};
use corpus_protocol::{FAR_PORT, LINK_PORT, NodePlan, PublishedPort, WAY_PORT};

use super::far;

use crate::facts::is_taken;
use crate::failure::Failure;
use crate::host::Host;

/// The plan cuts nothing that it may not cut. What was published before is not looked at again: what came to
/// listen there since is not the plan's fault, and must not hold up others.
pub fn require(host: &Host, applied: Option<&NodePlan>, plan: &NodePlan) -> Result<(), Failure> {
    let connection = std::env::var("SSH_CONNECTION").ok();
    let (client, port) = line(connection.as_deref());
    if let Some((client, block)) = client.map(Ipv4Network::from).and_then(|client| {
        Some((client, plan.blocks.iter().flat_map(|block| &block.from).find(|one| one.holds(client))?))
    }) {
        let client = client.single().unwrap_or(Ipv4Addr::UNSPECIFIED);
        return Err(Failure::Invalid(format!(
            "{block} can't be kept out: Corpus reaches this node from {client}, and would cut itself off"
        )));
    }
    let had_links = applied.is_some_and(|plan| plan.links.is_some());
    if plan.links.is_some() && !had_links && is_taken(host, Transport::Tcp, LINK_PORT) {
        return Err(Failure::Invalid(format!(
            "port {LINK_PORT} of the node is taken by another program; stop it, so that other nodes can reach the guests that share a name with theirs"
        )));
    }
    let had_far = applied.is_some_and(|plan| far::of(plan).is_some());
    let taken = |port: &u16| is_taken(host, Transport::Tcp, *port);
    if far::of(plan).is_some()
        && !had_far
        && let Some(port) = [FAR_PORT, WAY_PORT].into_iter().find(taken)
    {
        return Err(Failure::Invalid(format!(
            "port {port} of the node is taken by another program; stop it, so that guests of this node and of others can reach each other"
        )));
    }
    let is_new = |one: &&PublishedPort| {
        !applied.is_some_and(|plan| {
            plan.published.iter().any(|other| (other.protocol, other.port) == (one.protocol, one.port))
        })
    };
    for one in plan.published.iter().filter(is_new) {
        let is_ours = one.protocol == Transport::Tcp && port == Some(one.port);
        if is_ours || is_taken(host, one.protocol, one.port) {
            return Err(Failure::Invalid(format!(
                "port {}/{} of the node is taken: something on the host listens there; choose another one",
                one.port, one.protocol
            )));
        }
    }
    Ok(())
}

/// From where our own line comes, if it is one of SSH.
pub fn client() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    connection.split_whitespace().next()?.parse().ok()
}

/// From where sshd(8) says that we were started, and at which port of the host.
fn line(connection: Option<&str>) -> (Option<Ipv4Addr>, Option<u16>) {
    let mut words = connection.unwrap_or_default().split_whitespace();
    let client = words.next().and_then(|text| text.parse::<IpAddr>().ok()).map(|ip| ip.to_canonical());
    let client = client.and_then(|ip| if let IpAddr::V4(ip) = ip { Some(ip) } else { None });
    (client, words.nth(2).and_then(|port| port.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn where_a_line_comes_from() {
        let told = line(Some("192.0.2.1 50122 10.0.0.7 22"));
        assert_eq!(told, (Some(Ipv4Addr::new(192, 0, 2, 1)), Some(22)));
        assert_eq!(line(Some("::ffff:192.0.2.1 1 ::1 2222")).0, Some(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!((line(None), line(Some("x"))), ((None, None), (None, None)));
    }

    #[test]
    fn a_port_that_is_taken_is_not_published() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let plan = plan();
        require(&host, None, &plan).unwrap();
        let line = "   0: 00000000:7531 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n";
        crate::files::write(&host.path("/proc/net/tcp"), line, 0o644).unwrap();
        let refused = require(&host, None, &plan).unwrap_err().to_string();
        assert!(refused.contains("port 30001/tcp of the node is taken"), "{refused}");
        require(&host, Some(&plan), &plan).unwrap();
    }
}
