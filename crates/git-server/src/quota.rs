//! How many connections, pushes and fetches a member and an address may have at once: so that no
//! member and no address keeps the others out. Who has shown no key yet is counted by [admission](crate::admission).

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corpus_domain::UserId;
use thiserror::Error;

use crate::admission::network;

/// How many there may be.
#[derive(Debug, Clone, Copy)]
pub struct QuotaLimits {
    /// Connections of all members together: each takes three file descriptors.
    pub all: usize,
    /// Connections of a member: of one who builds many things at once too.
    pub member: usize,
    /// Connections from an address: that of an office has many members behind it.
    pub address: usize,
    /// Pushes and fetches of a member, on whatever connections.
    pub running: usize,
}

impl Default for QuotaLimits {
    fn default() -> Self {
        Self { all: 1000, member: 20, address: 200, running: 20 }
    }
}

/// Why there is none left, for the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum QuotaExceeded {
    #[error("there are as many git connections as Corpus takes; try again in a moment")]
    All,
    #[error(
        "you have {0} git connections open, which is as many as a member may; end one, or wait until one has ended"
    )]
    Member(usize),
    #[error(
        "{0} git connections are open from your address, which is as many as an address may; try again in a moment"
    )]
    Address(usize),
    #[error("you have {0} pushes and fetches running, which is as many as a member may; wait until one has ended")]
    Running(usize),
}

/// Who has what now.
#[derive(Debug)]
pub(crate) struct Quotas {
    limits: QuotaLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    member: HashMap<UserId, usize>,
    address: HashMap<IpAddr, usize>,
    running: HashMap<UserId, usize>,
}

/// An authenticated connection; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    quotas: Arc<Quotas>,
    member: UserId,
    address: IpAddr,
}

/// A push or fetch; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct TransferSlot {
    quotas: Arc<Quotas>,
    member: UserId,
}

impl Quotas {
    pub(crate) fn new(limits: QuotaLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// One more connection of a member, from there.
    pub(crate) fn connect(self: &Arc<Self>, member: UserId, from: IpAddr) -> Result<ConnectionSlot, QuotaExceeded> {
        let address = network(from);
        let (QuotaLimits { all, member: of_member, address: of_address, .. }, mut taken) = (self.limits, self.lock());
        if taken.all >= all {
            return Err(QuotaExceeded::All);
        }
        if count(&taken.member, &member) >= of_member {
            return Err(QuotaExceeded::Member(of_member));
        }
        if count(&taken.address, &address) >= of_address {
            return Err(QuotaExceeded::Address(of_address));
        }
        taken.all += 1;
        increment(&mut taken.member, member);
        increment(&mut taken.address, address);
        Ok(ConnectionSlot { quotas: Arc::clone(self), member, address })
    }

    /// One more push or fetch of the member.
    pub(crate) fn transfer(self: &Arc<Self>, member: UserId) -> Result<TransferSlot, QuotaExceeded> {
        let mut taken = self.lock();
        if count(&taken.running, &member) >= self.limits.running {
            return Err(QuotaExceeded::Running(self.limits.running));
        }
        increment(&mut taken.running, member);
        Ok(TransferSlot { quotas: Arc::clone(self), member })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.quotas.lock();
        taken.all = taken.all.saturating_sub(1);
        decrement(&mut taken.member, &self.member);
        decrement(&mut taken.address, &self.address);
    }
}

impl Drop for TransferSlot {
    fn drop(&mut self) {
        decrement(&mut self.quotas.lock().running, &self.member);
    }
}

fn count<K: Eq + Hash>(of: &HashMap<K, usize>, key: &K) -> usize {
    of.get(key).copied().unwrap_or_default()
}

fn increment<K: Eq + Hash>(of: &mut HashMap<K, usize>, key: K) {
    *of.entry(key).or_default() += 1;
}

/// What nobody has is not kept.
fn decrement<K: Eq + Hash>(of: &mut HashMap<K, usize>, key: &K) {
    match of.get_mut(key) {
        Some(left) if *left > 1 => *left -= 1,
        _ => drop(of.remove(key)),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn slots_for_some_of_each_and_of_all() {
        let quotas = Quotas::new(QuotaLimits { all: 4, member: 2, address: 3, running: 1 });
        let [mia, tom, eve] = [1, 2, 3].map(|n| UserId(Uuid::from_u128(n)));
        let one = quotas.connect(mia, ip("192.0.2.1")).unwrap();
        let second = quotas.connect(mia, ip("192.0.2.2")).unwrap();
        assert_eq!(
            quotas.connect(mia, ip("192.0.2.3")).unwrap_err(),
            QuotaExceeded::Member(2),
            "wherever she comes from"
        );
        let third = quotas.connect(tom, ip("::ffff:192.0.2.2")).unwrap();
        let four = quotas.connect(eve, ip("192.0.2.2")).unwrap();
        assert_eq!(quotas.connect(eve, ip("192.0.2.9")).unwrap_err(), QuotaExceeded::All);
        drop(one);
        assert_eq!(quotas.connect(eve, ip("192.0.2.2")).unwrap_err(), QuotaExceeded::Address(3));
        drop(four);
        let again = quotas.connect(mia, ip("192.0.2.2")).unwrap();
        let running = quotas.transfer(mia).unwrap();
        assert_eq!(quotas.transfer(mia).unwrap_err(), QuotaExceeded::Running(1));
        assert!(quotas.transfer(tom).is_ok());
        drop((running, again, second, third));
        let taken = quotas.lock();
        assert_eq!((taken.all, taken.member.len(), taken.address.len(), taken.running.len()), (0, 0, 0, 0));
    }
}
