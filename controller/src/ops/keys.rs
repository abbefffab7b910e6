//! Members' SSH keys: they reach every guest that the member may enter, and leave it.

use std::collections::BTreeSet;

use corpus_domain::{NodeId, SshKeyId, UserId};
use serde_json::json;
use sqlx::PgTransaction;

use crate::authz::{Denied, Operation, Principal};
use crate::sagas::keys_sync;
use crate::ssh_keys::{KeyRefused, MemberKey};
use crate::store::{audit, keys};
use crate::views::{KeyAdded, KeyView};
use crate::{Controller, Error, Result};

impl Controller {
    /// The principal's keys.
    pub async fn my_keys(&self, principal: &Principal) -> Result<Vec<KeyView>> {
        let _permit = principal.permit(Operation::KeyOwn)?;
        let mut conn = self.services.db.acquire().await?;
        Ok(keys::of_user(&mut conn, principal.id).await?)
    }

    /// Adds a public key, given as a line of a `.pub` file. One that another account holds is not
    /// added: the principal may claim it, and is not told whose it is.
    pub async fn add_key(&self, principal: &Principal, line: &str) -> Result<KeyAdded> {
        let _permit = principal.permit(Operation::KeyOwn)?;
        let key: MemberKey = line.parse().map_err(|error: KeyRefused| Error::field("line", error.to_string()))?;
        let mut tx = self.services.begin().await?;
        let added = match keys::owner(&mut tx, key.fingerprint()).await? {
            Some(owner) if owner == principal.id => {
                return Err(Error::field("line", "You have added this key already."));
            }
            Some(_) => KeyAdded::Claim(self.claim_key(&mut tx, principal, &key).await?),
            None => {
                let inserted = keys::insert(&mut tx, principal.id, &key).await;
                let again = "This key was added by somebody at the same moment; try again.";
                let id = inserted.map_err(|error| Error::taken(error, "line", again))?;
                self.key_changed(&mut tx, principal, "key.add", id, key.fingerprint()).await?;
                KeyAdded::Added(id)
            }
        };
        tx.commit().await?;
        Ok(added)
    }

    /// Removes one of the principal's keys.
    pub async fn remove_key(&self, principal: &Principal, id: SshKeyId) -> Result<()> {
        let _permit = principal.permit(Operation::KeyOwn)?;
        let mut tx = self.services.begin().await?;
        let fingerprint = keys::delete(&mut tx, principal.id, id).await?.ok_or(Denied::NotFound)?;
        self.key_changed(&mut tx, principal, "key.remove", id, &fingerprint).await?;
        Ok(tx.commit().await?)
    }

    /// Audits the change, and queues a job on each node whose guests it concerns.
    async fn key_changed(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        action: &'static str,
        id: SshKeyId,
        fingerprint: &str,
    ) -> Result<()> {
        let entry = audit::Entry { action, subject: fingerprint, subject_id: Some(id.0), detail: json!({}) };
        audit::write(tx, principal, entry).await?;
        let nodes = keys::guests_of_user(tx, principal.id).await?.into_iter().map(|(node, _)| node).collect();
        self.queue_keys_sync(tx, nodes, Some(principal.id)).await
    }

    /// Queues a job on each of the nodes, in the name of `by` or of nobody.
    pub(super) async fn queue_keys_sync(
        &self,
        tx: &mut PgTransaction<'_>,
        nodes: BTreeSet<NodeId>,
        by: Option<UserId>,
    ) -> Result<()> {
        for node in nodes {
            let address = crate::store::nodes::get(tx, node).await?.map(|node| node.address.to_string());
            let mut job = keys_sync::job(node, &address.unwrap_or_default());
            if let Some(by) = by {
                job = job.created_by(by);
            }
            self.jobs.submit(tx, job).await.map_err(super::jobs_error)?;
        }
        Ok(())
    }
}
