//! Zones, and the names in them that lead to guests.

use std::sync::Arc;

use corpus_domain::{DnsName, DnsNameId, GuestId, GuestState, JobId, NameState, ZoneId};
use serde_json::json;
use sqlx::PgTransaction;

use super::jobs::{fill_name_jobs, open_rows};
use crate::authz::{Denied, Operation, Principal};
use crate::dns::{DnsError, DnsProvider};
use crate::sagas::{name_attach, name_detach};
use crate::store::{audit, names, zones};
use crate::views::{GuestView, NameView, ZoneAccess, ZoneView};
use crate::{Controller, Error, Result};

impl Controller {
    /// The zones in which the principal's projects may take names; all of them for operators.
    pub async fn zones(&self, principal: &Principal) -> Result<Vec<ZoneView>> {
        let _permit = principal.permit(Operation::ZoneSee)?;
        let mut conn = self.services.db.acquire().await?;
        Ok(zones::list(&mut conn, principal.visible_projects().as_deref()).await?)
    }

    /// One zone, for who says which projects may take names in it.
    pub async fn zone(&self, principal: &Principal, id: ZoneId) -> Result<ZoneView> {
        let _permit = principal.permit(Operation::ZoneGovern)?;
        let mut conn = self.services.db.acquire().await?;
        Ok(zones::list(&mut conn, None).await?.into_iter().find(|zone| zone.id == id).ok_or(Denied::NotFound)?)
    }

    /// The names that lead to guests which the principal may see.
    pub async fn names(&self, principal: &Principal) -> Result<Vec<NameView>> {
        let _permit = principal.permit(Operation::ZoneSee)?;
        let mut conn = self.services.db.acquire().await?;
        let visible = principal.visible_projects();
        let mut names = names::list(&mut conn, names::Of::Projects(visible.as_deref())).await?;
        fill_name_jobs(&mut names, &open_rows(&mut conn, None).await?);
        Ok(names)
    }

    /// Makes a zone at the DNS server and here.
    pub async fn create_zone(&self, principal: &Principal, name: DnsName, access: ZoneAccess) -> Result<ZoneId> {
        let _permit = principal.permit(Operation::ZoneCreate)?;
        let provider = self.dns()?;
        let mut tx = self.services.begin().await?;
        let id = zones::insert(&mut tx, &name, principal.id)
            .await
            .map_err(|error| Error::taken(error, "name", format!("The zone {name} is there already.")))?;
        open_to(&mut tx, id, &access).await?;
        let detail = json!({ "access": access });
        let entry = audit::Entry { action: "zone.create", subject: name.as_str(), subject_id: Some(id.0), detail };
        audit::write(&mut tx, principal, entry).await?;
        provider.ensure_zone(&name).await.map_err(dns_error)?;
        tx.commit().await?;
        self.services.surroundings_changed.notify_one();
        Ok(id)
    }

    /// Says which projects may take names in a zone. Names that are attached stay.
    pub async fn set_zone_access(&self, principal: &Principal, id: ZoneId, access: ZoneAccess) -> Result<()> {
        let before = self.zone(principal, id).await?;
        let mut tx = self.services.begin().await?;
        open_to(&mut tx, id, &access).await?;
        let detail = json!({ "access": access, "before": before.access });
        let entry =
            audit::Entry { action: "zone.access", subject: before.name.as_str(), subject_id: Some(id.0), detail };
        audit::write(&mut tx, principal, entry).await?;
        Ok(tx.commit().await?)
    }

    /// Removes a zone without names, here and at the DNS server.
    pub async fn remove_zone(&self, principal: &Principal, id: ZoneId) -> Result<()> {
        let _permit = principal.permit(Operation::ZoneRemove)?;
        let provider = self.dns()?;
        let mut tx = self.services.begin().await?;
        let name = zones::name_of(&mut tx, id).await?.ok_or(Denied::NotFound)?;
        zones::delete(&mut tx, id).await.map_err(|error| in_use(error, &name))?;
        let entry =
            audit::Entry { action: "zone.remove", subject: name.as_str(), subject_id: Some(id.0), detail: json!({}) };
        audit::write(&mut tx, principal, entry).await?;
        provider.remove_zone(&name).await.map_err(dns_error)?;
        tx.commit().await?;
        self.services.surroundings_changed.notify_one();
        Ok(())
    }

    /// Attaches a name to a guest.
    pub async fn attach_name(&self, principal: &Principal, guest: GuestId, name: DnsName) -> Result<JobId> {
        let guest = self.guest(principal, guest).await?;
        let _permit = principal.permit_in(Operation::NameAttach, guest.project_id)?;
        self.dns()?;
        if matches!(guest.state, GuestState::Creating | GuestState::Destroying | GuestState::Failed) {
            return Err(Error::Conflict(format!(
                "{} is {}; a name can be attached once it is there.",
                guest.name, guest.state
            )));
        }
        self.is_nobody_elses(principal, guest.project_id, &name).await?;
        let mut tx = self.services.begin().await?;
        let job = self.want_name(&mut tx, principal, &guest, &name).await?;
        self.environment_follows(&mut tx, principal, guest.id).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Keeps the wanted name and queues the job that attaches it.
    pub(super) async fn want_name(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        guest: &GuestView,
        name: &DnsName,
    ) -> Result<JobId> {
        let zone = self.zone_for(tx, principal, guest.project_id, name).await?;
        // Others' names are refused by now: this is one of the project itself.
        let id = names::insert(tx, name, zone.id, guest.id, principal.id)
            .await
            .map_err(|error| Error::taken(error, "name", format!("{name} is attached to a guest already.")))?;
        let entry = audit::Entry {
            action: "name.attach",
            subject: name.as_str(),
            subject_id: Some(id.0),
            detail: json!({ "guest": guest.name }),
        };
        audit::write(tx, principal, entry).await?;
        self.submit(tx, principal, name_attach::job(id, name, guest, !principal.ops)).await
    }

    /// Detaches a name from its guest.
    pub async fn detach_name(&self, principal: &Principal, id: DnsNameId) -> Result<JobId> {
        let mut tx = self.services.begin().await?;
        let name = names::list(&mut tx, names::Of::Name(id)).await?.pop().ok_or(Denied::NotFound)?;
        let guest = crate::store::guests::get(&mut tx, name.guest_id).await?.ok_or(Denied::NotFound)?;
        let _permit = principal.permit_in(Operation::NameDetach, guest.project_id)?;
        self.dns()?;
        if name.state == NameState::Detaching {
            return Err(Error::Conflict(format!("{} is being detached already.", name.name)));
        }
        names::set_state(&mut tx, id, NameState::Detaching, None).await?;
        let entry = audit::Entry {
            action: "name.detach",
            subject: name.name.as_str(),
            subject_id: Some(id.0),
            detail: json!({ "guest": guest.name.as_str() }),
        };
        audit::write(&mut tx, principal, entry).await?;
        let job = self.submit(&mut tx, principal, name_detach::job(&name, &guest)).await?;
        self.environment_follows(&mut tx, principal, guest.id).await?;
        tx.commit().await?;
        Ok(job)
    }

    fn dns(&self) -> Result<Arc<dyn DnsProvider>> {
        self.services.dns.clone().ok_or_else(|| {
            Error::Conflict("No DNS server is configured: set [dns] in Corpus' configuration.".to_owned())
        })
    }
}

async fn open_to(tx: &mut PgTransaction<'_>, id: ZoneId, access: &ZoneAccess) -> Result<()> {
    if matches!(access, ZoneAccess::Only(projects) if projects.is_empty()) {
        return Err(Error::field("projects", "Name at least one project, or open the zone to all."));
    }
    match zones::set_access(tx, id, access).await? {
        Some(missing) => Err(Error::field("projects", format!("There is no project {missing}."))),
        None => Ok(()),
    }
}

/// A refusal concerns the name that was given; the rest may pass.
fn dns_error(error: DnsError) -> Error {
    if matches!(error, DnsError::Refused { .. } | DnsError::NotEmpty { .. }) {
        return Error::field("name", error.to_string());
    }
    Error::Unavailable { message: format!("Nothing was changed: {error}."), source: Box::new(error) }
}

fn in_use(error: sqlx::Error, name: &DnsName) -> Error {
    match &error {
        sqlx::Error::Database(inner) if inner.is_foreign_key_violation() => {
            Error::Conflict(format!("Names are still attached in {name}; detach them first."))
        }
        _ => Error::Database(error),
    }
}
