//! Members' SSH keys: they reach every guest that the member may enter, and leave it.

use std::collections::BTreeSet;

use corpus_api::keys::{AddKey, KeyAdded, KeyPage, KeyRemoved, ListMyKeys, RemoveKey};
use corpus_api::{Cursor, Denied, Operation, Write};
use corpus_domain::{NodeId, UserId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use sqlx::{PgConnection, PgTransaction};

use super::{after, lines, page};
use crate::Controller;
use crate::job_errors::jobs_error;
use crate::jobs::NewJob;
use crate::sagas::keys_sync;
use crate::ssh_keys::{KeyRefused, MemberKey};
use crate::store::keys::RemovedKey;
use crate::store::undoes::{About, NewUndo, Reverse};
use crate::store::{keys, nodes, undoes};

/// The list, for its cursors.
const LIST: &str = "own keys, the oldest first";

impl Handle<ListMyKeys> for Controller {
    async fn handle(&self, permit: Permit<ListMyKeys>) -> Result<KeyPage> {
        let (limit, rows) = lines(permit.limit);
        let from = after(permit.cursor.as_ref(), LIST)?;
        let found = keys::of_user(&mut *permit.connection().await?, permit.who().id, from, rows).await?;
        let (items, next) = page(found, limit, |key| Cursor::after(LIST, &key.id));
        Ok(KeyPage { items, next })
    }
}

/// Of a key that another account holds the principal is not told whose it is.
impl Handle<AddKey> for Controller {
    async fn handle(&self, mut change: Change<AddKey>) -> Result<Committed<AddKey>> {
        let line = change.line.to_string();
        let key: MemberKey = line.parse().map_err(|error: KeyRefused| Error::field("line", error.to_string()))?;
        let who = change.who().id;
        match keys::owner(change.transaction().await?, key.fingerprint()).await? {
            Some(owner) if owner == who => Err(Error::field("line", "You have added this key already.")),
            Some(_) => self.claim_key(change, &key).await,
            None => self.keep_key(change, &key).await,
        }
    }
}

impl Handle<RemoveKey> for Controller {
    async fn handle(&self, mut change: Change<RemoveKey>) -> Result<Committed<RemoveKey>> {
        let (key, who) = (change.key, change.who().id);
        let tx = change.transaction().await?;
        let removed = keys::delete(tx, who, key).await?.ok_or(Denied::NotFound)?;
        let RemovedKey { line, fingerprint, comment } = removed;
        let named = if comment.is_empty() { &fingerprint } else { &comment };
        let undo = NewUndo {
            about: About::default(),
            subject: &fingerprint,
            said: format!("The key {named} was removed."),
            reverse: Reverse::Key { line },
            path: "/keys".to_owned(),
        };
        undoes::keep(tx, who, &undo).await?;
        self.key_changed(&mut change).await?;
        change.commit(Entry::new("key.remove", &fingerprint).id(key.0), KeyRemoved { key }).await
    }
}

impl Controller {
    pub(super) async fn keep_key(&self, mut change: Change<AddKey>, key: &MemberKey) -> Result<Committed<AddKey>> {
        let who = change.who().id;
        let inserted = keys::insert(change.transaction().await?, who, key).await;
        let again = "This key was added by somebody at the same moment; try again.";
        let id = inserted.map_err(|error| Error::taken(error, "line", again))?;
        self.key_changed(&mut change).await?;
        change.commit(Entry::new("key.add", key.fingerprint()).id(id.0), KeyAdded::Added { key: id }).await
    }

    /// Queues a job on each node whose guests it concerns.
    async fn key_changed<O: Operation<Kind = Write>>(&self, change: &mut Change<O>) -> Result<()> {
        let who = change.who().id;
        let tx = change.transaction().await?;
        let nodes = keys::guests_of_user(tx, who).await?.into_iter().map(|(node, _)| node).collect();
        for job in sync_jobs(tx, nodes).await? {
            self.queue(change, job).await?;
        }
        Ok(())
    }

    /// Queues a job on each of the nodes, in the name of `by` or of nobody.
    pub(crate) async fn queue_keys_sync(
        &self,
        tx: &mut PgTransaction<'_>,
        nodes: BTreeSet<NodeId>,
        by: Option<UserId>,
    ) -> Result<()> {
        for job in sync_jobs(tx, nodes).await? {
            let job = if let Some(by) = by { job.created_by(by) } else { job };
            self.jobs.submit(tx, job).await.map_err(jobs_error)?;
        }
        Ok(())
    }
}

async fn sync_jobs(conn: &mut PgConnection, on: BTreeSet<NodeId>) -> Result<Vec<NewJob<keys_sync::Params>>> {
    let mut jobs = Vec::new();
    for node in on {
        let address = nodes::get(conn, node).await?.map(|node| node.address.to_string());
        jobs.push(keys_sync::job(node, &address.unwrap_or_default()));
    }
    Ok(jobs)
}
