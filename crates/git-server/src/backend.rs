//! What the git server asks of who knows members and guests: nothing in this crate decides who may do what.
//!
//! A push or fetch that was permitted is a value, [`Permitted`]: only by that is a guest reached.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;

use async_trait::async_trait;
use corpus_domain::{ActorName, DeploymentId, GitService, GuestName, UserId};
use corpus_fleet::{GitProgram, NodeError};
use thiserror::Error;

use crate::access::{Access, RepositoryPath};
use crate::changes::RefChange;

/// A member, as far as the server must know them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub id: UserId,
    /// What they are called.
    pub login: ActorName,
    /// What began in an earlier epoch of the member is over.
    pub epoch: i32,
}

/// Who has a key now, and what of that which is done by it may go on.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The member.
    pub member: Member,
    /// Those of the accesses that were asked about.
    pub permitted: BTreeSet<Access>,
}

/// A push or fetch that may be done.
pub struct Permitted {
    /// Who has the key at this very request.
    pub member: Member,
    /// What they may do.
    pub access: Access,
    /// The guest that it leads to, for messages.
    pub guest: GuestName,
    /// The deployment that a push becomes.
    pub deployment: DeploymentId,
    /// How it is done.
    pub transfer: Box<dyn Transfer>,
}

/// Who knows members and environments.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// The member who has the key of this `SHA256:` fingerprint; none if it is nobody's, or of one who is disabled.
    async fn member(&self, fingerprint: &str) -> Result<Option<Member>, BackendError>;

    /// Decides about a push or fetch of who has the key now.
    async fn authorize(
        &self,
        fingerprint: &str,
        service: GitService,
        path: &RepositoryPath,
    ) -> Result<Permitted, Refusal>;

    /// Who has these keys now, and which of the accesses by each may go on: one question for all open
    /// connections. A key that is nobody's any more is left out.
    async fn recheck(
        &self,
        keys: &BTreeMap<String, BTreeSet<Access>>,
    ) -> Result<BTreeMap<String, Standing>, BackendError>;
}

/// One push or fetch that was permitted.
#[async_trait]
pub trait Transfer: Send + Sync + 'static {
    /// Starts git's program on the guest, on a connection of its own: a slow push delays nobody else.
    async fn start(&self) -> Result<GitProgram, NodeError>;

    /// Keeps who reads a pillar.
    async fn record_pillar_read(&self) -> Result<(), BackendError>;

    /// Keeps who began to push what.
    async fn record_push(&self) -> Result<(), BackendError>;

    /// Judges what the push wants changed, before anything of it goes to the guest.
    async fn judge(&self, _changes: &[RefChange]) -> Result<(), Refusal> {
        Ok(())
    }

    /// The guest has ended the push as git does: does what else comes of it, and tells the pusher, a line each.
    async fn ended(&self) -> Result<Vec<String>, BackendError> {
        Ok(Vec::new())
    }

    /// Waits until the deployment has begun on the guest; never ends, if it does not begin.
    async fn begun(&self);

    /// The deployment is there: it is followed from now on.
    async fn follow(&self) -> Result<(), BackendError>;

    /// Where the pusher looks at what came of it, a line each.
    async fn whereabouts(&self) -> Result<Vec<String>, BackendError>;
}

/// The backend failed; what happened is its own error.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct BackendError(Box<dyn StdError + Send + Sync>);

impl BackendError {
    /// A failure of this cause.
    pub fn new(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self(Box::new(cause))
    }
}

/// Why a push or fetch is not done.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The key is no member's any more.
    #[error("the key is not a member's any more")]
    UnknownKey,
    /// There is nothing of that name, or nothing that they may see: who asks can't tell which.
    #[error("there is nothing of that name for them")]
    NotFound,
    /// They may see it, and this is not done: a line for the person.
    #[error("{0}")]
    Reason(String),
    /// Nothing was decided.
    #[error(transparent)]
    Failed(#[from] BackendError),
}
