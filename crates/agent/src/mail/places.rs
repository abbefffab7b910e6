//! How many connections there are at once, and of each guest: none takes them all.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// Connections at once.
const ALL: usize = 200;
/// Of those, of one guest.
const OF_ONE: usize = 10;

/// Who is connected how often.
#[derive(Debug, Default)]
pub struct Places(Arc<Mutex<HashMap<Ipv4Addr, usize>>>);

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Mutex<HashMap<Ipv4Addr, usize>>>,
    of: Ipv4Addr,
}

impl Places {
    /// A place for one more connection from there, if there is any.
    pub fn take(&self, from: Ipv4Addr) -> Option<Place> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.values().sum::<usize>() >= ALL {
            return None;
        }
        let own = taken.entry(from).or_default();
        if *own >= OF_ONE {
            return None;
        }
        *own += 1;
        Some(Place { places: Arc::clone(&self.0), of: from })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.of) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_takes_no_others_place() {
        let places = Places::default();
        let of = |number: u8, count| -> Vec<Place> {
            (0..count).filter_map(|_| places.take(Ipv4Addr::new(10, 5, 0, number))).collect()
        };
        let first = of(1, 100);
        assert_eq!(first.len(), OF_ONE);
        let others: Vec<Place> = (2..30).flat_map(|number| of(number, OF_ONE)).collect();
        assert_eq!(first.len() + others.len(), ALL);
        drop(others);
        assert_eq!(of(2, 1).len(), 1);
        drop(first);
        assert_eq!(places.0.lock().unwrap().len(), 0, "who is gone is forgotten");
    }
}
