//! Where a webhook may lead: to the internet, not to what this server can reach besides.
//!
//! Refused are the networks that are somebody's own (loopback, link-local, private, shared, those of documentation and
//! tests), whatever is wrapped in an IPv6 address, this very machine, and what Corpus is made of, as nodes know it. The
//! sites of nodes are open as they are to guests: by their ports. What the operator allows is open in any case.
//!
//! Every address of a name must be one that may be reached, and the connection is made to those that were judged: a name
//! that is answered otherwise a moment later changes nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use sqlx::PgConnection;
use url::{Host, Url};

use crate::store::infrastructure;
use crate::surroundings::Surroundings;

/// How long a name may take to resolve.
const LOOKUP: Duration = Duration::from_secs(5);
/// As many addresses of a name are looked at.
const MOST: usize = 16;
/// Where sites of nodes are asked for.
const SITE_PORTS: [u16; 2] = [80, 443];

/// What is said when a destination is refused: no more, since it would tell of names and networks that are not theirs.
pub const REFUSED: &str = "the host can't be resolved, or is where webhooks do not go";

/// The addresses of an URL's host, each judged; none when it is refused.
pub async fn resolve(url: &Url) -> Option<Vec<SocketAddr>> {
    let port = url.port_or_known_default()?;
    let found: Vec<SocketAddr> = match url.host()? {
        Host::Ipv4(ip) => vec![SocketAddr::new(ip.into(), port)],
        Host::Ipv6(ip) => vec![SocketAddr::new(ip.into(), port)],
        Host::Domain(name) => {
            let looked_up = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((name, port))).await.ok()?.ok()?;
            looked_up.take(MOST + 1).collect()
        }
    };
    Some(found).filter(|found| !found.is_empty() && found.len() <= MOST)
}

/// Whether all of these may be reached.
pub async fn judge(conn: &mut PgConnection, decided: &Surroundings, to: &[SocketAddr]) -> sqlx::Result<bool> {
    let (own, sites) = (infrastructure::addresses(conn).await?, infrastructure::sites(conn).await?);
    Ok(!to.is_empty() && to.iter().all(|to| may_reach(*to, &decided.webhooks, &own, &sites)))
}

fn may_reach(to: SocketAddr, allowed: &[IpNet], own: &[Ipv4Addr], sites: &[Ipv4Addr]) -> bool {
    let ip = to.ip().to_canonical();
    if allowed.iter().any(|network| network.contains(&ip)) {
        return true;
    }
    let is_closed = match ip {
        IpAddr::V4(ip) if sites.contains(&ip) => !SITE_PORTS.contains(&to.port()),
        IpAddr::V4(ip) => own.contains(&ip),
        IpAddr::V6(_) => false,
    };
    is_public(ip) && !is_closed && (is_site(ip, sites) || !is_here(ip))
}

fn is_site(ip: IpAddr, sites: &[Ipv4Addr]) -> bool {
    matches!(ip, IpAddr::V4(ip) if sites.contains(&ip))
}

/// Whether the address is one of this machine: only those can be bound to.
fn is_here(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

/// Whether an address is one of the internet. By the registries of IANA for special purposes.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let special = match ip.octets() {
        // Protocol assignments, documentation, the relays of 6to4, and what networks are tested with.
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [198, 18 | 19, ..]
        | [0 | 10 | 127, ..]
        | [169, 254, ..]
        | [192, 168, ..] => true,
        [100, second, ..] => (64..128).contains(&second),
        [172, second, ..] => (16..32).contains(&second),
        // Multicast, and what is reserved.
        [first, ..] => first >= 224,
    };
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        // Protocol assignments with Teredo, documentation, 6to4: an IPv4 address may be within.
        [0x2001, second, ..] if second < 0x0200 || second == 0x0db8 => false,
        [0x2002, ..] => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(text: &str) -> bool {
        may_reach(text.parse().unwrap(), &[], &["203.1.2.3".parse().unwrap()], &["203.1.2.4".parse().unwrap()])
    }

    #[test]
    fn only_the_internet_is_open() {
        for open in
            ["8.8.8.8:443", "1.1.1.1:80", "[2606:4700::1111]:443", "100.63.255.255:1", "100.128.0.1:1", "172.32.0.1:1"]
        {
            assert!(may(open), "{open}");
        }
        for closed in [
            "127.0.0.1:80",
            "127.8.8.8:80",
            "0.0.0.0:80",
            "10.0.0.1:80",
            "172.16.0.1:80",
            "172.31.255.255:80",
            "192.168.1.1:80",
            "169.254.169.254:80",
            "100.64.0.1:80",
            "100.127.255.255:80",
            "192.0.0.8:80",
            "192.0.2.1:80",
            "198.18.0.1:80",
            "198.51.100.1:80",
            "203.0.113.1:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "[::]:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:10.0.0.1]:80",
            "[::127.0.0.1]:80",
            "[64:ff9b::7f00:1]:80",
            "[fe80::1]:80",
            "[fc00::1]:80",
            "[fd00:ec2::254]:80",
            "[ff02::1]:80",
            "[2002:7f00:1::]:80",
            "[2001::1]:80",
            "[2001:db8::1]:80",
            "[3fff::1]:80",
            "[fec0::1]:80",
            "[100::1]:80",
        ] {
            assert!(!may(closed), "{closed}");
        }
    }

    #[test]
    fn what_corpus_is_made_of_is_closed_and_sites_of_nodes_are_open_by_their_ports() {
        assert!(!may("203.1.2.3:443"));
        assert!(may("203.1.2.4:443") && may("203.1.2.4:80") && !may("203.1.2.4:22"));
    }

    #[test]
    fn what_the_operator_allows_is_open() {
        let allowed: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let may = |text: &str| may_reach(text.parse().unwrap(), &allowed, &[], &[]);
        assert!(may("10.1.2.3:80") && may("[::1]:80") && may("[::ffff:10.1.2.3]:80"));
        assert!(!may("192.168.0.1:80") && !may("[::2]:80"));
    }

    #[tokio::test]
    async fn other_ways_to_write_an_address_are_that_address() {
        for text in
            ["http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://017700000001/", "http://localhost/"]
        {
            let found = resolve(&Url::parse(text).unwrap()).await.unwrap();
            assert!(found.iter().all(|to| to.ip().is_loopback() && to.port() == 80), "{text}: {found:?}");
        }
        assert_eq!(resolve(&Url::parse("https://nobody.invalid/").unwrap()).await, None);
    }
}
