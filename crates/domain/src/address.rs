//! Where a host answers: a name or an address, and never a port with it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::names::HostName;
use crate::schema::schema;
use crate::text::Invalid;

/// Where a host answers SSH: a host name or an IP address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum NodeAddress {
    /// A name to resolve.
    Name(HostName),
    /// An IPv4 or IPv6 address.
    Ip(IpAddr),
}

schema!(
    NodeAddress,
    text(
        "Where a host answers SSH: a host name or an IP address.",
        crate::schema::patterns::address(),
        253,
        "node-01.example.org"
    )
);

impl std::str::FromStr for NodeAddress {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let bare = given.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(given);
        if let Ok(ip) = bare.parse() {
            return Ok(Self::Ip(ip));
        }
        given
            .parse()
            .map(Self::Name)
            .map_err(|_| Invalid::new("address", given, "a host name such as node-01.example.org or an IP address"))
    }
}

impl TryFrom<String> for NodeAddress {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<NodeAddress> for String {
    fn from(value: NodeAddress) -> String {
        value.to_string()
    }
}

impl std::fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert!(matches!("10.0.0.1".parse().unwrap(), NodeAddress::Ip(_)));
        assert!(matches!("[::1]".parse().unwrap(), NodeAddress::Ip(_)));
        assert!(matches!("node-01".parse().unwrap(), NodeAddress::Name(_)));
        assert!("10.0.0.256".parse::<NodeAddress>().is_err());
        assert!("host:22".parse::<NodeAddress>().is_err());
    }
}
