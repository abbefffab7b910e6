//! What a node should look like: sent whole, applied as a whole.

use std::net::Ipv4Addr;

use corpus_domain::{DnsName, GuestName, GuestNetwork, SshPort};
use serde::{Deserialize, Serialize};

/// Bridge, firewall and proxy of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlan {
    /// Rises with every change; the host refuses to go back to an older one.
    pub revision: i64,
    /// The bridge's name, `lxcbr1`.
    pub bridge: String,
    /// The guests' network.
    pub network: GuestNetwork,
    /// The SSH port of each guest.
    pub ssh_routes: Vec<SshRoute>,
    /// The DNS names that lead to guests.
    pub http_routes: Vec<HttpRoute>,
    /// What may reach guests besides what is always allowed (replies, and the proxy's own connections).
    pub firewall: Vec<FirewallRule>,
}

/// A TCP port of the node that leads to a guest's SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshRoute {
    /// The guest, for the name of the route.
    pub guest: GuestName,
    /// The node's port.
    pub port: SshPort,
    /// The guest's address; its port is 22.
    pub ip: Ipv4Addr,
}

/// A DNS name whose HTTP goes to a guest's port 80.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRoute {
    /// The name in the Host header.
    pub name: DnsName,
    /// The guest, for the name of the route.
    pub guest: GuestName,
    /// The guest's address.
    pub ip: Ipv4Addr,
}

/// One more thing that the firewall lets through towards a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRule {
    /// From where: an IPv4 address.
    pub from: Ipv4Addr,
    /// To which guest.
    pub to: Ipv4Addr,
    /// The TCP port.
    pub port: u16,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImageSource {
    /// A `.tar.zst` that was uploaded to the node.
    Archive {
        /// Absolute path on the node; removed after it is unpacked.
        path: String,
        /// SHA-256 of the file, 64 hexadecimal digits, checked before it is unpacked.
        sha256: String,
    },
    /// Built on the node by debootstrap.
    Debootstrap {
        /// The suite, `bookworm`.
        suite: String,
        /// The mirror's URL; the node's own first Debian source when absent.
        mirror: Option<String>,
    },
}
