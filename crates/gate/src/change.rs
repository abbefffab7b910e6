//! A permitted write: the one holder of its transaction.

use std::ops::Deref;
use std::sync::Arc;

use corpus_api::{Operation, Principal};
use corpus_database::{Conn, Transaction};
use corpus_domain::ProjectId;
use sqlx::PgTransaction;

use crate::audit::{self, Entry};
use crate::idempotency::Claim;
use crate::permit::Permit;
use crate::{Error, Result};

/// A permitted write. Nothing of it is there before it is committed.
#[must_use = "a change that is not committed did not happen"]
pub struct Change<O> {
    pub(crate) permit: Permit<O>,
    pub(crate) claim: Option<Claim>,
    pub(crate) begun: Option<Transaction>,
}

impl<O> Change<O> {
    /// Who asks.
    pub fn who(&self) -> Arc<Principal> {
        self.permit.who()
    }

    /// The question that was judged.
    pub fn operation(&self) -> Arc<O> {
        self.permit.operation()
    }

    /// The project that it is about.
    pub fn project(&self) -> Result<ProjectId> {
        self.permit.project()
    }

    /// A connection to look at what is there before the transaction begins; what takes long (a host, a
    /// DNS server) is asked then too, since a transaction keeps others waiting.
    #[track_caller]
    pub fn connection(&self) -> impl Future<Output = sqlx::Result<Conn>> + Send + use<O> {
        self.permit.connection()
    }

    /// The transaction of the change, begun when it is first asked for.
    pub async fn transaction(&mut self) -> Result<&mut PgTransaction<'static>> {
        if self.begun.is_none() {
            self.begun = Some(self.permit.db.begin().await?);
        }
        let begun = self.begun.as_mut().ok_or(sqlx::Error::RowNotFound)?;
        Ok(begun)
    }

    /// Gives up what was begun, to begin anew.
    pub async fn start_over(&mut self) -> Result<()> {
        match self.begun.take() {
            Some(begun) => Ok(begun.rollback().await?),
            None => Ok(()),
        }
    }

    /// Writes one more row of the audit, for a change that is more than one thing.
    pub async fn note(&mut self, entry: Entry<'_>) -> Result<()> {
        let who = self.who();
        Ok(audit::write(self.transaction().await?, &who, entry).await?)
    }
}

impl<O: Operation> Change<O> {
    /// Writes the audit, and what the same request is answered with when it comes again, and commits.
    pub async fn commit(mut self, entry: Entry<'_>, output: O::Output) -> Result<Committed<O>> {
        self.note(entry).await?;
        let claim = self.claim.take();
        if let Some(claim) = &claim {
            claim.keep(self.transaction().await?, &output).await?;
        }
        let begun = self.begun.take().ok_or(Error::Database(sqlx::Error::RowNotFound))?;
        begun.commit().await?;
        Ok(Committed(output))
    }

    /// What is so already needs no change: it is answered as if it had been made.
    pub async fn unchanged(mut self, output: O::Output) -> Result<Committed<O>> {
        self.start_over().await?;
        Ok(Committed(output))
    }
}

impl<O> Deref for Change<O> {
    type Target = O;
    fn deref(&self) -> &O {
        &self.permit.operation
    }
}

/// What a committed change answers. Only a change makes it.
pub struct Committed<O: Operation>(pub(crate) O::Output);
