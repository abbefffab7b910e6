//! Who one is here, and which mail one wants.

use corpus_api::me::{GetMail, GetMe, MailChoice, Me, SetMail};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use crate::Controller;
use crate::store::{mail, users};

impl Handle<GetMe> for Controller {
    async fn handle(&self, permit: Permit<GetMe>) -> Result<Me> {
        let who = permit.who();
        let roles = users::own_roles(&mut *permit.connection().await?, who.id).await?;
        let (login, display_name) = (who.login.clone(), who.display_name.clone());
        Ok(Me { id: who.id, login, display_name, ops: who.ops, roles, token: who.token })
    }
}

impl Handle<GetMail> for Controller {
    async fn handle(&self, permit: Permit<GetMail>) -> Result<MailChoice> {
        let wants = mail::preference(&mut *permit.connection().await?, permit.who().id).await?;
        Ok(MailChoice::of(wants))
    }
}

impl Handle<SetMail> for Controller {
    async fn handle(&self, mut change: Change<SetMail>) -> Result<Committed<SetMail>> {
        let (wants, who) = (change.wants, change.who());
        let version = change.version.clone();
        let tx = change.transaction().await?;
        users::lock(tx, who.id).await?;
        if MailChoice::of(mail::preference(tx, who.id).await?).version != version {
            return Err(Error::Changed);
        }
        mail::set_preference(tx, who.id, wants).await?;
        let entry = Entry::new("mail.preference", who.login.as_str()).detail(json!({ "wants": wants.as_str() }));
        change.commit(entry, MailChoice::of(wants)).await
    }
}
