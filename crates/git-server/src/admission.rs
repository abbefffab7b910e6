//! How many connections may be without a key, and from where: whoever has shown none is nobody yet.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Above this many addresses those whose failures are over are forgotten.
const MAX_ADDRESSES: usize = 10_000;

/// How many connections may wait to be authenticated.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits {
    /// From all addresses together.
    pub all: usize,
    /// From one address: that of an office has many members behind it.
    pub each: usize,
    /// Connections of an address that may fail within [`Self::period`].
    pub failures: u32,
    /// After that the failures of an address are forgotten.
    pub period: Duration,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self { all: 100, each: 20, failures: 20, period: Duration::from_mins(1) }
    }
}

/// Those who wait, and the addresses that failed.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: AdmissionLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    all: usize,
    waiting: HashMap<IpAddr, usize>,
    failed: HashMap<IpAddr, (Instant, u32)>,
}

/// A place among those who wait, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Pending {
    admission: Arc<Admission>,
    address: IpAddr,
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    /// A place for who comes from there; none when there is no room for them now.
    pub(crate) fn admit(self: &Arc<Self>, from: IpAddr, now: Instant) -> Option<Pending> {
        let address = network(from);
        let mut state = self.lock();
        let failed = state.failed.get(&address);
        if failed.is_some_and(|(since, count)| now < *since + self.limits.period && *count >= self.limits.failures) {
            return None;
        }
        let here = state.waiting.get(&address).copied().unwrap_or_default();
        if state.all >= self.limits.all || here >= self.limits.each {
            return None;
        }
        state.all += 1;
        state.waiting.insert(address, here + 1);
        Some(Pending { admission: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// The connection was not authenticated.
    pub(crate) fn failed(self, now: Instant) {
        let period = self.admission.limits.period;
        let mut state = self.admission.lock();
        if state.failed.len() > MAX_ADDRESSES {
            state.failed.retain(|_, (since, _)| now < *since + period);
        }
        let (since, count) = state.failed.entry(self.address).or_insert((now, 0));
        if now >= *since + period {
            (*since, *count) = (now, 0);
        }
        *count += 1;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut state = self.admission.lock();
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
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission() -> Arc<Admission> {
        Admission::new(AdmissionLimits { all: 3, each: 2, failures: 2, period: Duration::from_mins(1) })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn room_for_some_of_each_and_of_all() {
        let (admission, now) = (admission(), Instant::now());
        let first = admission.admit(ip("192.0.2.1"), now).unwrap();
        let second = admission.admit(ip("::ffff:192.0.2.1"), now).unwrap();
        assert!(admission.admit(ip("192.0.2.1"), now).is_none(), "two of one address");
        let third = admission.admit(ip("2001:db8::1"), now).unwrap();
        assert!(admission.admit(ip("192.0.2.3"), now).is_none(), "three in all");
        drop((first, third));
        let again = admission.admit(ip("192.0.2.1"), now);
        assert!(again.is_some() && admission.admit(ip("192.0.2.1"), now).is_none());
        drop((second, again));
        let state = admission.lock();
        assert_eq!((state.all, state.waiting.len()), (0, 0));
    }

    #[test]
    fn who_keeps_failing_waits() {
        let (admission, now) = (admission(), Instant::now());
        for address in ["2001:db8::1", "2001:db8::2"] {
            admission.admit(ip(address), now).unwrap().failed(now);
        }
        assert!(admission.admit(ip("2001:db8::3"), now + Duration::from_secs(59)).is_none(), "one network");
        assert!(admission.admit(ip("192.0.2.3"), now).is_some(), "another address");
        let later = now + Duration::from_mins(1);
        admission.admit(ip("2001:db8::3"), later).unwrap().failed(later);
        assert!(admission.admit(ip("2001:db8::3"), later).is_some(), "it was forgotten, and this is the first");
    }
}
