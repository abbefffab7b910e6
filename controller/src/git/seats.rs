//! How many connections, pushes and fetches a member and an address may have at once: so that no
//! member and no address keeps the others out. Who has shown no key yet waits in the [lobby](super::lobby).

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corpus_domain::UserId;
use thiserror::Error;

use super::lobby::network;

/// How many there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seating {
    /// Connections of all members together: each takes three file descriptors.
    pub(crate) all: usize,
    /// Connections of a member: of one who builds many things at once too.
    pub(crate) member: usize,
    /// Connections from an address: that of an office has many members behind it.
    pub(crate) address: usize,
    /// Pushes and fetches of a member, on whatever connections.
    pub(crate) running: usize,
}

impl Default for Seating {
    fn default() -> Self {
        Self { all: 1000, member: 20, address: 200, running: 20 }
    }
}

/// Why there is none left, for the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Full {
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

/// Who has what.
#[derive(Debug)]
pub(super) struct Seats {
    seating: Seating,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    member: HashMap<UserId, usize>,
    address: HashMap<IpAddr, usize>,
    running: HashMap<UserId, usize>,
}

/// A connection that was let in; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    member: UserId,
    address: IpAddr,
}

/// A push or fetch; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Running {
    seats: Arc<Seats>,
    member: UserId,
}

impl Seats {
    pub(super) fn new(seating: Seating) -> Arc<Self> {
        Arc::new(Self { seating, taken: Mutex::default() })
    }

    /// A seat for a member who comes from there.
    pub(super) fn sit(self: &Arc<Self>, member: UserId, from: IpAddr) -> Result<Seat, Full> {
        let address = network(from);
        let (Seating { all, member: of_member, address: of_address, .. }, mut taken) = (self.seating, self.lock());
        if taken.all >= all {
            return Err(Full::All);
        }
        if count(&taken.member, &member) >= of_member {
            return Err(Full::Member(of_member));
        }
        if count(&taken.address, &address) >= of_address {
            return Err(Full::Address(of_address));
        }
        taken.all += 1;
        more(&mut taken.member, member);
        more(&mut taken.address, address);
        Ok(Seat { seats: Arc::clone(self), member, address })
    }

    /// Room for one more push or fetch of the member.
    pub(super) fn run(self: &Arc<Self>, member: UserId) -> Result<Running, Full> {
        let mut taken = self.lock();
        if count(&taken.running, &member) >= self.seating.running {
            return Err(Full::Running(self.seating.running));
        }
        more(&mut taken.running, member);
        Ok(Running { seats: Arc::clone(self), member })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        taken.all = taken.all.saturating_sub(1);
        less(&mut taken.member, &self.member);
        less(&mut taken.address, &self.address);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        less(&mut self.seats.lock().running, &self.member);
    }
}

fn count<K: Eq + Hash>(of: &HashMap<K, usize>, key: &K) -> usize {
    of.get(key).copied().unwrap_or_default()
}

fn more<K: Eq + Hash>(of: &mut HashMap<K, usize>, key: K) {
    *of.entry(key).or_default() += 1;
}

/// What nobody has is not kept.
fn less<K: Eq + Hash>(of: &mut HashMap<K, usize>, key: &K) {
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
    fn seats_for_some_of_each_and_of_all() {
        let seats = Seats::new(Seating { all: 4, member: 2, address: 3, running: 1 });
        let [mia, tom, eve] = [1, 2, 3].map(|n| UserId(Uuid::from_u128(n)));
        let one = seats.sit(mia, ip("192.0.2.1")).unwrap();
        let second = seats.sit(mia, ip("192.0.2.2")).unwrap();
        assert_eq!(seats.sit(mia, ip("192.0.2.3")).unwrap_err(), Full::Member(2), "wherever she comes from");
        let third = seats.sit(tom, ip("::ffff:192.0.2.2")).unwrap();
        let four = seats.sit(eve, ip("192.0.2.2")).unwrap();
        assert_eq!(seats.sit(eve, ip("192.0.2.9")).unwrap_err(), Full::All);
        drop(one);
        assert_eq!(seats.sit(eve, ip("192.0.2.2")).unwrap_err(), Full::Address(3));
        drop(four);
        let again = seats.sit(mia, ip("192.0.2.2")).unwrap();
        let running = seats.run(mia).unwrap();
        assert_eq!(seats.run(mia).unwrap_err(), Full::Running(1));
        assert!(seats.run(tom).is_ok());
        drop((running, again, second, third));
        let taken = seats.lock();
        assert_eq!((taken.all, taken.member.len(), taken.address.len(), taken.running.len()), (0, 0, 0, 0));
    }
}
