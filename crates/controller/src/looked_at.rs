//! What somebody has on a page now, so that it is looked at more often than the rest, and is no news to them.
//!
//! A read may write nothing, so this is kept in memory, by each server for those who ask it, and forgotten soon.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::mem::take;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use corpus_api::notices::NoticeOf;
use corpus_domain::{DnsNameId, NodeId, UserId};
use tokio::sync::Notify;
use uuid::Uuid;

/// A page that is open asks again at least every five seconds.
const KEPT: Duration = Duration::from_secs(12);
/// As many things are kept of each kind; beyond that nothing is looked at more often.
const MOST: usize = 2_000;

/// When something was last shown, and last looked at.
#[derive(Debug, Clone, Copy)]
struct Times {
    shown: Instant,
    looked: Option<Instant>,
}

/// What is on pages.
#[derive(Debug, Default)]
pub struct LookedAt {
    nodes: Mutex<HashMap<NodeId, Times>>,
    names: Mutex<HashMap<DnsNameId, Times>>,
    firewalls: Mutex<HashMap<NodeId, Times>>,
    mail: Mutex<HashMap<NodeId, Times>>,
    seen: Mutex<HashSet<Seen>>,
    noted: Notify,
}

/// What a member has seen, and need not be told any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    /// What notices are about.
    News(UserId, NoticeOf),
    /// That their first steps are done.
    FirstSteps(UserId),
}

fn note<K: Hash + Eq>(kept: &Mutex<HashMap<K, Times>>, shown: impl IntoIterator<Item = K>) {
    let now = Instant::now();
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    for one in shown {
        if kept.len() >= MOST && !kept.contains_key(&one) {
            return;
        }
        kept.entry(one).and_modify(|times| times.shown = now).or_insert(Times { shown: now, looked: None });
    }
}

/// Those that are still shown; the rest is forgotten.
fn shown<K: Hash + Eq>(kept: &mut HashMap<K, Times>) {
    kept.retain(|_, times| times.shown.elapsed() < KEPT);
}

/// Those that are shown and were not taken for so long.
fn due<K: Hash + Eq + Copy>(kept: &Mutex<HashMap<K, Times>>, soon: Duration, most: usize) -> Vec<K> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    shown(&mut kept);
    let due = kept.iter_mut().filter(|(_, times)| times.looked.is_none_or(|at| at.elapsed() >= soon));
    due.take(most)
        .map(|(id, times)| {
            times.looked = Some(Instant::now());
            *id
        })
        .collect()
}

impl LookedAt {
    /// Sites of these nodes are shown.
    pub fn note_nodes(&self, nodes: impl IntoIterator<Item = NodeId>) {
        note(&self.nodes, nodes);
    }

    /// These names are shown.
    pub fn note_names(&self, names: impl IntoIterator<Item = DnsNameId>) {
        note(&self.names, names);
    }

    /// What the firewalls of these nodes counted is shown.
    pub fn note_firewalls(&self, nodes: impl IntoIterator<Item = NodeId>) {
        note(&self.firewalls, nodes);
    }

    /// What became of mail of guests of this node is shown.
    pub fn note_mail(&self, node: NodeId) {
        note(&self.mail, [node]);
    }

    /// The nodes whose sites are shown.
    pub fn nodes(&self) -> Vec<Uuid> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        shown(&mut nodes);
        nodes.keys().map(|id| id.0).collect()
    }

    /// A member has seen it.
    pub fn note_seen(&self, seen: Seen) {
        let mut kept = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST {
            kept.insert(seen);
            self.noted.notify_one();
        }
    }

    /// What members have seen since it was asked last; comes back when there is anything.
    pub async fn take_seen(&self) -> HashSet<Seen> {
        loop {
            let seen = take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
            if !seen.is_empty() {
                return seen;
            }
            self.noted.notified().await;
        }
    }

    /// The names that are shown and were not taken for so long.
    pub fn take_names(&self, soon: Duration) -> Vec<Uuid> {
        due(&self.names, soon, usize::MAX).into_iter().map(|id| id.0).collect()
    }

    /// The nodes whose firewalls are shown and were not taken for so long, so many at most.
    pub fn take_firewalls(&self, soon: Duration, most: usize) -> Vec<NodeId> {
        due(&self.firewalls, soon, most)
    }

    /// The nodes whose guests' mail is shown, likewise.
    pub fn take_mail(&self, soon: Duration, most: usize) -> Vec<NodeId> {
        due(&self.mail, soon, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_shown_is_taken_once_in_a_while() {
        let looked_at = LookedAt::default();
        let id = |number| DnsNameId(Uuid::from_u128(number));
        looked_at.note_names([id(1), id(2), id(1)]);
        assert_eq!(looked_at.take_names(Duration::from_secs(8)).len(), 2);
        looked_at.note_names([id(1)]);
        assert!(looked_at.take_names(Duration::from_secs(8)).is_empty());
        assert_eq!(looked_at.take_names(Duration::ZERO).len(), 2);
        looked_at.note_names((0..10_000).map(id));
        assert_eq!(looked_at.take_names(Duration::ZERO).len(), MOST);
    }
}
