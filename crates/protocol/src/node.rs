//! What a node should look like: sent whole, applied as a whole.

use std::net::{Ipv4Addr, SocketAddr};

use corpus_domain::{
    BalancePolicy, Bytes, CheckPath, DnsName, EgressRule, FirewallRuleId, GuestName, GuestNetwork, Ipv4Network,
    MacAddress, NodeId, PoolId, PortRange, SourceAddress, SshPort, Stickiness, Transport,
};
use serde::{Deserialize, Serialize};

use crate::certificates::{HttpChallenge, ServedCertificate};
use crate::links::Links;
use crate::mail::MailPlan;

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
    /// The node's ports that lead to ports of guests.
    #[serde(default)]
    pub published: Vec<PublishedPort>,
    /// What is kept from guests, whatever else lets it through.
    #[serde(default)]
    pub blocks: Vec<Block>,
    /// The addresses that are kept from the node and all its guests for a while, [`crate::MAX_BLOCKED`] at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<SourceAddress>,
    /// Who may send what on which port of the bridge.
    #[serde(default)]
    pub ports: Vec<GuestPort>,
    /// The guests that are tried: entered by SSH, and otherwise reaching nothing and reached by nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolated: Vec<Ipv4Addr>,
    /// Where guests may go.
    #[serde(default)]
    pub egress: Egress,
    /// The zones that the node's resolver asks their own servers about.
    #[serde(default)]
    pub zones: Vec<ZoneServers>,
    /// The certificates of its names. One whose file is not there is not served, and keeps no other from being.
    #[serde(default)]
    pub certificates: Vec<ServedCertificate>,
    /// What the proxy answers to authorities, before anything else.
    #[serde(default)]
    pub challenges: Vec<HttpChallenge>,
    /// The guests that share names.
    #[serde(default)]
    pub pools: Vec<Pool>,
    /// The ways to other nodes, whose guests share names with those of this one; none: there are no such names here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// How it takes mail from guests; it takes none when this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<MailPlan>,
}

impl NodePlan {
    /// All certificates whose files the node needs.
    pub fn all_certificates(&self) -> impl Iterator<Item = &ServedCertificate> {
        self.certificates.iter().chain(self.links.iter().map(|links| &links.certificate))
    }
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
    /// Whether it is all names right below this one that have no route of their own, instead.
    #[serde(default)]
    pub wildcard: bool,
    /// The guest, for the name of the route.
    pub guest: GuestName,
    /// The guest's address.
    pub ip: Ipv4Addr,
    /// How it is with HTTPS.
    #[serde(default)]
    pub https: Https,
    /// The pool over which its requests are balanced; they go to the guest when none is given, or none of the pool's
    /// members can take them. A wildcard has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolId>,
}

/// What visitors of a name are told about HTTPS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Https {
    /// Who comes by HTTP is sent there.
    pub redirect: bool,
    /// How long browsers are to come by HTTPS alone (`Strict-Transport-Security`), in seconds; nothing is said when absent.
    pub hsts_s: Option<u32>,
}

/// Guests of one environment over which the requests of its names are balanced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Which.
    pub id: PoolId,
    /// The guests; a guest is in one pool at most.
    pub members: Vec<PoolMember>,
    /// Which of them the next request goes to.
    pub policy: BalancePolicy,
    /// By what a visitor comes back to the same.
    pub stickiness: Stickiness,
    /// What a member must answer to be given requests; that it takes connections when there is none.
    pub check: Option<HealthCheck>,
}

/// A guest of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolMember {
    /// The guest.
    pub guest: GuestName,
    /// Its address, and its port is 80; or that of the node which it is on.
    pub ip: Ipv4Addr,
    /// Whether it is given requests, as long as it passes the check.
    pub active: bool,
    /// The other node that it is on, whose proxy brings the requests to it (see [`Links`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<NodeId>,
}

/// A page that a member of a pool must serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCheck {
    /// The name in the Host header.
    pub host: DnsName,
    /// Its path.
    pub path: CheckPath,
    /// The status that it must have.
    pub status: u16,
}

/// One more thing that the firewall lets through towards guests. A single address of the guests' network is another
/// guest; whatever else is said comes from outside of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRule {
    /// What it is counted by.
    pub id: FirewallRuleId,
    /// From where.
    pub from: Vec<Ipv4Network>,
    /// To which guests.
    pub to: Vec<Ipv4Addr>,
    /// TCP or UDP.
    pub protocol: Transport,
    /// To which ports of theirs.
    pub ports: PortRange,
}

/// A port of the node that leads to one of a guest, for what comes from outside of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedPort {
    /// What it is counted by.
    pub id: FirewallRuleId,
    /// TCP or UDP.
    pub protocol: Transport,
    /// The node's port.
    pub port: u16,
    /// To which guest.
    pub to: Ipv4Addr,
    /// To which port of it.
    pub to_port: u16,
    /// For whom.
    pub from: Vec<Ipv4Network>,
}

/// What is kept from all guests of the node, from the proxy and from the SSH ports too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// What it is counted by.
    pub id: FirewallRuleId,
    /// From where.
    pub from: Vec<Ipv4Network>,
    /// Which ports only.
    pub only: Option<(Transport, PortRange)>,
}

/// What the firewall of a node has counted, and what it kept from guests last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallReading {
    /// What each rule let through, or kept out.
    pub counts: Vec<RuleCount>,
    /// The last drops, the newest of each guest first.
    pub drops: Vec<Dropped>,
}

/// What matched a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCount {
    /// Which rule.
    pub id: FirewallRuleId,
    /// How many packets.
    pub packets: u64,
    /// Their size.
    pub bytes: u64,
}

/// Packets that were kept from a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// From which guest.
    pub to: Ipv4Addr,
    /// Where they came from.
    pub from: Ipv4Addr,
    /// TCP or UDP.
    pub protocol: Transport,
    /// To which of its ports.
    pub port: u16,
    /// How many.
    pub packets: u64,
    /// How long ago the last one was.
    pub age_s: u32,
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
        /// How much is in it, where that is known; three times its size is taken for it else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unpacked: Option<Bytes>,
    },
    /// Built on the node by debootstrap.
    Debootstrap {
        /// The suite, `bookworm`.
        suite: String,
        /// The mirror's URL; the node's own first Debian source when absent.
        mirror: Option<String>,
    },
}
