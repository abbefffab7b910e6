//! Where visitors come from, as they are counted and kept out: one IPv4 address, or a whole IPv6 network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::schema::schema;
use crate::text::Invalid;

/// The bits of an IPv6 address that say whose it is: whoever has one address of such a network has them all.
const PREFIX: u8 = 64;

/// An IPv4 address, or the /64 of an IPv6 one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SourceAddress {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// The network of an IPv6 address, by its first one.
    V6(Ipv6Addr),
}

schema!(
    SourceAddress,
    text("An IPv4 address, or an IPv6 network of 64 bits.", crate::schema::patterns::source_address(), 39, "192.0.2.7")
);

impl SourceAddress {
    /// Where an address counts; an IPv4 address in the form of an IPv6 one is an IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6(Ipv6Addr::from_bits(address.to_bits() >> PREFIX << PREFIX)),
        }
    }

    /// Whether an address counts here.
    pub fn holds(self, address: IpAddr) -> bool {
        Self::of(address) == self
    }

    /// The address, or the first one of the network.
    pub const fn first(self) -> IpAddr {
        match self {
            Self::V4(address) => IpAddr::V4(address),
            Self::V6(address) => IpAddr::V6(address),
        }
    }
}

impl FromStr for SourceAddress {
    type Err = Invalid;
    /// Any address is taken, for its network; of networks of IPv6 those of 64 bits.
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let invalid =
            || Invalid::new("address", given, "an address such as 192.0.2.7, or a network such as 2001:db8:1:2::/64");
        if given.len() > 45 {
            return Err(invalid());
        }
        let Some(network) = given.strip_suffix("/64") else {
            return given.parse().map(Self::of).map_err(|_| invalid());
        };
        let address: Ipv6Addr = network.parse().map_err(|_| invalid())?;
        let source = Self::of(address.into());
        if source == Self::V6(address) { Ok(source) } else { Err(invalid()) }
    }
}

impl TryFrom<String> for SourceAddress {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<SourceAddress> for String {
    fn from(source: SourceAddress) -> String {
        source.to_string()
    }
}

impl std::fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(network) => write!(f, "{network}/{PREFIX}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_people_and_programs_write_them() {
        for (given, told) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:DB8:1:2::/64", "2001:db8:1:2::/64"),
        ] {
            assert_eq!(given.parse::<SourceAddress>().unwrap().to_string(), told);
        }
        for bad in [
            "",
            "192.0.2.0/24",
            "192.0.2.7/64",
            "2001:db8::/32",
            "2001:db8::1/64",
            "::ffff:192.0.2.7/64",
            "x",
            "192.0.2.7 ",
        ] {
            assert!(bad.parse::<SourceAddress>().is_err(), "{bad:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn neighbours_of_one_network_count_together(network in any::<u64>(), one in any::<u64>(), other in any::<u64>()) {
            let address = |host: u64| IpAddr::from(Ipv6Addr::from_bits(u128::from(network) << 64 | u128::from(host)));
            let source = SourceAddress::of(address(one));
            prop_assert!(source.holds(address(other)));
            prop_assert_eq!(source.to_string().parse::<SourceAddress>().unwrap(), source);
        }

        #[test]
        fn nothing_else_gets_into_one(given in "[0-9a-f:./ \\n]{0,24}") {
            if let Ok(source) = given.parse::<SourceAddress>() {
                prop_assert_eq!(source.to_string().parse::<SourceAddress>().unwrap(), source);
            }
        }
    }
}
