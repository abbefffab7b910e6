//! The DNS names that lead to guests.

use std::sync::Arc;

use corpus_api::jobs::JobAccepted;
use corpus_api::names::{AttachName, DetachName, GetName, ListNames, NameAccepted, NameLine, NamePage};
use corpus_api::{Cursor, Denied, Operation, Write};
use corpus_domain::{DnsName, DnsNameId, GuestState, JobId, NameState};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use super::{after, lines, page};
use crate::Controller;
use crate::dns::DnsProvider;
use crate::sagas::{name_attach, name_detach};
use crate::store::guests::{self, GuestRow};
use crate::store::names;

/// The list, for its cursors.
const LIST: &str = "names";

impl Handle<ListNames> for Controller {
    async fn handle(&self, permit: Permit<ListNames>) -> Result<NamePage> {
        let (limit, rows) = lines(permit.limit);
        let after: Option<String> = after(permit.cursor.as_ref(), LIST)?;
        let visible = permit.visible();
        let mut conn = permit.connection().await?;
        let found = names::list(&mut conn, &permit, visible.as_deref(), after.as_deref(), rows).await?;
        let (items, next) = page(found, limit, |line| Cursor::after(LIST, &line.name));
        Ok(NamePage { items, next })
    }
}

impl Handle<GetName> for Controller {
    async fn handle(&self, permit: Permit<GetName>) -> Result<NameLine> {
        Ok(names::line(&mut *permit.connection().await?, permit.name).await?.ok_or(Denied::NotFound)?)
    }
}

impl Handle<AttachName> for Controller {
    async fn handle(&self, mut change: Change<AttachName>) -> Result<Committed<AttachName>> {
        let (id, name, who, project) = (change.guest, change.name.clone(), change.who(), change.project()?);
        let guest = guests::get(&mut *change.connection().await?, id).await?.ok_or(Denied::NotFound)?;
        self.dns()?;
        if matches!(guest.state, GuestState::Creating | GuestState::Destroying | GuestState::Failed) {
            return Err(Error::Conflict(format!(
                "{} is {}; a name can be attached once it is there.",
                guest.name, guest.state
            )));
        }
        self.is_nobody_elses(&mut change, project, &name).await?;
        let (attached, job) = self.want_name(&mut change, &guest, &name).await?;
        self.environment_follows(change.transaction().await?, &who, id).await?;
        let entry = Entry::new("name.attach", name.as_str()).id(attached.0).detail(json!({ "guest": guest.name }));
        change.commit(entry, NameAccepted { name: attached, job }).await
    }
}

impl Handle<DetachName> for Controller {
    async fn handle(&self, mut change: Change<DetachName>) -> Result<Committed<DetachName>> {
        let (id, who) = (change.name, change.who());
        let tx = change.transaction().await?;
        let name = names::get(tx, id).await?.ok_or(Denied::NotFound)?;
        let guest = guests::get(tx, name.guest_id).await?.ok_or(Denied::NotFound)?;
        self.dns()?;
        if name.state == NameState::Detaching {
            return Err(Error::Conflict(format!("{} is being detached already.", name.name)));
        }
        names::set_state(tx, id, NameState::Detaching, None).await?;
        let job = self.queue(&mut change, name_detach::job(&name, &guest)).await?;
        self.environment_follows(change.transaction().await?, &who, guest.id).await?;
        let detail = json!({ "guest": guest.name });
        let entry = Entry::new("name.detach", name.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Controller {
    /// Keeps the wanted name and queues the job that attaches it.
    pub(super) async fn want_name<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        guest: &GuestRow,
        name: &DnsName,
    ) -> Result<(DnsNameId, JobId)> {
        let who = change.who();
        let tx = change.transaction().await?;
        let zone = self.zone_for(tx, &who, guest.project_id, name).await?;
        // Others' names are refused by now: this is one of the project itself.
        let id = names::insert(tx, name, zone.id, guest.id, who.id)
            .await
            .map_err(|error| Error::taken(error, "name", format!("{name} is attached to a guest already.")))?;
        Ok((id, self.queue(change, name_attach::job(id, name, guest, !who.ops)).await?))
    }

    pub(super) fn dns(&self) -> Result<Arc<dyn DnsProvider>> {
        self.services.dns.clone().ok_or_else(|| {
            Error::Conflict("No DNS server is configured: set [dns] in Corpus' configuration.".to_owned())
        })
    }
}
