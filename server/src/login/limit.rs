//! The limit of login attempts, per account and per address.
//!
//! A generic cell rate algorithm: a burst of attempts, then one per period. An attempt is
//! taken before the password is tried, so that many at once don't slip through, and given
//! back unless the login or password was wrong, so that only those count.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A login gets 5 attempts at once, then one per 12 seconds.
const PER_ACCOUNT: Rate = Rate { burst: 5, period: Duration::from_secs(12) };
/// An address may be that of an office: 20 at once, then one per 3 seconds.
const PER_ADDRESS: Rate = Rate { burst: 20, period: Duration::from_secs(3) };
/// Above this many keys those that are at rest are forgotten.
const KEYS_KEPT: usize = 10_000;

#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u32,
    period: Duration,
}

/// The limit over accounts and addresses.
#[derive(Debug)]
pub struct Limit {
    accounts: Cells<String>,
    addresses: Cells<IpAddr>,
}

impl Default for Limit {
    fn default() -> Self {
        Self { accounts: Cells::new(PER_ACCOUNT), addresses: Cells::new(PER_ADDRESS) }
    }
}

impl Limit {
    /// Takes an attempt; the error is how long to wait for the next.
    pub fn take(&self, login: &str, address: IpAddr) -> Result<(), Duration> {
        let now = Instant::now();
        self.addresses.take(network(address), now)?;
        self.accounts.take(login.to_ascii_lowercase(), now)
    }

    /// Gives the attempt back: it was right.
    pub fn give_back(&self, login: &str, address: IpAddr) {
        self.accounts.give_back(&login.to_ascii_lowercase());
        self.addresses.give_back(&network(address));
    }
}

/// Whoever has one IPv6 address has the whole /64 of it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
        four @ IpAddr::V4(_) => four,
    }
}

/// When each key's attempts will all be there again.
#[derive(Debug)]
struct Cells<K> {
    rate: Rate,
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Hash + Eq> Cells<K> {
    fn new(rate: Rate) -> Self {
        Self { rate, full_at: Mutex::new(HashMap::new()) }
    }

    fn take(&self, key: K, now: Instant) -> Result<(), Duration> {
        let mut cells = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if cells.len() >= KEYS_KEPT {
            cells.retain(|_, full_at| *full_at > now);
        }
        let full_at = cells.get(&key).copied().unwrap_or(now).max(now) + self.rate.period;
        let room = now + self.rate.period * self.rate.burst;
        if full_at > room {
            return Err(full_at - room);
        }
        cells.insert(key, full_at);
        Ok(())
    }

    fn give_back(&self, key: &K) {
        let mut cells = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full_at) = cells.get_mut(key) {
            *full_at = full_at.checked_sub(self.rate.period).unwrap_or(*full_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_one_per_period() {
        let cells = Cells::new(PER_ACCOUNT);
        let start = Instant::now();
        for _ in 0..5 {
            cells.take("a", start).unwrap();
        }
        assert_eq!(cells.take("a", start), Err(Duration::from_secs(12)));
        cells.take("b", start).unwrap();
        cells.take("a", start + Duration::from_secs(12)).unwrap();
        assert_eq!(cells.take("a", start + Duration::from_secs(13)), Err(Duration::from_secs(11)));
    }

    #[test]
    fn right_attempts_do_not_count() {
        let limit = Limit::default();
        let address = IpAddr::from([127, 0, 0, 1]);
        for _ in 0..100 {
            limit.take("Alice", address).unwrap();
            limit.give_back("alice", address);
        }
    }

    #[test]
    fn an_address_is_limited_over_many_accounts() {
        let limit = Limit::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for n in 0..20 {
            limit.take(&format!("user{n}"), address(&format!("2001:db8::{n}"))).unwrap();
        }
        assert!(limit.take("other", address("2001:db8::ffff")).is_err());
        assert!(limit.take("other", address("2001:db8:0:1::1")).is_ok());
    }
}
