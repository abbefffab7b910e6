//! Rules of a firewall as people write them: which ports, and who may come to them.

use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::egress::Ipv4Network;
use crate::names::{Environment, GuestName, NetworkName};
use crate::schema::schema;
use crate::text::{Invalid, word_enum};

/// The ports of a node from which one is given to who publishes a port of a guest.
pub const PUBLISHED_PORTS: RangeInclusive<u16> = 30_000..=39_999;

/// Ports: one, or all from a first to a last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    first: u16,
    last: u16,
}

schema!(PortRange, text("A port, or a range of ports.", crate::schema::patterns::port_range(), 11, "8000-8010"));

impl PortRange {
    /// Every port.
    pub const ALL: Self = Self { first: 1, last: u16::MAX };

    /// The first.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The last, which may be the first.
    pub const fn last(self) -> u16 {
        self.last
    }

    /// The ports between two, whichever is the lower one; none where one of them is 0.
    pub fn between(one: u16, other: u16) -> Option<Self> {
        let range = Self { first: one.min(other), last: one.max(other) };
        (range.first > 0).then_some(range)
    }
}

impl FromStr for PortRange {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("port", given, "a port such as 5432, or a range such as 8000-8010");
        let port = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u16>().ok().filter(|_| digits)
        };
        let (first, last) = given.split_once('-').unwrap_or((given, given));
        let ports = port(first).zip(port(last)).ok_or_else(invalid)?;
        Self::between(ports.0, ports.1).ok_or_else(invalid)
    }
}

impl TryFrom<String> for PortRange {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> String {
        range.to_string()
    }
}

impl std::fmt::Display for PortRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// Who a rule lets in, or keeps out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RuleSource {
    /// Whatever reaches the node, but no guest of it.
    Anywhere,
    /// These addresses.
    Addresses(Ipv4Network),
    /// A guest of the same project.
    Guest(GuestName),
    /// All guests of an environment of the same project.
    Environment(Environment),
    /// The addresses that operators gave a name.
    Network(NetworkName),
}

schema!(
    RuleSource,
    text(
        "Who is let in: `anywhere`, an IPv4 address or network, `guest:NAME`, `environment:NAME`, or `network:NAME`.",
        crate::schema::patterns::rule_source(),
        69,
        "guest:web.example.org"
    )
);

impl FromStr for RuleSource {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        const EXPECTED: &str = "anywhere, an address or network such as 192.0.2.0/24, guest:NAME, \
                                environment:dev, or network:NAME";
        let invalid = || Invalid::new("source", given, EXPECTED);
        let Some((kind, name)) = given.split_once(':') else {
            return match given {
                "anywhere" => Ok(Self::Anywhere),
                text => text.parse().map(Self::addresses).map_err(|_| invalid()),
            };
        };
        match kind {
            "guest" => name.parse().map(Self::Guest).map_err(|_| invalid()),
            "environment" => name.parse().map(Self::Environment).map_err(|_| invalid()),
            "network" => name.parse().map(Self::Network).map_err(|_| invalid()),
            _ => Err(invalid()),
        }
    }
}

impl RuleSource {
    /// All addresses are anywhere.
    pub fn addresses(network: Ipv4Network) -> Self {
        if network == Ipv4Network::ANY { Self::Anywhere } else { Self::Addresses(network) }
    }
}

impl TryFrom<String> for RuleSource {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<RuleSource> for String {
    fn from(source: RuleSource) -> String {
        source.to_string()
    }
}

impl std::fmt::Display for RuleSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anywhere => f.write_str("anywhere"),
            Self::Addresses(network) => match network.single() {
                Some(address) => address.fmt(f),
                None => network.fmt(f),
            },
            Self::Guest(name) => write!(f, "guest:{name}"),
            Self::Environment(environment) => write!(f, "environment:{environment}"),
            Self::Network(name) => write!(f, "network:{name}"),
        }
    }
}

word_enum!(
    /// What a rule does.
    RuleAction, "action", {
        /// Lets connections through to ports of guests.
        Allow = "allow",
        /// Leads a port of the node to a port of a guest.
        Publish = "publish",
        /// Keeps addresses out, whatever else allows them.
        Block = "block",
    }
);

word_enum!(
    /// How far a rule is.
    RuleState, "state of a rule", {
        /// On its way to its node.
        Wanted = "wanted",
        /// Its node has it.
        InForce = "in_force",
        /// On its way out.
        Removing = "removing",
    }
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ports_as_people_write_them() {
        for (given, told) in [("5432", "5432"), ("8000-8010", "8000-8010"), ("9-3", "3-9"), ("7-7", "7")] {
            assert_eq!(given.parse::<PortRange>().unwrap().to_string(), told);
        }
        for bad in ["", "0", "0-5", "65536", "1-", "-1", "+1", "1-2-3", "80,443", "http", "80 ", "80\n"] {
            assert!(bad.parse::<PortRange>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn sources_as_people_write_them() {
        for (given, told) in [
            ("anywhere", "anywhere"),
            ("0.0.0.0/0", "anywhere"),
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7/32", "192.0.2.7"),
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("guest:db.example.org", "guest:db.example.org"),
            ("environment:dev", "environment:dev"),
            ("network:office", "network:office"),
        ] {
            assert_eq!(given.parse::<RuleSource>().unwrap().to_string(), told);
        }
        for bad in [
            "",
            "everywhere",
            "192.0.2.7/24",
            "fd00::1",
            "guest:",
            "guest:no dot",
            "environment:test",
            "network:Office",
            "project:atlas",
            "192.0.2.7; drop",
        ] {
            assert!(bad.parse::<RuleSource>().is_err(), "{bad:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn nothing_else_gets_into_a_range(given in "[0-9 -~\\n]{0,14}") {
            if let Ok(range) = given.parse::<PortRange>() {
                prop_assert!(range.first() <= range.last() && range.first() > 0);
                prop_assert_eq!(range.to_string().parse::<PortRange>().unwrap(), range);
            }
        }
    }
}
