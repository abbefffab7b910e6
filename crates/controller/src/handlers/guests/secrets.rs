//! What a guest is known by, and what opens it.

use corpus_api::guests::{ConfirmGuestHostKey, GuestHostKeyConfirmed, GuestPasswordRevealed, RevealGuestPassword};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use secrecy::ExposeSecret;
use serde_json::json;

use super::row;
use crate::Controller;
use crate::store::guests;

impl Handle<ConfirmGuestHostKey> for Controller {
    async fn handle(&self, mut change: Change<ConfirmGuestHostKey>) -> Result<Committed<ConfirmGuestHostKey>> {
        let (id, fingerprint) = (change.guest, change.fingerprint.to_string());
        let guest = row(&mut change, id).await?;
        if !guests::confirm_host_key(change.transaction().await?, id, &fingerprint).await? {
            return Err(Error::Conflict(format!(
                "{} does not show that key any more. Look at its page again, and compare what is shown now.",
                guest.name
            )));
        }
        let detail = json!({ "from": guest.host_fingerprint, "to": fingerprint });
        let entry = Entry::new("guest.confirm_host_key", guest.name.as_str()).id(id.0).detail(detail);
        let committed = change.commit(entry, GuestHostKeyConfirmed { guest: id, fingerprint }).await?;
        self.services.guests.forget(id);
        Ok(committed)
    }
}

/// Who reveals a password is in the audit before it is answered.
impl Handle<RevealGuestPassword> for Controller {
    async fn handle(&self, mut change: Change<RevealGuestPassword>) -> Result<Committed<RevealGuestPassword>> {
        let id = change.guest;
        let guest = row(&mut change, id).await?;
        let sealed = guests::password(change.transaction().await?, id)
            .await?
            .ok_or_else(|| Error::Conflict(format!("{} has no password yet.", guest.name)))?;
        let password = self.services.open_password(id, &sealed)?.expose_secret().to_owned();
        let entry = Entry::new("guest.reveal_password", guest.name.as_str()).id(id.0);
        change.commit(entry, GuestPasswordRevealed { guest: id, password }).await
    }
}
