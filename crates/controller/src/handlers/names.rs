//! The DNS names that lead to guests.

use corpus_api::jobs::JobAccepted;
use corpus_api::names::{AttachName, DetachName, GetName, ListNames, NameAccepted, NameLine, NameOrder, NamePage};
use corpus_api::{Cursor, Denied, Operation, Write};
use corpus_domain::{DnsName, DnsNameId, Environment, GuestState, JobId, NameState, ProviderName};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use super::{after, lines, page};
use crate::dns::Provider;
use crate::quotas::More;
use crate::sagas::{name_attach, name_detach};
use crate::store::guests::{self, GuestRow};
use crate::store::names::NameRow;
use crate::store::undoes::{About, NewUndo, Reverse};
use crate::store::{names, not_created, undoes};
use crate::{Controller, quotas};

/// The lists, for their cursors.
const LIST: &str = "names";
const NEWEST: &str = "names, the newest first";

impl Handle<ListNames> for Controller {
    async fn handle(&self, permit: Permit<ListNames>) -> Result<NamePage> {
        let (limit, rows) = lines(permit.limit);
        let visible = permit.visible();
        let (cursor, order) = (permit.cursor.as_ref(), permit.sort.unwrap_or_default());
        let mut conn = permit.connection().await?;
        let (items, next) = match order {
            NameOrder::Name => {
                let after: Option<(String, bool)> = after(cursor, LIST)?;
                let after = after.as_ref().map(|(name, wildcard)| (name.as_str(), *wildcard));
                let found = names::list(&mut conn, &permit, visible.as_deref(), after, rows).await?;
                page(found, limit, |line| Cursor::after(LIST, &(&line.name, line.wildcard)))
            }
            NameOrder::Newest => {
                let before = after(cursor, NEWEST)?;
                let found = names::newest(&mut conn, &permit, visible.as_deref(), before, rows).await?;
                page(found, limit, |line| Cursor::after(NEWEST, &line.id))
            }
        };
        self.services.looked_at.note_names(items.iter().map(|name| name.id));
        Ok(NamePage { items, next })
    }
}

impl Handle<GetName> for Controller {
    async fn handle(&self, permit: Permit<GetName>) -> Result<NameLine> {
        self.services.looked_at.note_names([permit.name]);
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
        let wildcard = change.wildcard;
        self.is_nobody_elses(&mut change, project, (&name, wildcard)).await?;
        let more = More { names: 1, ..More::default() };
        quotas::take(&mut change, project, more, |_| "name").await?;
        let (attached, job) = self.want_name(&mut change, (&guest, None), (&name, wildcard)).await?;
        self.environment_follows(change.transaction().await?, &who, id).await?;
        let entry = Entry::new("name.attach", name.as_str()).id(attached.0);
        let entry = entry.detail(json!({ "guest": guest.name, "wildcard": wildcard }));
        change.commit(entry, NameAccepted { name: attached, job }).await
    }
}

impl Handle<DetachName> for Controller {
    async fn handle(&self, mut change: Change<DetachName>) -> Result<Committed<DetachName>> {
        let (id, who) = (change.name, change.who());
        let tx = change.transaction().await?;
        let name = names::get(tx, id).await?.ok_or(Denied::NotFound)?;
        let guest = guests::get(tx, name.guest_id).await?.ok_or(Denied::NotFound)?;
        if let Some(held) = &name.held {
            self.provider(&held.provider)?;
        }
        if name.state == NameState::Detaching {
            return Err(Error::Conflict(format!("{} is being detached already.", name.name)));
        }
        names::set_state(tx, id, NameState::Detaching, None).await?;
        let aliases = names::aliases(tx, id).await?;
        if !aliases.is_empty() {
            let aliases = aliases.iter().map(|alias| alias.name.to_string()).collect::<Vec<_>>().join(", ");
            return Err(Error::Conflict(format!(
                "{} stays while others are aliases of it: detach {aliases} first.",
                name.name
            )));
        }
        // One from elsewhere is to be claimed again; a wildcard, and an alias, to be asked for as one.
        if name.held.is_some() && !name.wildcard && name.alias_of.is_none() {
            undoes::keep(tx, who.id, &attach_again(&name, &guest)).await?;
        }
        let job = self.queue(&mut change, name_detach::job(&name, &guest)).await?;
        match name.environment {
            Some(environment) => {
                let tx = change.transaction().await?;
                self.environment_is_told(tx, &who, (guest.project_id, environment)).await?;
            }
            None => self.environment_follows(change.transaction().await?, &who, guest.id).await?,
        }
        let detail = json!({ "guest": guest.name, "environment": name.environment, "wildcard": name.wildcard });
        let entry = Entry::new("name.detach", name.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, JobAccepted { job }).await
    }
}

/// What undoes that a name is detached.
fn attach_again<'a>(name: &'a NameRow, guest: &GuestRow) -> NewUndo<'a> {
    let of = name.environment.map(|environment| (guest.project.clone(), environment));
    let from = of.as_ref().map_or_else(|| guest.name.to_string(), |(project, of)| format!("{of} of {project}"));
    let path = of.as_ref();
    let path =
        path.map_or_else(|| format!("/guests/{}", guest.id), |(project, of)| format!("/projects/{project}/{of}"));
    NewUndo {
        about: About { project: Some(guest.project_id), guest: Some(guest.id), ..About::default() },
        subject: name.name.as_str(),
        said: format!("{} was detached from {from}.", name.name),
        reverse: Reverse::Name { guest: guest.id, name: name.name.clone(), environment: of },
        path,
    }
}

impl Controller {
    /// Keeps the wanted name, of a guest or of the environment that it leads, and queues the job that attaches it.
    pub(super) async fn want_name<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        (guest, environment): (&GuestRow, Option<Environment>),
        (name, wildcard): (&DnsName, bool),
    ) -> Result<(DnsNameId, JobId)> {
        let (who, is_approved) = (change.who(), change.approval().is_some());
        let tx = change.transaction().await?;
        let zone = self.zone_for(tx, (&who, is_approved), guest.project_id, name).await?;
        // Others' names are refused by now: this is one of the project itself.
        let id = names::insert(tx, (name, wildcard), Some(zone.id), (guest.id, environment), who.id)
            .await
            .map_err(|error| Error::taken(error, "name", format!("{name} is attached to a guest already.")))?;
        not_created::attached_again(tx, guest.project_id, name, who.id).await?;
        let job = self.queue(change, name_attach::job(id, (name, wildcard), (guest, environment), !who.ops)).await?;
        self.certificate_follows(change.transaction().await?, (id, name), (guest.node_id, guest.project_id)).await?;
        Ok((id, job))
    }

    /// Some DNS server is configured.
    pub(super) fn dns(&self) -> Result<()> {
        if self.services.dns.is_empty() {
            let message = "No DNS server is configured: set [dns] in Corpus' configuration.";
            return Err(Error::Conflict(message.to_owned()));
        }
        Ok(())
    }

    /// The DNS server of that name.
    pub(super) fn provider(&self, name: &ProviderName) -> Result<&Provider> {
        self.services.provider(name).map_err(Error::Conflict)
    }
}
