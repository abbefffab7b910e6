//! Where a host answers, as whom it is entered, and by what it is recognised.

use std::fmt::{Debug, Display};
use std::hash::Hash;

use corpus_domain::{GuestId, NodeAddress, NodeId, UnixUser};

use super::gateway::Gateway;
use super::host_key::HostKey;

/// What tells one host from the others.
pub trait HostId: Copy + Eq + Hash + Debug + Display + Send + Sync + 'static {}

impl HostId for NodeId {}
impl HostId for GuestId {}

/// All that is needed to reach a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint<Id> {
    /// Which host.
    pub id: Id,
    /// Where its sshd answers: for a guest, the address of its node.
    pub address: NodeAddress,
    /// On which TCP port: for a guest, its node's port that leads there.
    pub port: u16,
    /// The account: `root`, or one that has `sudo` without a password.
    pub user: UnixUser,
    /// The host key that a person confirmed, or that we gave to the guest.
    pub pinned_host_key: HostKey,
    /// What it is reached through, if it does not answer from here: for a guest, what its node is.
    pub gateway: Option<Box<Gateway>>,
}

/// How a linked node is reached.
pub type NodeEndpoint = Endpoint<NodeId>;
/// How a guest is reached, through its node.
pub type GuestEndpoint = Endpoint<GuestId>;

impl<Id> Endpoint<Id> {
    /// `address:port` for messages, with brackets around an IPv6 address, and through which gateway.
    pub fn host(&self) -> String {
        let own = host(&self.address, self.port);
        self.gateway.as_ref().map_or_else(|| own.clone(), |gateway| format!("{own} through {}", gateway.host()))
    }
}

/// `address:port`, with brackets around an IPv6 address.
pub fn host(address: &NodeAddress, port: u16) -> String {
    match address {
        NodeAddress::Ip(std::net::IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
        other => format!("{other}:{port}"),
    }
}
