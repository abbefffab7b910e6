//! Ways between nodes: how the proxy of one reaches guests of another.
//!
//! Guests that share a name may be on several nodes. The proxy of each of these nodes takes visitors of the name, and
//! gives them to the guests of all: to those of another node through the proxy there, on a port of its own, by TLS. Each
//! side shows a certificate that the controller's authority for nodes signed, and a guest is open to those nodes only that
//! share a name with it, or take visitors of one that is being switched to it or from it. So who takes over a node reaches
//! no guest of another but those that a name of its own leads to, or did lately.
//!
//! Guests reach guests of their own project on other nodes in the same way, by TCP, where a rule says so. Networks of nodes
//! may be alike, so a guest of another node is reached by an address that stands in for its own. Its own node leads
//! what goes there to its proxy, which brings it to the proxy of the other node, on another port, by TLS; and that one to the guest.

use std::net::Ipv4Addr;

use corpus_domain::{DnsName, GuestName, NodeId};
use serde::{Deserialize, Serialize};

use crate::certificates::ServedCertificate;
use crate::node::FirewallRule;

/// The TCP port at which a node's proxy takes what others bring.
pub const LINK_PORT: u16 = 7443;
/// The TCP port at which it takes connections of guests of other nodes.
pub const FAR_PORT: u16 = 7444;
/// The TCP port of a node to which connections of its own guests to guests of other nodes are led.
pub const WAY_PORT: u16 = 7445;
/// As many nodes may come to one.
pub const MAX_PEERS: usize = 1000;
/// A rule between guests of two nodes is for so many ports at most: each is a way of its own.
pub const MAX_FAR_PORTS: u16 = 16;
/// Addresses that stand in for guests of other nodes: half of those that RFC 2544 keeps for measuring networks. No network of
/// guests is there (these are private ones), and guests reach nothing else there, since it is no part of the internet.
pub const STAND_INS: [u8; 2] = [198, 18];
/// The address that stands in for the guest of this number; none when it is none that can be given.
pub fn stand_in(number: u16) -> Option<Ipv4Addr> {
    let ([first, second], [third, fourth]) = (STAND_INS, number.to_be_bytes());
    (number != 0 && number != u16::MAX).then(|| Ipv4Addr::new(first, second, third, fourth))
}

/// Whether it is an address that stands in for a guest.
pub fn is_stand_in(ip: Ipv4Addr) -> bool {
    let [first, second, third, fourth] = ip.octets();
    [first, second] == STAND_INS && stand_in(u16::from_be_bytes([third, fourth])).is_some()
}

/// What the names of nodes end with.
const LINK_NAMES: &str = "node.internal";

/// What a node is called in its certificate; no name of the world ends so (RFC 9476 and ICANN keep it for private use).
pub fn link_name(node: NodeId) -> String {
    format!("{node}.{LINK_NAMES}")
}

/// Whether a name is one of those, or could become one: nobody else has a certificate or a zone for it.
pub fn is_link_name(name: &DnsName) -> bool {
    name.as_str().strip_suffix(LINK_NAMES).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// How a node takes part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Its certificate: the chain goes on to the authority's own, by which it knows others. Its file comes by
    /// [`crate::Request::PutCertificates`]; until then nobody is taken, and nobody is brought to other nodes.
    pub certificate: ServedCertificate,
    /// Where others may come from.
    pub peers: Vec<Ipv4Addr>,
    /// The guests of this node that they may bring requests to.
    pub lent: Vec<LentGuest>,
    /// The guests of other nodes that guests of this one may reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
    /// Who may reach them: from guests of this node, to addresses that stand in for those of others, by TCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub let_out: Vec<FirewallRule>,
    /// The guests of this node that guests of others may reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenGuest>,
}

impl Links {
    /// Whether guests of this node and of others reach each other.
    pub fn is_between_guests(&self) -> bool {
        !self.ways.is_empty() || !self.open.is_empty()
    }
}

/// A guest to which other nodes may bring requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LentGuest {
    /// The guest.
    pub guest: GuestName,
    /// Its address; its port is 80.
    pub ip: Ipv4Addr,
    /// Which nodes.
    pub to: Vec<NodeId>,
}

/// A guest of another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// The guest.
    pub guest: GuestName,
    /// The address that stands in for its own here (see [`stand_in`]).
    pub stand_in: Ipv4Addr,
    /// Its node.
    pub node: NodeId,
    /// Where that node's proxy answers.
    pub node_ip: Ipv4Addr,
}

/// A guest of this node with ports that other nodes may bring connections to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenGuest {
    /// The guest.
    pub guest: GuestName,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Which nodes, and to which of its ports.
    pub to: Vec<OpenTo>,
}

/// What one node may bring connections to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTo {
    /// The node.
    pub node: NodeId,
    /// The ports.
    pub ports: Vec<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_are_known() {
        let node: NodeId = "0199d3c0-0000-7000-8000-0000000000aa".parse().unwrap();
        for kept in [link_name(node).as_str(), "a.b.Node.internal.", "node.internal"] {
            assert!(is_link_name(&kept.parse().unwrap()), "{kept}");
        }
        for free in ["mynode.internal", "node.internal.example.org", "internal.example.org", "x.internal"] {
            assert!(!is_link_name(&free.parse().unwrap()), "{free}");
        }
    }

    #[test]
    fn addresses_that_stand_in_are_nobody_elses() {
        for (number, ip) in [(1, "198.18.0.1"), (258, "198.18.1.2"), (65_534, "198.18.255.254")] {
            let ip: Ipv4Addr = ip.parse().unwrap();
            assert_eq!(stand_in(number), Some(ip));
            assert!(is_stand_in(ip) && !ip.is_private());
        }
        assert_eq!((stand_in(0), stand_in(u16::MAX)), (None, None));
        for other in ["198.18.0.0", "198.18.255.255", "198.19.0.1", "10.5.0.10"] {
            assert!(!is_stand_in(other.parse().unwrap()), "{other}");
        }
    }
}
