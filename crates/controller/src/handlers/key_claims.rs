//! A key that another account holds comes to who proves to have it.
//!
//! A public key opens nothing for who adds it and has no private one; but it kept its owner from
//! adding it. So its owner signs a text of ours, and the key moves: the account that held it is
//! told by mail, not who has it now, and who claims it never learns whose it was.

use std::collections::BTreeSet;

use corpus_api::keys::{AddKey, GetKeyClaim, KeyAdded, KeyClaim, KeyProved, ProveKey};
use corpus_api::{Denied, Principal};
use corpus_domain::{NodeId, UserId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use rand::RngExt;
use rand::distr::Alphanumeric;
use serde_json::json;

use crate::ssh_keys::{KeyRefused, MemberKey, NAMESPACE, proof_text, verify_proof};
use crate::store::key_claims::{self, Claim};
use crate::store::{keys, users};
use crate::{Controller, events};

/// Claims that a member may have at once.
const MAX_CLAIMS: i64 = 10;
/// The length of a nonce: 32 letters and digits hold 190 bits.
const NONCE_LENGTH: usize = 32;

impl Handle<GetKeyClaim> for Controller {
    async fn handle(&self, permit: Permit<GetKeyClaim>) -> Result<KeyClaim> {
        let (id, who) = (permit.claim, permit.who());
        let mut conn = permit.connection().await?;
        let claim = key_claims::hold(&mut conn, who.id, id).await?.ok_or(Denied::NotFound)?;
        let (text, namespace) = (self.claim_text(&who, &claim), NAMESPACE.to_owned());
        Ok(KeyClaim { id, fingerprint: claim.fingerprint, text, namespace, expires_at: claim.expires_at })
    }
}

/// A claim is good for one proof.
impl Handle<ProveKey> for Controller {
    async fn handle(&self, mut change: Change<ProveKey>) -> Result<Committed<ProveKey>> {
        let (id, who) = (change.claim, change.who());
        let signature = change.signature.to_string();
        let tx = change.transaction().await?;
        let claim = key_claims::hold(tx, who.id, id).await?.ok_or(Denied::NotFound)?;
        verify_proof(&signature, &self.claim_text(&who, &claim), &claim.line)
            .map_err(|refused| Error::field("signature", refused.to_string()))?;
        key_claims::delete(tx, id).await?;
        self.move_key(change, &claim).await
    }
}

impl Controller {
    /// Begins a claim, in the transaction in which another account was seen to hold the key.
    pub(super) async fn claim_key(&self, mut change: Change<AddKey>, key: &MemberKey) -> Result<Committed<AddKey>> {
        let who = change.who().id;
        let tx = change.transaction().await?;
        if key_claims::count(tx, who).await? >= MAX_CLAIMS {
            let message = format!("You have begun to claim {MAX_CLAIMS} keys; prove one of them, or wait ten minutes.");
            return Err(Error::field("line", message));
        }
        let nonce: String = rand::rng().sample_iter(Alphanumeric).take(NONCE_LENGTH).map(char::from).collect();
        let claim = key_claims::put(tx, who, key, &nonce).await?;
        events::key_claimed(tx, who, claim, key).await?;
        let entry = Entry::new("key.claim_begin", key.fingerprint()).id(claim.0);
        change.commit(entry, KeyAdded::Claim { claim }).await
    }

    fn claim_text(&self, principal: &Principal, claim: &Claim) -> String {
        proof_text(&claim.nonce, &claim.fingerprint, &principal.login, &self.services.settings.name)
    }

    async fn move_key(&self, mut change: Change<ProveKey>, claim: &Claim) -> Result<Committed<ProveKey>> {
        let key: MemberKey =
            claim.line.parse().map_err(|error: KeyRefused| Error::field("signature", error.to_string()))?;
        let who = change.who().id;
        let tx = change.transaction().await?;
        let former = keys::delete_held(tx, key.fingerprint()).await?.filter(|former| *former != who);
        let id = keys::insert(tx, who, &key).await.map_err(|error| {
            Error::taken(error, "signature", "This key was added again meanwhile; add it once more.")
        })?;
        let mut nodes = keys::guests_of_user(tx, who).await?;
        if let Some(former) = former {
            nodes.append(&mut keys::guests_of_user(tx, former).await?);
            tell_former(&mut change, former, &key).await?;
        }
        let nodes: BTreeSet<NodeId> = nodes.into_iter().map(|(node, _)| node).collect();
        self.queue_keys_sync(change.transaction().await?, nodes, Some(who)).await?;
        change.commit(Entry::new("key.claim", key.fingerprint()).id(id.0), KeyProved { key: id }).await
    }
}

/// Who held the key until now is told, and has a row of the audit under their own name. Neither of the two is told
/// who the other is: that row is for operators.
async fn tell_former(change: &mut Change<ProveKey>, former: UserId, key: &MemberKey) -> Result<()> {
    let (claim, to) = (change.claim, change.who().login.clone());
    let tx = change.transaction().await?;
    events::key_moved(tx, former, claim, key).await?;
    let Some(login) = users::login(tx, former).await? else { return Ok(()) };
    let detail = json!({ "fingerprint": key.fingerprint(), "to": to });
    change.note(Entry::new("key.moved_away", login.as_str()).id(former.0).ops_only().detail(detail)).await
}
