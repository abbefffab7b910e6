//! The limit of login attempts: of an account from an address, of an address, and of an account.
//!
//! A generic cell rate algorithm: a burst of attempts, then one per period. An attempt is
//! taken before the password is tried, so that many at once don't slip through, and given
//! back unless the login or password was wrong, so that only those count.
//!
//! What is tried from one address keeps nobody out elsewhere. What is tried from many slows the
//! account down, for addresses only from which it never signed in. The cells are as many as they
//! are, whatever is tried: a key has one of each row by a hash that nobody outside can compute,
//! and only who finds both cells full waits.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::member::network;

/// An account gets 5 attempts at once from an address, then one per 12 seconds.
const PER_PAIR: Rate = Rate { burst: 5, period: Duration::from_secs(12) };
/// An address may be that of an office: 20 at once, then one per 3 seconds.
const PER_ADDRESS: Rate = Rate { burst: 20, period: Duration::from_secs(3) };
/// An account gets 50 at once from all addresses that it has not signed in from, then one per 6 seconds.
const PER_ACCOUNT: Rate = Rate { burst: 50, period: Duration::from_secs(6) };
/// A token that is wrong is tried 5 times at once from an address, then once in 12 seconds.
const PER_TOKEN: Rate = PER_PAIR;
/// Cells of a row: with 16 bytes each, 1 MiB for each limit.
const CELLS: usize = 1 << 15;

#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u32,
    period: Duration,
}

/// The limits together.
#[derive(Debug)]
pub struct Limit {
    pairs: Cells,
    addresses: Cells,
    accounts: Cells,
}

impl Default for Limit {
    fn default() -> Self {
        Self { pairs: Cells::new(PER_PAIR), addresses: Cells::new(PER_ADDRESS), accounts: Cells::new(PER_ACCOUNT) }
    }
}

impl Limit {
    /// Takes an attempt from an address; the error is how long to wait for the next.
    pub fn take(&self, login: &str, address: IpAddr) -> Result<(), Duration> {
        let now = Instant::now();
        self.addresses.take(network(address), now)?;
        self.pairs.take((login, network(address)), now)
    }

    /// Takes an attempt on an account, for an address that it has not signed in from.
    pub fn take_account(&self, login: &str) -> Result<(), Duration> {
        self.accounts.take(login, Instant::now())
    }

    /// Gives the attempt back: it was right.
    pub fn give_back(&self, login: &str, address: IpAddr) {
        self.pairs.give_back((login, network(address)));
        self.addresses.give_back(network(address));
        self.accounts.give_back(login);
    }
}

/// The limit of wrong tokens: of a token from an address, and of an address. What is right is never
/// counted, and a robot that goes on with its old token uses up its own attempts, not those of others
/// behind the same address.
#[derive(Debug)]
pub struct TokenLimit {
    pairs: Cells,
    addresses: Cells,
}

impl Default for TokenLimit {
    fn default() -> Self {
        Self { pairs: Cells::new(PER_TOKEN), addresses: Cells::new(PER_ADDRESS) }
    }
}

impl TokenLimit {
    /// Whether a token from an address is looked up now; the error is how long to wait.
    pub fn has_room(&self, token: &str, address: IpAddr) -> Result<(), Duration> {
        let now = Instant::now();
        self.pairs.has_room((token, network(address)), now)?;
        self.addresses.has_room(network(address), now)
    }

    /// Counts one that was wrong.
    pub fn count_wrong(&self, token: &str, address: IpAddr) {
        let now = Instant::now();
        // Who has none left is refused before it is looked up.
        let _ = self.pairs.take((token, network(address)), now);
        let _ = self.addresses.take(network(address), now);
    }
}

/// When the attempts of each cell will all be there again.
#[derive(Debug)]
struct Cells {
    rate: Rate,
    hashers: [RandomState; 2],
    full_at: Mutex<[Vec<Option<Instant>>; 2]>,
}

impl Cells {
    fn new(rate: Rate) -> Self {
        let rows = Mutex::new([vec![None; CELLS], vec![None; CELLS]]);
        Self { rate, hashers: [RandomState::new(), RandomState::new()], full_at: rows }
    }

    /// Changes the two cells of a key, given when all its attempts are there again.
    fn change<K: Hash, T>(&self, key: K, change: impl FnOnce(Option<Instant>) -> (Option<Instant>, T)) -> T {
        let mut rows = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |hasher: &RandomState| usize::try_from(hasher.hash_one(&key) % CELLS as u64).unwrap_or_default();
        let mut cells: Vec<&mut Option<Instant>> =
            rows.iter_mut().zip(&self.hashers).filter_map(|(row, hasher)| row.get_mut(place(hasher))).collect();
        let mine = cells.iter().map(|cell| **cell).min().flatten();
        let (new, result) = change(mine);
        for cell in &mut cells {
            // The cell of another key too, if that one has tried more.
            if **cell == mine || **cell < new {
                **cell = new;
            }
        }
        result
    }

    fn take<K: Hash>(&self, key: K, now: Instant) -> Result<(), Duration> {
        self.change(key, |full_at| match self.after_one(full_at, now) {
            Ok(new) => (Some(new), Ok(())),
            Err(wait) => (full_at, Err(wait)),
        })
    }

    /// Whether another attempt would be taken.
    fn has_room<K: Hash>(&self, key: K, now: Instant) -> Result<(), Duration> {
        self.change(key, |full_at| (full_at, self.after_one(full_at, now).map(drop)))
    }

    /// When all attempts will be there again after one more; the error is how long to wait for it.
    fn after_one(&self, full_at: Option<Instant>, now: Instant) -> Result<Instant, Duration> {
        let Rate { burst, period } = self.rate;
        let new = full_at.unwrap_or(now).max(now) + period;
        let room = now + period * burst;
        if new > room { Err(new - room) } else { Ok(new) }
    }

    fn give_back<K: Hash>(&self, key: K) {
        self.change(key, |full_at| (full_at.map(|at| at.checked_sub(self.rate.period).unwrap_or(at)), ()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_burst_then_one_per_period() {
        let cells = Cells::new(PER_PAIR);
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
            limit.take("alice", address).unwrap();
            limit.take_account("alice").unwrap();
            limit.give_back("alice", address);
        }
    }

    #[test]
    fn an_address_is_limited_over_many_accounts() {
        let limit = Limit::default();
        for n in 0..20 {
            limit.take(&format!("user{n}"), address(&format!("2001:db8::{n}"))).unwrap();
        }
        assert!(limit.take("other", address("2001:db8::ffff")).is_err());
        assert!(limit.take("other", address("2001:db8:0:1::1")).is_ok());
    }

    #[test]
    fn one_address_does_not_lock_an_account_elsewhere() {
        let limit = Limit::default();
        while limit.take("alice", address("192.0.2.1")).is_ok() {}
        limit.take("alice", address("192.0.2.2")).unwrap();
    }

    #[test]
    fn an_account_is_limited_over_many_addresses() {
        let limit = Limit::default();
        for _ in 0..50 {
            limit.take_account("alice").unwrap();
        }
        assert!(limit.take_account("alice").is_err());
        assert!(limit.take_account("bob").is_ok());
    }

    #[test]
    fn a_wrong_token_does_not_keep_others_out() {
        let (limit, office) = (TokenLimit::default(), address("192.0.2.1"));
        for _ in 0..5 {
            limit.has_room("old", office).unwrap();
            limit.count_wrong("old", office);
        }
        assert!(limit.has_room("old", office).is_err());
        assert!(limit.has_room("good", office).is_ok() && limit.has_room("old", address("192.0.2.2")).is_ok());
    }

    #[test]
    fn an_address_is_limited_over_many_wrong_tokens() {
        let (limit, from) = (TokenLimit::default(), address("192.0.2.1"));
        for n in 0..20 {
            limit.has_room(&n.to_string(), from).unwrap();
            limit.count_wrong(&n.to_string(), from);
        }
        assert!(limit.has_room("another", from).is_err());
    }

    /// However many keys are tried, the cells are no more, and hardly anybody else waits.
    #[test]
    fn many_keys_keep_nobody_out() {
        let cells = Cells::new(PER_PAIR);
        let now = Instant::now();
        for n in 0..10_000 {
            cells.take(n, now).ok();
        }
        let refused = (1_000..2_000).filter(|n| cells.take(("other", n), now).is_err()).count();
        assert_eq!(refused, 0, "nobody is refused the first attempt");
        let kept_out = (0..1_000).filter(|n| (0..5).any(|_| cells.take(("other", n), now).is_err())).count();
        assert!(kept_out < 200, "{kept_out} of 1000 get less than their burst");
    }
}
