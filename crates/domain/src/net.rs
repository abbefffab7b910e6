//! The network of a node: its guests' addresses, MACs and SSH ports.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::schema::schema;
use crate::text::Invalid;

/// The TCP ports of a node that lead to its guests' SSH, one a guest.
pub const SSH_PORTS: RangeInclusive<u16> = 40_000..=50_000;

/// A port of [`SSH_PORTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct SshPort(u16);

schema!(
    SshPort,
    number("A TCP port of a node that leads to the SSH of a guest.", *SSH_PORTS.start(), *SSH_PORTS.end())
);

impl SshPort {
    /// The port number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for SshPort {
    type Error = Invalid;
    fn try_from(port: u16) -> Result<Self, Invalid> {
        if SSH_PORTS.contains(&port) {
            Ok(Self(port))
        } else {
            Err(Invalid::new("SSH port", &port.to_string(), "40000 to 50000"))
        }
    }
}

impl From<SshPort> for u16 {
    fn from(port: SshPort) -> u16 {
        port.0
    }
}

impl FromStr for SshPort {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let port: Option<u16> = given.parse().ok();
        port.ok_or_else(|| Invalid::new("SSH port", given, "40000 to 50000"))?.try_into()
    }
}

impl std::fmt::Display for SshPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An Ethernet address of a guest: always in Xen's block 00:16:3e, as LXC and libvirt use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress([u8; 3]);

schema!(
    MacAddress,
    text(
        "An Ethernet address of a guest: always in Xen's block 00:16:3e.",
        "^00:16:3[Ee](:[0-9A-Fa-f]{2}){3}$",
        17,
        "00:16:3e:05:00:0a"
    )
);

impl MacAddress {
    /// The MAC of a guest by its address: 00:16:3e and the last three bytes of the address, so
    /// a guest that takes over an address takes over the MAC too, and no stale ARP entry delays it.
    pub fn for_ip(ip: Ipv4Addr) -> Self {
        let [_, b, c, d] = ip.octets();
        Self([b, c, d])
    }
}

impl FromStr for MacAddress {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("MAC", given, "00:16:3e:xx:xx:xx");
        let rest = given
            .get(..9)
            .filter(|head| head.eq_ignore_ascii_case("00:16:3e:"))
            .and_then(|_| given.get(9..))
            .ok_or_else(invalid)?;
        let mut bytes = [0_u8; 3];
        let mut parts = rest.split(':');
        for byte in &mut bytes {
            let part = parts
                .next()
                .filter(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))
                .ok_or_else(invalid)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| invalid())?;
        }
        if parts.next().is_some() { Err(invalid()) } else { Ok(Self(bytes)) }
    }
}

impl TryFrom<String> for MacAddress {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<MacAddress> for String {
    fn from(mac: MacAddress) -> String {
        mac.to_string()
    }
}

impl std::fmt::Display for MacAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c] = self.0;
        write!(f, "00:16:3e:{a:02x}:{b:02x}:{c:02x}")
    }
}

/// The IPv4 network of a node's guests: the gateway's address and the prefix, `10.5.0.1/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GuestNetwork {
    gateway: Ipv4Addr,
    prefix: u8,
}

schema!(
    GuestNetwork,
    text(
        "The IPv4 network of a node's guests: the gateway's private address and a prefix of 8 to 28.",
        crate::schema::patterns::guest_network(),
        18,
        "10.5.0.1/16"
    )
);

impl GuestNetwork {
    /// The default of the design: 10.5.0.0/16 with the gateway 10.5.0.1.
    pub const DEFAULT: Self = Self { gateway: Ipv4Addr::new(10, 5, 0, 1), prefix: 16 };

    /// The node's own address on the bridge.
    pub const fn gateway(self) -> Ipv4Addr {
        self.gateway
    }

    /// The prefix length, 8 to 28.
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// The network's first address.
    pub fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.gateway.to_bits() & self.mask())
    }

    /// The netmask, 255.255.0.0.
    pub fn netmask(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.mask())
    }

    fn mask(self) -> u32 {
        u32::MAX << (32 - self.prefix)
    }

    fn broadcast(self) -> u32 {
        self.network().to_bits() | !self.mask()
    }

    /// Whether a guest may have this address: inside, and neither network, broadcast nor gateway.
    pub fn takes(self, ip: Ipv4Addr) -> bool {
        let bits = ip.to_bits();
        bits > self.network().to_bits() && bits < self.broadcast() && ip != self.gateway
    }

    /// The addresses for guests, lowest first, beginning ten above the network's own address
    /// (the first few are left to people).
    pub fn guest_addresses(self) -> impl Iterator<Item = Ipv4Addr> {
        (self.network().to_bits() + 10..self.broadcast()).map(Ipv4Addr::from_bits).filter(move |ip| *ip != self.gateway)
    }
}

impl FromStr for GuestNetwork {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let not = |expected| Invalid::new("guest network", given, expected);
        let invalid = || not("the gateway's address and a prefix of 8 to 28, such as 10.5.0.1/16");
        let (gateway, prefix) = given.split_once('/').ok_or_else(invalid)?;
        let this =
            Self { gateway: gateway.parse().map_err(|_| invalid())?, prefix: prefix.parse().map_err(|_| invalid())? };
        if !(8..=28).contains(&this.prefix) {
            return Err(not("a prefix of 8 to 28 after the gateway's address, such as 10.5.0.1/16"));
        }
        if !this.gateway.is_private() {
            return Err(not("an address of a private network (10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16)"));
        }
        match this.gateway.to_bits() {
            bits if bits == this.network().to_bits() || bits == this.broadcast() => {
                Err(not("the gateway's own address in the network, such as 10.5.0.1/16, not the network's"))
            }
            _ => Ok(this),
        }
    }
}

impl TryFrom<String> for GuestNetwork {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<GuestNetwork> for String {
    fn from(network: GuestNetwork) -> String {
        network.to_string()
    }
}

impl std::fmt::Display for GuestNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.gateway, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_default_network() {
        let network = GuestNetwork::DEFAULT;
        assert_eq!(network.to_string().parse::<GuestNetwork>().unwrap(), network);
        assert_eq!(network.network(), Ipv4Addr::new(10, 5, 0, 0));
        assert_eq!(network.guest_addresses().next().unwrap(), Ipv4Addr::new(10, 5, 0, 10));
        assert!(!network.takes(network.gateway()));
        assert!(!network.takes(Ipv4Addr::new(10, 5, 255, 255)));
        assert!(!network.takes(Ipv4Addr::new(10, 6, 0, 10)));
    }

    #[test]
    fn a_network_that_is_refused_is_told_the_rule_that_it_breaks() {
        for (bad, rule) in [
            ("8.8.8.0/24", "private network"),
            ("10.5.0.0/16", "not the network's"),
            ("10.5.0.1/29", "a prefix of 8 to 28"),
            ("10.5.0.1", "the gateway's address and a prefix"),
        ] {
            let refused = bad.parse::<GuestNetwork>().unwrap_err();
            assert!(refused.expected.contains(rule), "{refused}");
        }
    }

    #[test]
    fn refuses_bad_networks() {
        for bad in ["10.5.0.1", "10.5.0.0/16", "10.5.0.1/31", "10.5.0.1/7", "8.8.8.8/16", "10.5.0.1/16; reboot"] {
            assert!(bad.parse::<GuestNetwork>().is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn mac_round_trip() {
        let mac = MacAddress::for_ip(Ipv4Addr::new(10, 5, 241, 129));
        assert_eq!(mac.to_string(), "00:16:3e:05:f1:81");
        assert_eq!(mac.to_string().parse::<MacAddress>().unwrap(), mac);
        for bad in
            ["00:16:3e:05:f1", "00:16:3e:05:f1:81:00", "00:17:3e:05:f1:81", "00:16:3e:05:f1:8g", "00:16:3e:+5:f1:81"]
        {
            assert!(bad.parse::<MacAddress>().is_err(), "{bad} was accepted");
        }
    }

    proptest! {
        #[test]
        fn every_guest_address_is_taken(b in 0_u8..=255, prefix in 20_u8..=28) {
            let network: GuestNetwork = format!("10.{b}.0.1/{prefix}").parse().unwrap();
            prop_assert!(network.guest_addresses().all(|ip| network.takes(ip)));
        }
    }
}
