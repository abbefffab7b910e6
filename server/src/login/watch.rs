//! What the directory says of members between their logins.
//!
//! Someone who is disabled or removed in the directory, or loses a group there, must not go on
//! until the session ends. So the service account asks about every member in turn, on one
//! connection a round: who is gone, disabled or ambiguous is disabled here too, anybody else
//! gets the name, mail and roles that the directory says. Sessions end with that, and jobs
//! take the SSH keys from the guests.
//!
//! Nobody is disabled because the directory is down or refuses a question: only an answer
//! counts. A round asks about [`MEMBERS_A_ROUND`] members and takes at most [`ROUND_LIMIT`]; the
//! next one goes on after the last member that was asked about, so with the default of 20 s
//! between rounds 450 members are each asked about within a minute.

use std::time::Duration;

use corpus_controller::{Controller, SignIn};
use corpus_domain::{UserId, UserName};
use thiserror::Error;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::{Directory, Person, Refusal};

/// How many members a round asks about, with at most three searches each.
const MEMBERS_A_ROUND: usize = 150;
/// How long a round may take.
const ROUND_LIMIT: Duration = Duration::from_secs(20);

/// The task that asks.
pub struct Watch {
    directory: Directory,
    controller: Controller,
    /// The last member that was asked about.
    last: Option<UserId>,
}

/// A round could not be finished, or not for everybody.
#[derive(Debug, Error)]
enum RoundError {
    #[error("the directory can't be asked")]
    Directory(#[source] Refusal),
    #[error("the directory can't be asked about {count} members, for one {login}")]
    Members {
        count: usize,
        login: UserName,
        #[source]
        refusal: Refusal,
    },
    #[error("what the directory says can't be kept")]
    Store(#[from] corpus_controller::Error),
    #[error("a round takes longer than {ROUND_LIMIT:?}")]
    TooLong,
}

impl Watch {
    /// Asks that directory about the members of that controller.
    pub fn new(directory: Directory, controller: Controller) -> Self {
        Self { directory, controller, last: None }
    }

    /// Asks every so often until `stop`.
    pub async fn run(mut self, every: Duration, stop: CancellationToken) {
        let mut rounds = tokio::time::interval(every);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let forever = async {
            loop {
                rounds.tick().await;
                if let Err(error) = self.round().await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "not all members were checked in the directory; their access stays as it is");
                }
            }
        };
        stop.run_until_cancelled(forever).await;
    }

    async fn round(&mut self) -> Result<(), RoundError> {
        let members = self.next_members().await?;
        if members.is_empty() {
            return Ok(());
        }
        let asked = tokio::time::timeout(ROUND_LIMIT, self.ask_about(&members)).await;
        asked.map_err(|_elapsed| RoundError::TooLong)?
    }

    /// The members of this round: those after the last one, and then from the first again.
    async fn next_members(&self) -> Result<Vec<(UserId, UserName)>, RoundError> {
        let mut all = self.controller.ldap_members().await?;
        let next = all.partition_point(|(id, _)| Some(*id) <= self.last);
        all.rotate_left(next);
        all.truncate(MEMBERS_A_ROUND);
        Ok(all)
    }

    async fn ask_about(&mut self, members: &[(UserId, UserName)]) -> Result<(), RoundError> {
        let directory = self.directory.clone();
        let mut asking = directory.ask().await.map_err(RoundError::Directory)?;
        let mut refused = Vec::new();
        for (id, login) in members {
            self.last = Some(*id);
            match asking.about(login).await {
                Ok(person) => self.take_over(*id, login, person).await?,
                Err(down @ Refusal::DirectoryDown(_)) => return Err(RoundError::Directory(down)),
                Err(refusal) => refused.push((login.clone(), refusal)),
            }
        }
        asking.end().await;
        let count = refused.len();
        match refused.into_iter().next() {
            None => Ok(()),
            Some((login, refusal)) => Err(RoundError::Members { count, login, refusal }),
        }
    }

    async fn take_over(&self, id: UserId, login: &UserName, person: Option<Person>) -> Result<(), RoundError> {
        let disabled = person.is_none();
        if self.controller.directory_says(id, person.map(SignIn::from)).await? {
            tracing::info!(%login, disabled, "a member is not what the directory said before");
        }
        Ok(())
    }
}
