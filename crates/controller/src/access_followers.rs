//! How many follow the requests of visitors at once: each follower is a request that stays on a node.
//!
//! Each server counts its own.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corpus_domain::{Environment, ProjectId, UserId};

/// Followers of an environment.
const OF_ENVIRONMENT: usize = 4;
/// What a member follows.
const OF_MEMBER: usize = 20;

/// What is followed.
pub type Followed = (ProjectId, Environment);

/// Who follows what.
#[derive(Debug, Default)]
pub struct Followers(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    environments: HashMap<Followed, usize>,
    members: HashMap<UserId, usize>,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// So many follow the environment already.
    Environment,
    /// So much is followed by the member already.
    Member,
}

impl Followers {
    /// Takes a place, until what is returned is dropped.
    pub fn take(self: &Arc<Self>, what: Followed, who: UserId) -> Result<Following, Full> {
        let mut taken = self.locked();
        if taken.environments.get(&what).is_some_and(|count| *count >= OF_ENVIRONMENT) {
            return Err(Full::Environment);
        }
        if taken.members.get(&who).is_some_and(|count| *count >= OF_MEMBER) {
            return Err(Full::Member);
        }
        *taken.environments.entry(what).or_default() += 1;
        *taken.members.entry(who).or_default() += 1;
        drop(taken);
        Ok(Following { of: Arc::clone(self), what, who })
    }

    fn locked(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken.
#[derive(Debug)]
#[must_use]
pub struct Following {
    of: Arc<Followers>,
    what: Followed,
    who: UserId,
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut taken = self.of.locked();
        leave(&mut taken.environments, &self.what);
        leave(&mut taken.members, &self.who);
    }
}

fn leave<K: Hash + Eq>(counts: &mut HashMap<K, usize>, who: &K) {
    if let Some(count) = counts.get_mut(who) {
        *count -= 1;
        if *count == 0 {
            counts.remove(who);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_environment_and_a_member_have_so_many_and_no_more() {
        let followers = Arc::new(Followers::default());
        let (project, mia) = (|number| ProjectId(Uuid::from_u128(number)), UserId(Uuid::from_u128(1)));
        let dev = (project(0), Environment::Dev);
        let four: Vec<_> = (0..4).map(|_| followers.take(dev, mia).unwrap()).collect();
        assert_eq!(followers.take(dev, UserId(Uuid::nil())).unwrap_err(), Full::Environment);
        let more: Vec<_> =
            (1..17).map(|number| followers.take((project(number), Environment::Dev), mia).unwrap()).collect();
        assert_eq!(followers.take((project(99), Environment::Dev), mia).unwrap_err(), Full::Member);
        drop(four);
        drop(followers.take(dev, mia).unwrap());
        drop(more);
        let taken = followers.locked();
        assert!(taken.environments.is_empty() && taken.members.is_empty());
    }
}
