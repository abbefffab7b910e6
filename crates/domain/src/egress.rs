//! Where guests may go besides the internet: networks, and what of them.

use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::schema::schema;
use crate::text::{Invalid, word_enum};

/// An IPv4 network, `10.1.2.0/24`; a single address is one of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ipv4Network {
    first: Ipv4Addr,
    prefix: u8,
}

schema!(
    Ipv4Network,
    text(
        "An IPv4 address, or a network without host bits.",
        crate::schema::patterns::ipv4_network(),
        18,
        "10.1.2.0/24"
    )
);

impl Ipv4Network {
    /// All addresses.
    pub const ANY: Self = Self { first: Ipv4Addr::UNSPECIFIED, prefix: 0 };

    /// Its one address, if it is a single one.
    pub const fn single(self) -> Option<Ipv4Addr> {
        if self.prefix == 32 { Some(self.first) } else { None }
    }

    /// The network of these leading bits, 32 at most; the other bits of the address don't count.
    pub fn new(address: Ipv4Addr, prefix: u8) -> Self {
        let prefix = prefix.min(32);
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        Self { first: Ipv4Addr::from_bits(address.to_bits() & mask), prefix }
    }

    /// Whether all of the other one lies in this.
    pub fn holds(self, other: Self) -> bool {
        self.prefix <= other.prefix && Self::new(other.first, self.prefix) == self
    }
}

impl From<Ipv4Addr> for Ipv4Network {
    fn from(address: Ipv4Addr) -> Self {
        Self { first: address, prefix: 32 }
    }
}

impl FromStr for Ipv4Network {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let invalid =
            || Invalid::new("network", given, "an IPv4 address or a network such as 10.1.2.0/24, without host bits");
        let (address, prefix) = given.split_once('/').unwrap_or((given, "32"));
        let address = address.parse().map_err(|_| invalid())?;
        let digits = !prefix.is_empty() && prefix.len() <= 2 && prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix: u8 = prefix.parse().ok().filter(|prefix| digits && *prefix <= 32).ok_or_else(invalid)?;
        let network = Self::new(address, prefix);
        if network.first == address { Ok(network) } else { Err(invalid()) }
    }
}

impl TryFrom<String> for Ipv4Network {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<Ipv4Network> for String {
    fn from(network: Ipv4Network) -> String {
        network.to_string()
    }
}

impl std::fmt::Display for Ipv4Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

word_enum!(
    /// What has ports.
    Transport, "protocol", {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }
);

/// What guests may reach although it is closed to them otherwise: `10.1.2.3:5432` (TCP),
/// `10.1.2.3:53/udp`, or all of a network, `10.1.2.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EgressRule {
    /// Where to.
    pub to: Ipv4Network,
    /// Which port only.
    pub port: Option<(Transport, u16)>,
}

schema!(
    EgressRule,
    text(
        "What guests may reach although it is closed to them otherwise: a network, or a port of it (TCP unless said).",
        crate::schema::patterns::egress_rule(),
        28,
        "10.1.2.3:53/udp"
    )
);

impl FromStr for EgressRule {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let invalid = || {
            Invalid::new("destination", given, "10.1.2.3:5432 (TCP), 10.1.2.3:53/udp, or a network such as 10.1.2.0/24")
        };
        let Some((to, port)) = given.split_once(':') else {
            return Ok(Self { to: given.parse().map_err(|_| invalid())?, port: None });
        };
        let (port, transport) = match port.split_once('/') {
            None => (port, Transport::Tcp),
            Some((port, "tcp")) => (port, Transport::Tcp),
            Some((port, "udp")) => (port, Transport::Udp),
            Some(_) => return Err(invalid()),
        };
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        let port = port.parse().ok().filter(|port| digits && *port != 0).ok_or_else(invalid)?;
        Ok(Self { to: to.parse().map_err(|_| invalid())?, port: Some((transport, port)) })
    }
}

impl TryFrom<String> for EgressRule {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<EgressRule> for String {
    fn from(rule: EgressRule) -> String {
        rule.to_string()
    }
}

impl std::fmt::Display for EgressRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some((transport, port)) => write!(f, "{}:{port}/{transport}", self.to),
            None => self.to.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_ops_write() {
        for (given, told) in [
            ("10.1.2.3/32:5432", "10.1.2.3/32:5432/tcp"),
            ("10.1.2.3:53/udp", "10.1.2.3/32:53/udp"),
            ("10.1.2.3:53/tcp", "10.1.2.3/32:53/tcp"),
            ("10.1.2.0/24", "10.1.2.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
        ] {
            assert_eq!(given.parse::<EgressRule>().unwrap().to_string(), told);
        }
        for bad in [
            "",
            "10.1.2.3/24",
            "10.1.2.3/33",
            "10.1.2.3/",
            "10.1.2.3:0",
            "10.1.2.3:65536",
            "10.1.2.3:+5",
            "db:5432",
            "10.1.2.3:5/sctp",
            "10.1.2.3:53/udp/tcp",
            "fd00::1",
            "10.1.2.0/+24",
            "10.1.2.3 accept",
            "10.1.2.3:5\n",
        ] {
            assert!(bad.parse::<EgressRule>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_network_holds_what_lies_in_it() {
        let network = |text: &str| text.parse::<Ipv4Network>().unwrap();
        assert!(network("10.0.0.0/8").holds(network("10.1.2.3")));
        assert!(network("0.0.0.0/0").holds(network("10.0.0.0/8")));
        assert!(!network("10.0.0.0/9").holds(network("10.0.0.0/8")));
        assert!(!network("10.0.0.0/8").holds(network("11.0.0.0/16")));
    }

    proptest! {
        #[test]
        fn nothing_else_gets_into_a_rule(given in "[0-9./:a-z \\n;{}]{0,30}") {
            if let Ok(rule) = given.parse::<EgressRule>() {
                prop_assert!(rule.to_string().bytes().all(|b| b.is_ascii_digit() || b"./:tcpud".contains(&b)));
                prop_assert_eq!(rule.to_string().parse::<EgressRule>().unwrap(), rule);
            }
        }
    }
}
