//! Places for connections: so many in all as files allow, and a part of them for one address.
//!
//! Whoever has one IPv6 address has the whole /64 of it. A trusted proxy brings everybody's
//! connections, so only the number of all holds for it.

use std::net::IpAddr;
use std::sync::Arc;

use super::files::for_browsers;
use crate::member::network;
use crate::shares::{Full, Limits, Share, Shares};

/// The most that there is ever use for.
const MAX_CONNECTIONS: usize = 8192;
/// The least, however few files there are.
const LEAST: usize = 64;
/// An address gets one in so many.
const PART: usize = 8;

/// What so many open files allow.
pub fn limits(files: u64) -> Limits {
    let all = for_browsers(files).clamp(LEAST, MAX_CONNECTIONS);
    Limits { all, of_one: all.div_ceil(PART).max(LEAST) }
}

/// The places.
#[derive(Debug)]
pub struct Places {
    shares: Arc<Shares<IpAddr>>,
    proxies: Vec<IpAddr>,
}

impl Places {
    /// All free.
    pub fn new(limits: Limits, proxies: Vec<IpAddr>) -> Self {
        Self { shares: Shares::new(limits), proxies }
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.shares.taken()
    }

    /// Takes a place for a connection from an address.
    pub(super) fn take(&self, address: IpAddr) -> Result<Share<IpAddr>, Full> {
        let address = address.to_canonical();
        if self.proxies.contains(&address) { self.shares.take_any(address) } else { self.shares.take(network(address)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_gets_a_part_and_a_trusted_proxy_all() {
        let places = Places::new(Limits { all: 4, of_one: 2 }, vec![address("10.0.0.9")]);
        let taken = [1, 2].map(|n| places.take(address(&format!("2001:db8::{n}"))).unwrap());
        assert_eq!(places.take(address("2001:db8::3")).unwrap_err(), Full::OfOne, "it is the same network");
        drop(taken);
        let taken = [0; 4].map(|_| places.take(address("::ffff:10.0.0.9")).unwrap());
        assert_eq!(places.take(address("192.0.2.1")).unwrap_err(), Full::All);
        drop(taken);
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn they_follow_from_the_files_that_can_be_open() {
        assert_eq!(limits(524_288), Limits { all: 8192, of_one: 1024 });
        assert_eq!(limits(1024), Limits { all: 256, of_one: 64 });
        assert_eq!(limits(16), Limits { all: 64, of_one: 64 });
    }
}
