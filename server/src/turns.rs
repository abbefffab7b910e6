//! Turns: of one member's requests few are worked on at a time, so that whoever asks for much at
//! once makes themselves wait and nobody else. The others wait in the order in which they came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use corpus_domain::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::shares::{Limits, Share, Shares};

/// Requests of a member that are worked on at a time, of the 20 that connections of the database allow.
const CONCURRENT_REQUESTS: usize = 8;
/// Requests of a member that may wait or be worked on: more than any browser sends.
const OF_MEMBER: usize = 256;
/// Above this many members those who ask for nothing are forgotten.
const SWEEP_ABOVE: usize = 256;

/// Who is being answered.
#[derive(Debug)]
pub struct Turns {
    asked: Arc<Shares<UserId>>,
    members: Mutex<HashMap<UserId, Weak<Semaphore>>>,
}

/// A request's turn, as long as it is worked on.
#[derive(Debug)]
pub struct Turn {
    _asked: Share<UserId>,
    // The permit keeps the member's semaphore.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for Turns {
    fn default() -> Self {
        let limits = Limits { all: usize::MAX, of_one: OF_MEMBER };
        Self { asked: Shares::new(limits), members: Mutex::default() }
    }
}

impl Turns {
    /// Waits for the turn of a member's request; none when too many wait already.
    pub async fn wait(&self, member: UserId) -> Option<Turn> {
        let asked = self.asked.take(member).ok()?;
        let permit = self.semaphore(member).acquire_owned().await.ok();
        Some(Turn { _asked: asked, _permit: permit })
    }

    fn semaphore(&self, member: UserId) -> Arc<Semaphore> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = members.get(&member).and_then(Weak::upgrade) {
            return known;
        }
        if members.len() >= SWEEP_ABOVE {
            members.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let new = Arc::new(Semaphore::new(CONCURRENT_REQUESTS));
        members.insert(member, Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_member_waits_for_themselves_and_nobody_else() {
        let turns = Turns::default();
        let [one, other] = [1, 2].map(|n| UserId(Uuid::from_u128(n)));
        let mut taken = Vec::new();
        for _ in 0..CONCURRENT_REQUESTS {
            taken.push(turns.wait(one).await.unwrap());
        }
        assert!(turns.wait(one).now_or_never().is_none(), "it waits");
        assert!(turns.wait(other).now_or_never().flatten().is_some());
        taken.pop();
        assert!(turns.wait(one).now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn a_line_has_an_end_and_is_forgotten() {
        let turns = Arc::new(Turns::default());
        let member = |n| UserId(Uuid::from_u128(n));
        let mut waiting: Vec<_> = (0..OF_MEMBER).map(|_| Box::pin(turns.wait(member(1)))).collect();
        let mut taken: Vec<_> = waiting.iter_mut().map(|wait| wait.now_or_never().flatten()).collect();
        assert_eq!(taken.iter().flatten().count(), CONCURRENT_REQUESTS);
        assert!(turns.wait(member(1)).await.is_none(), "too many wait");
        taken.clear();
        waiting.clear();
        for n in 2..1_000 {
            turns.wait(member(n)).await.unwrap();
        }
        assert!(turns.members.lock().unwrap().len() <= SWEEP_ABOVE);
    }
}
