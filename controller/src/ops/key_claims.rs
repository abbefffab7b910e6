//! A key that another account holds comes to who proves to have it.
//!
//! A public key opens nothing for who adds it and has no private one; but it kept its owner from
//! adding it. So its owner signs a text of ours, and the key moves: the account that held it is
//! told by mail, not who has it now, and who claims it never learns whose it was.

use corpus_domain::{KeyClaimId, SshKeyId, UserId};
use rand::RngExt;
use rand::distr::Alphanumeric;
use serde_json::json;
use sqlx::PgTransaction;

use crate::authz::{Denied, Operation, Principal};
use crate::mail::{KeyLetter, Letter};
use crate::ssh_keys::{KeyRefused, MemberKey, proof_text, verify_proof};
use crate::store::key_claims::{self, Claim};
use crate::store::{audit, keys, mail, users};
use crate::views::KeyClaimView;
use crate::{Controller, Error, Result};

/// Claims that a member may have at once.
const AT_ONCE: i64 = 10;
/// The length of a nonce: 32 letters and digits hold 190 bits.
const NONCE_LENGTH: usize = 32;

impl Controller {
    /// What is to be signed for one of the principal's own claims.
    pub async fn key_claim(&self, principal: &Principal, id: KeyClaimId) -> Result<KeyClaimView> {
        let _permit = principal.permit(Operation::KeyOwn)?;
        let mut conn = self.services.db.acquire().await?;
        let claim = key_claims::hold(&mut conn, principal.id, id).await?.ok_or(Denied::NotFound)?;
        let text = self.claim_text(principal, &claim);
        Ok(KeyClaimView { id, fingerprint: claim.fingerprint, text, expires_at: claim.expires_at })
    }

    /// Moves the key to the principal, whose signature of the text proves to have it. A claim is
    /// good for one proof.
    pub async fn prove_key(&self, principal: &Principal, id: KeyClaimId, signature: &str) -> Result<SshKeyId> {
        let _permit = principal.permit(Operation::KeyOwn)?;
        let mut tx = self.services.begin().await?;
        let claim = key_claims::hold(&mut tx, principal.id, id).await?.ok_or(Denied::NotFound)?;
        verify_proof(signature, &self.claim_text(principal, &claim), &claim.line)
            .map_err(|refused| Error::field("signature", refused.to_string()))?;
        key_claims::delete(&mut tx, id).await?;
        let key = self.move_key(&mut tx, principal, id, &claim).await?;
        tx.commit().await?;
        Ok(key)
    }

    /// Begins a claim, in the transaction in which another account was seen to hold the key.
    pub(super) async fn claim_key(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        key: &MemberKey,
    ) -> Result<KeyClaimId> {
        if key_claims::count(tx, principal.id).await? >= AT_ONCE {
            let message = format!("You have begun to claim {AT_ONCE} keys; prove one of them, or wait ten minutes.");
            return Err(Error::field("line", message));
        }
        let nonce: String = rand::rng().sample_iter(Alphanumeric).take(NONCE_LENGTH).map(char::from).collect();
        let id = key_claims::put(tx, principal.id, key, &nonce).await?;
        let entry = audit::Entry {
            action: "key.claim_begin",
            subject: key.fingerprint(),
            subject_id: Some(id.0),
            detail: json!({}),
        };
        audit::write(tx, principal, entry).await?;
        Ok(id)
    }

    fn claim_text(&self, principal: &Principal, claim: &Claim) -> String {
        proof_text(&claim.nonce, &claim.fingerprint, &principal.login, &self.services.settings.name)
    }

    async fn move_key(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        claim_id: KeyClaimId,
        claim: &Claim,
    ) -> Result<SshKeyId> {
        let key: MemberKey =
            claim.line.parse().map_err(|error: KeyRefused| Error::field("signature", error.to_string()))?;
        let former = keys::delete_held(tx, key.fingerprint()).await?.filter(|former| *former != principal.id);
        let id = keys::insert(tx, principal.id, &key).await.map_err(|error| {
            Error::taken(error, "signature", "This key was added again meanwhile; add it once more.")
        })?;
        let mut nodes = keys::guests_of_user(tx, principal.id).await?;
        let mut from = None;
        if let Some(former) = former {
            nodes.append(&mut keys::guests_of_user(tx, former).await?);
            from = users::login(tx, former).await?;
            self.tell_former(tx, principal, former, claim_id, &key).await?;
        }
        let detail = json!({ "from": from });
        let entry = audit::Entry { action: "key.claim", subject: key.fingerprint(), subject_id: Some(id.0), detail };
        audit::write(tx, principal, entry).await?;
        let nodes = nodes.into_iter().map(|(node, _)| node).collect();
        self.queue_keys_sync(tx, nodes, Some(principal.id)).await?;
        Ok(id)
    }

    /// Who held the key until now gets a letter, and a row of the audit under their own name.
    async fn tell_former(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        former: UserId,
        claim: KeyClaimId,
        key: &MemberKey,
    ) -> Result<()> {
        let letter = KeyLetter { fingerprint: key.fingerprint().to_owned(), algorithm: key.algorithm().to_string() };
        mail::enqueue(tx, &format!("key:{claim}"), &[former], &Letter::KeyMoved(letter)).await?;
        let Some(login) = users::login(tx, former).await? else { return Ok(()) };
        let entry = audit::Entry {
            action: "key.moved_away",
            subject: login.as_str(),
            subject_id: Some(former.0),
            detail: json!({ "fingerprint": key.fingerprint(), "to": principal.login }),
        };
        Ok(audit::write(tx, principal, entry).await?)
    }
}
