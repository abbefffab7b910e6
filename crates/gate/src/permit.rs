//! The proof that a question may be asked, and the way to its answer.

use std::ops::Deref;
use std::sync::Arc;

use corpus_api::{Denied, Principal};
use corpus_database::{Conn, Db};
use corpus_domain::ProjectId;

use crate::approval::Approval;
use crate::scope::About;
use crate::{Error, Result};

/// The proof that an operation may be done, with the operation.
#[must_use]
pub struct Permit<O> {
    pub(crate) operation: Arc<O>,
    pub(crate) who: Arc<Principal>,
    pub(crate) about: About,
    pub(crate) db: Db,
    pub(crate) approval: Option<Arc<Approval>>,
}

impl<O> Permit<O> {
    /// Who asks.
    pub fn who(&self) -> Arc<Principal> {
        Arc::clone(&self.who)
    }

    /// The question that was judged.
    pub fn operation(&self) -> Arc<O> {
        Arc::clone(&self.operation)
    }

    /// The project that it is about.
    pub fn project(&self) -> Result<ProjectId> {
        self.about.project.ok_or(Error::Denied(Denied::NotFound))
    }

    /// The projects whose things a list may show; `None` means all.
    pub fn visible(&self) -> Option<Vec<ProjectId>> {
        self.who.visible_projects()
    }

    /// The environments whose things a list may show; `None` means all.
    pub fn environments(&self) -> Option<Vec<String>> {
        let bounds = self.who.visible_environments();
        bounds.map(|bounds| bounds.iter().map(ToString::to_string).collect())
    }

    /// A connection to read on.
    #[track_caller]
    pub fn connection(&self) -> impl Future<Output = sqlx::Result<Conn>> + Send + use<O> {
        self.db.acquire()
    }
}

impl<O> Deref for Permit<O> {
    type Target = O;
    fn deref(&self) -> &O {
        &self.operation
    }
}
