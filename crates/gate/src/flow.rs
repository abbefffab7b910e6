//! How a question is run: judged, then handled.

use std::sync::Arc;

use corpus_api::operation::Role;
use corpus_api::stream::Stream;
use corpus_api::{Denied, Operation, Plain, Principal, Problem, Read, Scope, Write};
use corpus_database::Db;
use corpus_domain::ProjectCreators;

use crate::change::{Change, Committed};
use crate::idempotency::{Claim, Claimed, Key};
use crate::needed;
use crate::permit::Permit;
use crate::scope::{About, bounded, request, resolve};
use crate::{Error, Result};

/// Where everything that is asked passes.
#[derive(Debug, Clone)]
pub struct Gate {
    db: Db,
    creators: ProjectCreators,
}

/// Handles an operation: a read is given a [`Permit`] and answers; a write is given a [`Change`] and
/// answers what committing it returned.
pub trait Handle<O: Ask>: Sync {
    /// Does what is asked.
    fn handle(&self, given: Given<O>) -> impl Future<Output = Result<Made<O>>> + Send;
}

/// Handles what can be followed.
pub trait HandleStream<S: Stream>: Sync {
    /// Its events.
    type Events: Send;
    /// Begins to follow.
    fn follow(&self, permit: Permit<S>) -> impl Future<Output = Result<Self::Events>> + Send;
}

/// An operation that can be run; all can.
pub trait Ask: Operation<Kind: Flow> {}
impl<O: Operation<Kind: Flow>> Ask for O {}

/// What a handler is given.
pub type Given<O> = <<O as Operation>::Kind as Flow>::Given<O>;
/// What a handler makes of it.
pub type Made<O> = <<O as Operation>::Kind as Flow>::Made<O>;

/// How the two kinds of operations run.
pub trait Flow: corpus_api::Kind + Sized {
    /// What a handler is given.
    type Given<O: Ask<Kind = Self>>: Send;
    /// What a handler makes of it.
    type Made<O: Ask<Kind = Self>>;
    /// Judges and handles.
    fn run<O: Ask<Kind = Self>, H: Handle<O>>(
        gate: &Gate,
        handler: &H,
        who: &Principal,
        operation: O,
        key: Option<Key>,
    ) -> impl Future<Output = Result<O::Output>> + Send;
}

impl Gate {
    /// A gate before a database; `creators` make projects.
    pub const fn new(db: Db, creators: ProjectCreators) -> Self {
        Self { db, creators }
    }

    /// Asks `handler` for an operation, in the name of `who`.
    pub async fn call<O: Ask, H: Handle<O>>(
        &self,
        handler: &H,
        who: &Principal,
        operation: O,
        key: Option<Key>,
    ) -> std::result::Result<O::Output, Problem> {
        let done = O::Kind::run(self, handler, who, operation, key).await;
        done.map_err(|error| told(&error, O::META.plain().id))
    }

    /// Begins to follow something.
    pub async fn follow<S: Stream, H: HandleStream<S>>(
        &self,
        handler: &H,
        who: &Principal,
        what: S,
    ) -> std::result::Result<H::Events, Problem> {
        let meta = S::META.plain();
        let following = async {
            may_ask(who, &meta)?;
            let about = self.judge(who, &what.scope(), meta.needs).await?;
            handler.follow(self.permit(who, what, about)).await
        };
        following.await.map_err(|error: Error| told(&error, meta.id))
    }

    /// Whether who asks has a role about something; if not, the same is said as when they tried.
    pub async fn may(&self, who: &Principal, needs: Role, about: &Scope) -> std::result::Result<(), Problem> {
        self.judge(who, about, needs).await.map(drop).map_err(|error| told(&error, "may"))
    }

    /// Whether they may ask for an operation, before what it takes has come; it is judged again when it is asked for.
    pub async fn admits<O: Ask>(&self, who: &Principal, operation: &O) -> std::result::Result<(), Problem> {
        let meta = O::META.plain();
        let judging = async {
            may_ask(who, &meta)?;
            self.judged(who, operation).await.map(drop)
        };
        judging.await.map_err(|error: Error| told(&error, meta.id))
    }

    /// Whether what is followed may still be seen.
    pub async fn still<S: Stream>(&self, who: &Principal, what: &S) -> std::result::Result<(), Problem> {
        let meta = S::META.plain();
        self.judge(who, &what.scope(), meta.needs).await.map(drop).map_err(|error| told(&error, meta.id))
    }

    /// Finds what the question is about, and judges whether they may ask it.
    async fn judge(&self, who: &Principal, scope: &Scope, needs: Role) -> Result<About> {
        let about = self.find(who, scope).await?;
        let needs = needs.max(about.at_least);
        if about.asked_by == Some(who.id) && needs <= Role::Viewer {
            return Ok(about);
        }
        let judged = who.judge(needs, about.project);
        if judged != Err(Denied::NotFound) {
            bounded(who, scope, about)?;
        }
        match judged {
            Ok(()) => Ok(about),
            Err(Denied::Forbidden) if about.hidden => Err(Denied::NotFound.into()),
            Err(Denied::Forbidden) => {
                Err(needed::forbidden(&mut *self.db.acquire().await?, who, needs, about.project).await?)
            }
            Err(denied) => Err(denied.into()),
        }
    }

    pub(crate) async fn find(&self, who: &Principal, scope: &Scope) -> Result<About> {
        match scope {
            Scope::Visible | Scope::Own | Scope::Site => Ok(About::SITE),
            Scope::Request(id) => request(&mut *self.db.acquire().await?, *id, who).await,
            _ => resolve(&mut *self.db.acquire().await?, scope, self.creators).await,
        }
    }

    /// The permit for an operation, if they may ask for it.
    pub(crate) async fn permitted<O: Operation>(&self, who: &Principal, operation: O) -> Result<Permit<O>> {
        may_ask(who, &O::META.plain())?;
        let about = self.judged(who, &operation).await?;
        Ok(self.permit(who, operation, about))
    }

    /// What the operation is about, if they may ask for it.
    async fn judged<O: Operation>(&self, who: &Principal, operation: &O) -> Result<About> {
        let mut about = self.judge(who, &operation.scope(), operation.needs()).await?;
        about.while_leaving |= O::META.plain().while_leaving;
        Ok(about)
    }

    pub(crate) fn permit<O>(&self, who: &Principal, operation: O, about: About) -> Permit<O> {
        let (operation, who, db) = (Arc::new(operation), Arc::new(who.clone()), self.db.clone());
        Permit { operation, who, about, db, approval: None }
    }
}

/// Whether they may ask this kind of question, with the token that it came with.
fn may_ask(who: &Principal, meta: &Plain) -> std::result::Result<(), Denied> {
    who.may_ask(meta.robots)?;
    who.is_granted(meta.grant)
}

/// What the door is told; what is Corpus's own fault stands in the log, once and with its causes.
fn told(error: &Error, operation: &'static str) -> Problem {
    let problem = Problem::from(error);
    if problem.status >= 500 && problem.status != 501 {
        tracing::error!(operation, error = error as &dyn std::error::Error, "an operation failed");
    }
    problem
}

impl Flow for Read {
    type Given<O: Ask<Kind = Self>> = Permit<O>;
    type Made<O: Ask<Kind = Self>> = O::Output;

    async fn run<O: Ask<Kind = Self>, H: Handle<O>>(
        gate: &Gate,
        handler: &H,
        who: &Principal,
        operation: O,
        _: Option<Key>,
    ) -> Result<O::Output> {
        handler.handle(gate.permitted(who, operation).await?).await
    }
}

impl Flow for Write {
    type Given<O: Ask<Kind = Self>> = Change<O>;
    type Made<O: Ask<Kind = Self>> = Committed<O>;

    async fn run<O: Ask<Kind = Self>, H: Handle<O>>(
        gate: &Gate,
        handler: &H,
        who: &Principal,
        operation: O,
        key: Option<Key>,
    ) -> Result<O::Output> {
        may_ask(who, &O::META.plain())?;
        let Some(key) = key else { return change(gate, handler, who, operation, None).await };
        // Before the scope: what a deletion was about is gone when its request comes again.
        let claim = match Claim::take(&gate.db, who, &key, &operation).await? {
            Claimed::Ours(claim) => claim,
            Claimed::Done(answer) => {
                let read = serde_json::from_value(answer);
                return read.map_err(|error| Error::Internal {
                    message: "the answer that was kept can't be read",
                    source: Box::new(error),
                });
            }
        };
        let done = change(gate, handler, who, operation, Some(claim.clone())).await;
        if done.is_err() {
            claim.let_go(&gate.db).await;
        }
        done
    }
}

async fn change<O: Ask<Kind = Write>, H: Handle<O>>(
    gate: &Gate,
    handler: &H,
    who: &Principal,
    operation: O,
    claim: Option<Claim>,
) -> Result<O::Output> {
    let about = gate.judged(who, &operation).await?;
    let change = Change { permit: gate.permit(who, operation, about), claim, begun: None, first: None };
    let Committed(output) = handler.handle(change).await?;
    Ok(output)
}
