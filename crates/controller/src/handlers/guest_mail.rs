//! Mail from guests: what became of it, and the switches by which a project says whose is taken.
//!
//! A switch is brought to nodes by the job that brings rules of firewalls, which takes it back where a node can't have it:
//! it opens and closes a way for guests, too.

use corpus_api::guest_mail::{
    EnvironmentMail, GetEnvironmentMail, GetGuestMail, GuestMail, MailLimits, SetEnvironmentMail, SetGuestMail,
};
use corpus_api::jobs::JobAccepted;
use corpus_api::{Denied, Version};
use corpus_domain::GuestState;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};

use crate::sagas::firewall_apply;
use crate::store::firewall::{self, RuleChange};
use crate::store::guest_mail::{self, MailSwitched};
use crate::store::guests;
use crate::{Controller, changed};

impl Handle<GetGuestMail> for Controller {
    async fn handle(&self, permit: Permit<GetGuestMail>) -> Result<GuestMail> {
        let (id, who, project) = (permit.guest, permit.who(), permit.project()?);
        let mut conn = permit.connection().await?;
        let guest = guests::get(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        let switches = guest_mail::of_guest(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        self.services.looked_at.note_mail(guest.node_id);
        let limits = self.mail_limits();
        Ok(GuestMail {
            guest: id,
            is_on: limits.is_some() && switches.is_on,
            limits,
            mail: switches.own,
            environment_mail: switches.environment,
            hours: guest_mail::hours(&mut conn, id).await?,
            month: guest_mail::month(&mut conn, id).await?,
            read_at: switches.read_at,
            may_change: who.can::<SetGuestMail>(Some(project)),
            version: Version::of(&switches.own),
            name: guest.name,
            project: guest.project,
            environment: guest.environment,
        })
    }
}

impl Handle<SetGuestMail> for Controller {
    async fn handle(&self, mut change: Change<SetGuestMail>) -> Result<Committed<SetGuestMail>> {
        let (id, to, version) = (change.guest, change.mail, change.version.clone());
        self.mail_is_offered()?;
        let tx = change.transaction().await?;
        guests::hold(tx, id).await?;
        let guest = guests::get(tx, id).await?.ok_or(Denied::NotFound)?;
        if guest.state == GuestState::Destroying {
            return Err(Error::Conflict(format!("{} is being destroyed.", guest.name)));
        }
        let was = guest_mail::of_guest(tx, id).await?.ok_or(Denied::NotFound)?.own;
        if version != Version::of(&was) {
            return Err(changed::by_others(tx, "guest.mail", id.0, told).await);
        }
        guest_mail::set_of_guest(tx, id, to).await?;
        let switched = MailSwitched::Guest { guest: id, was, is: to };
        let rules = RuleChange { mail: Some(switched), ..RuleChange::default() };
        let title = format!("Set mail of {}: {to}", guest.name);
        let job = firewall_apply::job(title, vec![guest.node_id], rules).project(guest.project_id).guest(id);
        let job = self.queue(&mut change, job).await?;
        let entry = Entry::new("guest.mail", guest.name.as_str()).id(id.0).detail(json!({ "from": was, "to": to }));
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Handle<GetEnvironmentMail> for Controller {
    async fn handle(&self, permit: Permit<GetEnvironmentMail>) -> Result<EnvironmentMail> {
        let (asked, who, project) = (permit.operation(), permit.who(), permit.project()?);
        let mut conn = permit.connection().await?;
        let mail = guest_mail::of_environment(&mut conn, project, asked.environment).await?;
        let (day, guests) = guest_mail::day(&mut conn, project, asked.environment).await?;
        for node in guest_mail::nodes(&mut conn, project, asked.environment).await? {
            self.services.looked_at.note_mail(node);
        }
        Ok(EnvironmentMail {
            project: asked.project.clone(),
            environment: asked.environment,
            limits: self.mail_limits(),
            mail,
            day,
            guests,
            may_change: who.can::<SetEnvironmentMail>(Some(project)),
            version: Version::of(&mail),
        })
    }
}

impl Handle<SetEnvironmentMail> for Controller {
    async fn handle(&self, mut change: Change<SetEnvironmentMail>) -> Result<Committed<SetEnvironmentMail>> {
        let (project, which, to) = (change.project()?, change.environment, change.mail);
        let version = change.version.clone();
        let about = format!("{which} of {}", change.operation().project);
        self.mail_is_offered()?;
        let tx = change.transaction().await?;
        let was = guest_mail::hold(tx, project, which).await?;
        if version != Version::of(&was) {
            return Err(changed::by_others(tx, "environment.mail", project.0, told).await);
        }
        guest_mail::set_of_environment(tx, (project, which), to).await?;
        let nodes = firewall::nodes_with(tx, project, None, Some(which)).await?;
        let switched = MailSwitched::Environment { project, environment: which, was, is: to };
        let rules = RuleChange { mail: Some(switched), ..RuleChange::default() };
        let job = firewall_apply::job(format!("Set mail of {about}: {to}"), nodes, rules).project(project);
        let job = self.queue(&mut change, job).await?;
        let detail = json!({ "environment": which, "from": was, "to": to });
        let entry = Entry::new("environment.mail", &about).id(project.0).detail(detail);
        change.commit(entry, JobAccepted { job }).await
    }
}

/// `it is off now`
fn told(detail: &Value) -> Option<String> {
    Some(match detail.get("to")?.as_str()? {
        "environment" => "it is as its environment now".to_owned(),
        to => format!("it is {to} now"),
    })
}

impl Controller {
    fn mail_limits(&self) -> Option<MailLimits> {
        self.services.settings.surroundings.mail.map(|mail| MailLimits {
            messages_per_hour: mail.messages_per_hour,
            max_message_bytes: mail.max_message_bytes,
        })
    }

    /// A switch that does nothing would be believed.
    fn mail_is_offered(&self) -> Result<()> {
        if self.services.settings.surroundings.mail.is_some() {
            return Ok(());
        }
        Err(Error::Conflict(
            "No mail of guests is taken here: an operator configures a relay for it first ([guest_mail]).".to_owned(),
        ))
    }
}
