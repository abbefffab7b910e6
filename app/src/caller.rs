//! How a page asks: the operations themselves, in the name of the member of the request.
//!
//! Pages know no controller. What answers is given along by the server, and is the same gate that stands
//! before JSON and the command line; so a page can show nothing that the API would not.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use corpus_api::notices::NoticeOf;
use corpus_api::{Input, Operation, Principal, Problem, Role, Scope};
use serde_json::Value;

use crate::layout::is_looked_at;

/// An operation, or what came back, whichever it is.
pub type Boxed = Box<dyn Any + Send>;
/// What comes back in time.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Boxed, Problem>> + Send + 'a>>;

/// What comes back in time from an operation that was named.
pub type Untyped<'a> = Pin<Box<dyn Future<Output = Result<Value, Problem>> + Send + 'a>>;

/// Whether one may, in time.
pub type Allowed<'a> = Pin<Box<dyn Future<Output = Result<(), Problem>> + Send + 'a>>;

/// What answers operations.
pub trait Answers: Send + Sync {
    /// Answers the one of that name, read from what was given.
    fn by_id<'a>(&'a self, who: &'a Principal, id: &'a str, given: Input) -> Untyped<'a>;
    /// Answers one in the name of `who`.
    fn answer<'a>(&'a self, who: &'a Principal, operation: Boxed) -> Answer<'a>;
    /// `who` looks at what notices may be about.
    fn saw(&self, who: &Principal, of: NoticeOf);
    /// Whether `who` has a role about something.
    fn may<'a>(&'a self, who: &'a Principal, needs: Role, about: Scope) -> Allowed<'a>;
}

/// A member who asks.
#[derive(Clone)]
pub struct Caller {
    /// Who.
    pub who: Principal,
    answers: Arc<dyn Answers>,
}

impl Caller {
    /// `who` asks `answers`.
    pub const fn new(who: Principal, answers: Arc<dyn Answers>) -> Self {
        Self { who, answers }
    }

    /// Asks for an operation.
    pub async fn ask<O: Operation>(&self, operation: O) -> Result<O::Output, Problem> {
        let answer = self.answers.answer(&self.who, Box::new(operation)).await?;
        let answer = answer.downcast::<O::Output>();
        answer.map(|answer| *answer).map_err(|_| Problem::internal("The answer was to another question."))
    }

    /// They look at what notices may be about, unless the browser fetches the page for later.
    pub fn saw(&self, of: NoticeOf) {
        if is_looked_at() {
            self.answers.saw(&self.who, of);
        }
    }

    /// Whether they have a role about something; if not, who has it, as the gate says it.
    pub async fn may(&self, needs: Role, about: Scope) -> Result<(), Problem> {
        self.answers.may(&self.who, needs, about).await
    }

    /// Asks for an operation by its name.
    pub async fn ask_by_id(&self, id: &str, given: Input) -> Result<Value, Problem> {
        self.answers.by_id(&self.who, id, given).await
    }
}
