//! A permitted write: the one holder of its transaction.

use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use corpus_api::{Denied, Operation, Principal, Reply, Scope, Write};
use corpus_database::{Conn, Transaction};
use corpus_domain::ProjectId;
use serde_json::Value;
use sqlx::{PgConnection, PgTransaction};

use crate::approval::Approval;
use crate::audit::{self, Entry};
use crate::flow::{Ask, Gate};
use crate::idempotency::Claim;
use crate::permit::Permit;
use crate::scope::About;
use crate::{Error, Result, leaving};

/// What is done last in a transaction, before it is committed; when it fails nothing was done.
pub type Last = Box<
    dyn for<'a> FnOnce(&'a mut PgConnection, Done) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>
        + Send
        + Sync,
>;

/// What came of the operation that a change went on as.
#[derive(Debug)]
pub struct Done {
    /// Its answer.
    pub answer: Value,
    /// Where to look next.
    pub location: Option<String>,
}

/// A permitted write. Nothing of it is there before it is committed.
#[must_use = "a change that is not committed did not happen"]
pub struct Change<O> {
    pub(crate) permit: Permit<O>,
    pub(crate) claim: Option<Claim>,
    pub(crate) begun: Option<Transaction>,
    pub(crate) first: Option<First>,
}

/// Of a change that goes on as another one: what the first is answered with, and what it does last.
pub(crate) struct First {
    answer: Value,
    last: Last,
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

    /// The approval by which it is done, if it was asked for.
    pub fn approval(&self) -> Option<&Approval> {
        self.permit.approval.as_deref()
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

    /// The transaction of the change, begun when it is first asked for; refused where it is about a project that is
    /// being destroyed.
    pub async fn transaction(&mut self) -> Result<&mut PgTransaction<'static>> {
        if self.begun.is_none() {
            let mut begun = self.permit.db.begin().await?;
            let About { project, while_leaving, .. } = self.permit.about;
            if let Some(project) = project.filter(|_| !while_leaving) {
                leaving::refuse(&mut begun, project).await?;
            }
            self.begun = Some(begun);
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
        let entry = audit::about(entry, self.permit.about.project, self.permit.approval.as_deref());
        let who = self.who();
        Ok(audit::write(self.transaction().await?, &*who, entry).await?)
    }
}

impl<O: Operation> Change<O> {
    /// Writes the audit, and what the same request is answered with when it comes again, and commits.
    pub async fn commit(mut self, entry: Entry<'_>, output: O::Output) -> Result<Committed<O>> {
        self.note(entry).await?;
        self.finish(output).await
    }

    /// The same without the audit, of an operation that says so of itself.
    pub async fn commit_unaudited(mut self, output: O::Output) -> Result<Committed<O>> {
        const { assert!(!O::META.plain().audited, "an operation is audited unless it says that it is not") };
        if self.permit.operation.scope() != Scope::Own {
            return Err(Error::Denied(Denied::Forbidden));
        }
        self.transaction().await?;
        self.finish(output).await
    }

    async fn finish(mut self, output: O::Output) -> Result<Committed<O>> {
        let mut answer = None;
        if let Some(First { answer: of_first, last }) = self.first.take() {
            answer = Some(of_first);
            let done = Done { answer: kept(&output)?, location: output.location() };
            last(self.transaction().await?, done).await?;
        }
        let claim = self.claim.take();
        match (&claim, &answer) {
            (Some(claim), Some(answer)) => claim.keep(self.transaction().await?, answer).await?,
            (Some(claim), None) => claim.keep(self.transaction().await?, &output).await?,
            (None, _) => {}
        }
        let begun = self.begun.take().ok_or(Error::Database(sqlx::Error::RowNotFound))?;
        begun.commit().await?;
        Ok(Committed(output))
    }

    /// Goes on as another operation, which is judged as if they asked for it by itself, and audited as what it is.
    /// When that is committed `last` is done in its transaction, and this one is answered with `answer`.
    pub async fn instead<P: Ask<Kind = Write>>(
        mut self,
        gate: &Gate,
        operation: P,
        answer: O::Output,
        last: Last,
    ) -> Result<(Change<P>, Instead<O, P>)> {
        self.start_over().await?;
        let permit = gate.permitted(&self.who(), operation).await?;
        self.go_on(permit, answer, last)
    }

    /// Goes on as an operation that somebody asked for, in their name, if they are still all that it takes but for what
    /// was asked for. The rest is as of [`Change::instead`].
    pub async fn approved<P: Ask<Kind = Write>>(
        mut self,
        gate: &Gate,
        operation: P,
        approval: Approval,
        answer: O::Output,
        last: Last,
    ) -> Result<(Change<P>, Instead<O, P>)> {
        self.start_over().await?;
        let permit = gate.approved(approval, operation).await?;
        self.go_on(permit, answer, last)
    }

    fn go_on<P: Operation>(
        mut self,
        permit: Permit<P>,
        answer: O::Output,
        last: Last,
    ) -> Result<(Change<P>, Instead<O, P>)> {
        let first = Some(First { answer: kept(&answer)?, last });
        let change = Change { permit, claim: self.claim.take(), begun: None, first };
        Ok((change, Instead { answer, by: PhantomData }))
    }

    /// What is so already needs no change: it is answered as if it had been made.
    pub async fn unchanged(mut self, output: O::Output) -> Result<Committed<O>> {
        self.start_over().await?;
        Ok(Committed(output))
    }
}

fn kept(answer: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(answer)
        .map_err(|error| Error::Internal { message: "the answer could not be kept", source: Box::new(error) })
}

impl<O> Deref for Change<O> {
    type Target = O;
    fn deref(&self) -> &O {
        &self.permit.operation
    }
}

/// The answer of a change that went on as another one.
#[must_use = "the change is answered with it"]
pub struct Instead<O: Operation, P> {
    answer: O::Output,
    by: PhantomData<fn() -> P>,
}

impl<O: Operation, P: Operation> Instead<O, P> {
    /// The other one is committed.
    pub fn done(self, _: Committed<P>) -> Committed<O> {
        Committed(self.answer)
    }
}

/// What a committed change answers. Only a change makes it.
pub struct Committed<O: Operation>(pub(crate) O::Output);
