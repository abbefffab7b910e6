//! Places that are shared: so many in all, and so many of them for one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub all: usize,
    /// For one.
    pub of_one: usize,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// That of all.
    All,
    /// One's own.
    OfOne,
}

/// The places, and who has how many.
#[derive(Debug)]
pub struct Shares<K> {
    limits: Limits,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    of: HashMap<K, usize>,
}

impl<K: Hash + Eq + Clone> Shares<K> {
    /// All free.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::new(Taken { all: 0, of: HashMap::new() }) })
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.locked().all
    }

    /// Takes a place, until what is returned is dropped.
    pub fn take(self: &Arc<Self>, who: K) -> Result<Share<K>, Full> {
        if self.locked().of.get(&who).is_some_and(|of_one| *of_one >= self.limits.of_one) {
            return Err(Full::OfOne);
        }
        self.take_any(who)
    }

    /// Takes a place for who may have all of them.
    pub fn take_any(self: &Arc<Self>, who: K) -> Result<Share<K>, Full> {
        let mut taken = self.locked();
        if taken.all >= self.limits.all {
            return Err(Full::All);
        }
        *taken.of.entry(who.clone()).or_default() += 1;
        taken.all += 1;
        Ok(Share { of: Arc::clone(self), who })
    }

    fn locked(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken.
#[derive(Debug)]
pub struct Share<K: Hash + Eq + Clone> {
    of: Arc<Shares<K>>,
    who: K,
}

impl<K: Hash + Eq + Clone> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = self.of.locked();
        taken.all -= 1;
        if let Some(of_one) = taken.of.get_mut(&self.who) {
            *of_one -= 1;
            if *of_one == 0 {
                taken.of.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_its_part_and_gives_it_back() {
        let shares = Shares::new(Limits { all: 4, of_one: 2 });
        let one = shares.take("a").unwrap();
        let _two = shares.take("a").unwrap();
        assert_eq!(shares.take("a").unwrap_err(), Full::OfOne);
        let _three = shares.take("b").unwrap();
        drop(one);
        let _four = shares.take("a").unwrap();
        let five = shares.take("c").unwrap();
        assert_eq!(shares.take("d").unwrap_err(), Full::All);
        drop(five);
        assert_eq!((shares.taken(), shares.locked().of.len()), (3, 2), "who has none is forgotten");
    }
}
