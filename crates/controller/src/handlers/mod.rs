//! What is done when something is asked: a handler for each operation of `corpus_api`.
//!
//! A handler decides nothing about who may: it is called with what the gate permitted, and reaches the
//! database only by that. What takes longer than a query it queues as a job.

mod aliases;
mod audit;
mod backings;
mod baseline;
mod certificates;
mod claims;
mod controller_backups;
mod deployments;
pub mod device_logins;
mod environments;
mod firewall;
mod first_steps;
mod guest_mail;
mod guest_users;
mod guests;
mod hooks;
mod images;
mod intrusion;
mod jobs;
mod key_claims;
mod keys;
mod logins;
mod lxc_lines;
mod made_images;
mod mail;
mod me;
mod name_rules;
mod name_switch;
mod names;
mod node_names;
mod nodes;
mod notices;
mod overview;
mod pointers;
mod previews;
mod profiles;
mod projects;
mod quotas;
mod requests;
mod robots;
mod salt_masters;
mod search;
mod sizes;
mod states;
mod tokens;
mod traffic;
mod undoes;
mod views;
mod webhooks;
mod zones;

pub(crate) use self::guests::Kept;
use corpus_api::stream::Stream;
use corpus_api::{Operation, Principal, Problem, Role, Scope};
use corpus_domain::JobId;
use corpus_gate::{Ask, Change, Error, Handle, HandleStream, Key, Result};

use crate::Controller;
use crate::job_errors::jobs_error;
use crate::jobs::{JobParams, NewJob};

impl Controller {
    /// Asks for an operation in the name of `who`. With a key the same question is answered as before.
    pub async fn call<O: Ask>(
        &self,
        who: &Principal,
        operation: O,
        key: Option<Key>,
    ) -> std::result::Result<O::Output, Problem>
    where
        Self: Handle<O>,
    {
        self.gate.call(self, who, operation, key).await
    }

    /// Whether `who` has a role about something; if not, it is said who has it.
    pub async fn may(&self, who: &Principal, needs: Role, about: &Scope) -> std::result::Result<(), Problem> {
        self.gate.may(who, needs, about).await
    }

    /// Begins to follow something in the name of `who`.
    pub async fn watch<S: Stream>(
        &self,
        who: &Principal,
        what: S,
    ) -> std::result::Result<<Self as HandleStream<S>>::Events, Problem>
    where
        Self: HandleStream<S>,
    {
        self.gate.follow(self, who, what).await
    }

    /// Whether what they follow may still be seen by them.
    pub async fn still<S: Stream>(&self, who: &Principal, what: &S) -> std::result::Result<(), Problem> {
        self.gate.still(who, what).await
    }

    /// Queues a job in the name of who changes something.
    pub(crate) async fn queue<O: Operation, P: JobParams>(
        &self,
        change: &mut Change<O>,
        job: NewJob<P>,
    ) -> Result<JobId> {
        let job = job.created_by(change.who().id);
        let submitted = self.jobs.submit(change.transaction().await?, job).await.map_err(jobs_error)?;
        Ok(submitted.id())
    }
}

/// A page of rows that were read one more than `limit`: the lines, and where the next page begins.
fn page<T>(
    mut rows: Vec<T>,
    limit: usize,
    cursor: impl Fn(&T) -> corpus_api::Cursor,
) -> (Vec<T>, Option<corpus_api::Cursor>) {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(cursor);
    (rows, next)
}

/// The lines of a page, and how many rows to read: one more, to know whether there is another page.
fn lines(limit: Option<corpus_api::words::Limit>) -> (usize, i64) {
    let limit = limit.unwrap_or(corpus_api::words::Limit::USUAL).get();
    (usize::try_from(limit).unwrap_or(50), i64::try_from(limit).unwrap_or(50).saturating_add(1))
}

/// Where a list goes on, if a cursor says it.
fn after<T: serde::de::DeserializeOwned>(cursor: Option<&corpus_api::Cursor>, list: &str) -> Result<Option<T>> {
    cursor.map(|cursor| cursor.position(list)).transpose().map_err(|wrong| Error::Fields(vec![wrong]))
}

macro_rules! all_handled {
    ($($operation:ty),* $(,)?) => {
        const _: () = {
            const fn handled<O: Ask>() where Controller: Handle<O> {}
            $(handled::<$operation>();)*
        };
    };
}
corpus_api::each_operation!(all_handled);

macro_rules! all_followed {
    ($($stream:ty),* $(,)?) => {
        const _: () = {
            const fn followed<S: Stream>() where Controller: HandleStream<S> {}
            $(followed::<$stream>();)*
        };
    };
}
corpus_api::each_stream!(all_followed);
