//! Where a node answers, as whom it is entered, and by what it is recognised.

use corpus_domain::{NodeAddress, NodeId, UnixUser};

use super::host_key::HostKey;

/// All that is needed to reach a linked node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// The node.
    pub id: NodeId,
    /// Where its sshd listens.
    pub address: NodeAddress,
    /// On which TCP port.
    pub port: u16,
    /// The account: `root`, or one that has `sudo` without a password.
    pub user: UnixUser,
    /// The host key that a person confirmed.
    pub pinned_host_key: HostKey,
}

impl NodeEndpoint {
    /// `address:port` for messages, with brackets around an IPv6 address.
    pub fn host(&self) -> String {
        host(&self.address, self.port)
    }
}

pub(super) fn host(address: &NodeAddress, port: u16) -> String {
    match address {
        NodeAddress::Ip(std::net::IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
        other => format!("{other}:{port}"),
    }
}
