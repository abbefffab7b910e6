//! What a node should look like: sent whole, applied as a whole.

use std::net::{Ipv4Addr, SocketAddr};

use corpus_domain::{DnsName, EgressRule, GuestName, GuestNetwork, MacAddress, SshPort};
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
    /// Who may send what on which port of the bridge.
    #[serde(default)]
    pub ports: Vec<GuestPort>,
    /// Where guests may go.
    #[serde(default)]
    pub egress: Egress,
    /// The zones that the node's resolver asks their own servers about.
    #[serde(default)]
    pub zones: Vec<ZoneServers>,
}

/// A guest's port of the bridge: nothing goes through it but what is sent from, or to, this address and MAC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPort {
    /// The guest, for the name of the port.
    pub guest: GuestName,
    /// Its address; the host's end of its cable is named after it.
    pub ip: Ipv4Addr,
    /// Its MAC.
    pub mac: MacAddress,
}

/// Where guests may go besides the internet, and what is closed to them besides private networks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Egress {
    /// Addresses of what Corpus is made of: the controller, its database, the directory, nodes.
    pub denied: Vec<Ipv4Addr>,
    /// Nodes whose sites guests may ask for as the world does, by HTTP and HTTPS only.
    pub sites: Vec<Ipv4Addr>,
    /// What ops let them reach all the same.
    pub allowed: Vec<EgressRule>,
}

/// A zone of ours, and who answers for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneServers {
    /// The zone.
    pub zone: DnsName,
    /// Its name servers, as nodes reach them.
    pub servers: Vec<SocketAddr>,
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
