//! How much of a visitor's address is told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use corpus_protocol::AddressDetail;

/// An address as far as it was asked for: `192.0.2.0/24`, `2001:db8::/48`. One of IPv4 that came by a socket of IPv6 is one
/// of IPv4.
pub fn shown(address: IpAddr, detail: AddressDetail) -> Option<String> {
    let address = address.to_canonical();
    match (detail, address) {
        (AddressDetail::None, _) => None,
        (AddressDetail::Whole, address) => Some(address.to_string()),
        (AddressDetail::Cut, IpAddr::V4(ip)) => {
            let [a, b, c, _] = ip.octets();
            Some(format!("{}/24", Ipv4Addr::new(a, b, c, 0)))
        }
        (AddressDetail::Cut, IpAddr::V6(ip)) => {
            let [a, b, c, ..] = ip.segments();
            Some(format!("{}/48", Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_network_alone_all_or_nothing() {
        let told = |ip: &str, detail| shown(ip.parse().unwrap(), detail);
        for (ip, cut) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
        ] {
            assert_eq!(told(ip, AddressDetail::Cut).as_deref(), Some(cut));
            assert_eq!(told(ip, AddressDetail::None), None);
        }
        assert_eq!(told("::ffff:192.0.2.77", AddressDetail::Whole).as_deref(), Some("192.0.2.77"));
    }

    proptest! {
        #[test]
        fn neighbours_look_alike(network: [u16; 3], one: [u16; 5], other: [u16; 5]) {
            let of = |rest: [u16; 5]| {
                let ([a, b, c], [d, e, f, g, h]) = (network, rest);
                shown(Ipv6Addr::new(a, b, c, d, e, f, g, h).into(), AddressDetail::Cut)
            };
            // Those that are IPv4 in truth are cut as such.
            prop_assume!(network != [0, 0, 0]);
            prop_assert_eq!(of(one), of(other));
        }
    }
}
