//! How many may wait to be let in, and from where: whoever has shown no key is nobody yet.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Above this many addresses those whose failures are over are forgotten.
const ADDRESSES_KEPT: usize = 10_000;

/// How many may wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// From all addresses together.
    pub(crate) all: usize,
    /// From one address: that of an office has many members behind it.
    pub(crate) each: usize,
    /// Connections of an address that may fail within [`Self::period`].
    pub(crate) failures: u32,
    /// After that the failures of an address are forgotten.
    pub(crate) period: Duration,
}

impl Default for Room {
    fn default() -> Self {
        Self { all: 100, each: 20, failures: 20, period: Duration::from_mins(1) }
    }
}

/// Those who wait, and the addresses that failed.
#[derive(Debug)]
pub(super) struct Lobby {
    room: Room,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    all: usize,
    waiting: HashMap<IpAddr, usize>,
    failed: HashMap<IpAddr, (Instant, u32)>,
}

/// A place in the lobby, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    lobby: Arc<Lobby>,
    address: IpAddr,
}

impl Lobby {
    pub(super) fn new(room: Room) -> Arc<Self> {
        Arc::new(Self { room, state: Mutex::default() })
    }

    /// A place for who comes from there; none when there is no room for them now.
    pub(super) fn enter(self: &Arc<Self>, from: IpAddr, now: Instant) -> Option<Place> {
        let address = network(from);
        let mut state = self.lock();
        let failed = state.failed.get(&address);
        if failed.is_some_and(|(since, count)| now < *since + self.room.period && *count >= self.room.failures) {
            return None;
        }
        let here = state.waiting.get(&address).copied().unwrap_or_default();
        if state.all >= self.room.all || here >= self.room.each {
            return None;
        }
        state.all += 1;
        state.waiting.insert(address, here + 1);
        Some(Place { lobby: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Whoever had it was not let in.
    pub(super) fn failed(self, now: Instant) {
        let period = self.lobby.room.period;
        let mut state = self.lobby.lock();
        if state.failed.len() > ADDRESSES_KEPT {
            state.failed.retain(|_, (since, _)| now < *since + period);
        }
        let (since, count) = state.failed.entry(self.address).or_insert((now, 0));
        if now >= *since + period {
            (*since, *count) = (now, 0);
        }
        *count += 1;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.lobby.lock();
        state.all = state.all.saturating_sub(1);
        let left = state.waiting.get(&self.address).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            state.waiting.remove(&self.address);
        } else {
            state.waiting.insert(self.address, left);
        }
    }
}

/// Whoever has one IPv6 address has the whole /64 of it.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> Arc<Lobby> {
        Lobby::new(Room { all: 3, each: 2, failures: 2, period: Duration::from_mins(1) })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn room_for_some_of_each_and_of_all() {
        let (lobby, now) = (room(), Instant::now());
        let first = lobby.enter(ip("192.0.2.1"), now).unwrap();
        let second = lobby.enter(ip("::ffff:192.0.2.1"), now).unwrap();
        assert!(lobby.enter(ip("192.0.2.1"), now).is_none(), "two of one address");
        let third = lobby.enter(ip("2001:db8::1"), now).unwrap();
        assert!(lobby.enter(ip("192.0.2.3"), now).is_none(), "three in all");
        drop((first, third));
        let again = lobby.enter(ip("192.0.2.1"), now);
        assert!(again.is_some() && lobby.enter(ip("192.0.2.1"), now).is_none());
        drop((second, again));
        let state = lobby.lock();
        assert_eq!((state.all, state.waiting.len()), (0, 0));
    }

    #[test]
    fn who_keeps_failing_waits() {
        let (lobby, now) = (room(), Instant::now());
        for address in ["2001:db8::1", "2001:db8::2"] {
            lobby.enter(ip(address), now).unwrap().failed(now);
        }
        assert!(lobby.enter(ip("2001:db8::3"), now + Duration::from_secs(59)).is_none(), "one network");
        assert!(lobby.enter(ip("192.0.2.3"), now).is_some(), "another address");
        let later = now + Duration::from_mins(1);
        lobby.enter(ip("2001:db8::3"), later).unwrap().failed(later);
        assert!(lobby.enter(ip("2001:db8::3"), later).is_some(), "it was forgotten, and this is the first");
    }
}
