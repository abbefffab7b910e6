//! Ways between nodes: how the proxy of one reaches guests of another.
//!
//! Guests that share a name may be on several nodes. The proxy of each of these nodes takes visitors of the name, and
//! gives them to the guests of all: to those of another node through the proxy there, on a port of its own, by TLS. Each
//! side shows a certificate that the controller's authority for nodes signed, and a guest is open to those nodes only that
//! share a name with it, or take visitors of one that is being switched to it or from it. So who takes over a node reaches
//! no guest of another but those that a name of its own leads to, or did lately.

use std::net::Ipv4Addr;

use corpus_domain::{DnsName, GuestName, NodeId};
use serde::{Deserialize, Serialize};

use crate::certificates::ServedCertificate;

/// The TCP port at which a node's proxy takes what others bring.
pub const LINK_PORT: u16 = 7443;
/// As many nodes may come to one.
pub const MAX_PEERS: usize = 1000;

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
