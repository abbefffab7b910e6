//! Which mail one wants, and for operators how mail goes.

use corpus_api::mail::{GetMail, GetMailRelay, MailChoice, MailRelay, SetMail};
use corpus_domain::{MailDelivery, MailKind, MailPreference};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Handle, Permit, Result};
use serde_json::{Value, json};

use crate::store::{mail, mail_letters, users};
use crate::{Controller, changed};

impl Handle<GetMail> for Controller {
    async fn handle(&self, permit: Permit<GetMail>) -> Result<MailChoice> {
        Ok(mail::preference(&mut *permit.connection().await?, permit.who().id).await?)
    }
}

impl Handle<SetMail> for Controller {
    async fn handle(&self, mut change: Change<SetMail>) -> Result<Committed<SetMail>> {
        let (wants, chosen, who) = (change.wants, change.chosen(), change.who());
        let version = change.version.clone();
        let tx = change.transaction().await?;
        users::lock(tx, who.id).await?;
        if mail::preference(tx, who.id).await?.version != version {
            return Err(changed::by_others(tx, "mail.preference", who.id.0, wanted).await);
        }
        mail::set_preference(tx, who.id, wants, &chosen).await?;
        let now = mail::preference(tx, who.id).await?;
        let kinds = MailKind::ALL.iter().map(|kind| (kind.to_string(), Value::from(now.delivery(*kind).as_str())));
        let detail = json!({ "wants": wants.as_str(), "kinds": Value::Object(kinds.collect()) });
        let entry = Entry::new("mail.preference", who.login.as_str()).id(who.id.0).detail(detail);
        change.commit(entry, now).await
    }
}

impl Handle<GetMailRelay> for Controller {
    async fn handle(&self, permit: Permit<GetMailRelay>) -> Result<MailRelay> {
        Ok(mail_letters::relay(&mut *permit.connection().await?).await?)
    }
}

/// What a change of it was.
fn wanted(detail: &Value) -> Option<String> {
    let whose = match changed::read(detail, "wants")? {
        MailPreference::Nothing => "no letters are sent now",
        MailPreference::Own => "letters are sent about your own deployments now",
        MailPreference::All => "letters are sent about all of your projects now",
    };
    let delivered = |wanted: MailDelivery| {
        let kinds = detail.get("kinds").and_then(Value::as_object).into_iter().flatten();
        kinds.filter(|(_, delivery)| delivery.as_str() == Some(wanted.as_str())).count()
    };
    let parts = [(MailDelivery::Digest, "once a day"), (MailDelivery::Never, "never")];
    let parts = parts.map(|(wanted, when)| match delivered(wanted) {
        0 => String::new(),
        1 => format!(", 1 kind {when}"),
        count => format!(", {count} kinds {when}"),
    });
    Some(format!("{whose}{}", parts.concat()))
}
