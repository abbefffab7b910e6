//! Zones, and which projects may take names in each.

use corpus_api::zones::{
    CreateZone, GetZone, GetZoneAccess, ListZones, RemoveZone, SetZoneAccess, Zone, ZoneAccess, ZoneCreated,
    ZoneOpenness, ZonePage, ZoneProjects, ZoneRemoved,
};
use corpus_api::{Cursor, Denied};
use corpus_domain::{DnsName, ProjectName, ZoneId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{after, lines, page};
use crate::Controller;
use crate::dns::DnsError;
use crate::store::zones;

/// The list, for its cursors.
const LIST: &str = "zones";

impl Handle<ListZones> for Controller {
    async fn handle(&self, permit: Permit<ListZones>) -> Result<ZonePage> {
        let (limit, rows) = lines(permit.limit);
        let after: Option<String> = after(permit.cursor.as_ref(), LIST)?;
        let visible = permit.visible();
        let mut conn = permit.connection().await?;
        let found = zones::list(&mut conn, &permit, visible.as_deref(), after.as_deref(), rows).await?;
        let (items, next) = page(found, limit, |zone| Cursor::after(LIST, &zone.name));
        Ok(ZonePage { items, next })
    }
}

impl Handle<GetZone> for Controller {
    async fn handle(&self, permit: Permit<GetZone>) -> Result<Zone> {
        zone(&mut *permit.connection().await?, permit.zone).await
    }
}

impl Handle<GetZoneAccess> for Controller {
    async fn handle(&self, permit: Permit<GetZoneAccess>) -> Result<ZoneOpenness> {
        let zone = zone(&mut *permit.connection().await?, permit.zone).await?;
        Ok(ZoneOpenness::new(zone.access, zone.projects))
    }
}

impl Handle<CreateZone> for Controller {
    async fn handle(&self, mut change: Change<CreateZone>) -> Result<Committed<CreateZone>> {
        let (name, access, by) = (change.name.clone(), change.access, change.who().id);
        let projects = only(access, &change.projects);
        let provider = self.dns()?;
        let tx = change.transaction().await?;
        let zone = zones::insert(tx, &name, by)
            .await
            .map_err(|error| Error::taken(error, "name", format!("The zone {name} is there already.")))?;
        open_to(tx, zone, access, &projects).await?;
        provider.ensure_zone(&name).await.map_err(dns_error)?;
        let detail = json!({ "access": told(access, &projects) });
        let entry = Entry::new("zone.create", name.as_str()).id(zone.0).detail(detail);
        let committed = change.commit(entry, ZoneCreated { zone }).await?;
        self.services.surroundings_changed.notify_one();
        Ok(committed)
    }
}

impl Handle<SetZoneAccess> for Controller {
    async fn handle(&self, mut change: Change<SetZoneAccess>) -> Result<Committed<SetZoneAccess>> {
        let (id, access, asked) = (change.zone, change.access, change.operation());
        let projects = only(access, &asked.projects);
        let tx = change.transaction().await?;
        zones::hold(tx, id).await?;
        let before = zone(tx, id).await?;
        if asked.version != ZoneOpenness::new(before.access, before.projects.clone()).version {
            return Err(Error::Changed);
        }
        open_to(tx, id, access, &projects).await?;
        let now = zone(tx, id).await?;
        let detail = json!({ "access": told(access, &projects), "before": told(before.access, &before.projects) });
        let entry = Entry::new("zone.access", before.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, ZoneOpenness::new(now.access, now.projects)).await
    }
}

impl Handle<RemoveZone> for Controller {
    async fn handle(&self, mut change: Change<RemoveZone>) -> Result<Committed<RemoveZone>> {
        let id = change.zone;
        let provider = self.dns()?;
        let tx = change.transaction().await?;
        let name = zones::name_of(tx, id).await?.ok_or(Denied::NotFound)?;
        zones::delete(tx, id).await.map_err(|error| in_use(error, &name))?;
        provider.remove_zone(&name).await.map_err(dns_error)?;
        let committed = change.commit(Entry::new("zone.remove", name.as_str()).id(id.0), ZoneRemoved { zone: id });
        let committed = committed.await?;
        self.services.surroundings_changed.notify_one();
        Ok(committed)
    }
}

async fn zone(conn: &mut PgConnection, id: ZoneId) -> Result<Zone> {
    Ok(zones::get(conn, id).await?.ok_or(Denied::NotFound)?)
}

/// A zone that is open to all is for none in particular.
fn only(access: ZoneAccess, projects: &ZoneProjects) -> Vec<ProjectName> {
    match access {
        ZoneAccess::All => Vec::new(),
        ZoneAccess::Only => projects.to_vec(),
    }
}

/// What the audit tells of it.
fn told(access: ZoneAccess, projects: &[ProjectName]) -> Value {
    match access {
        ZoneAccess::All => json!("all"),
        ZoneAccess::Only => json!({ "only": projects }),
    }
}

async fn open_to(conn: &mut PgConnection, id: ZoneId, access: ZoneAccess, projects: &[ProjectName]) -> Result<()> {
    if access == ZoneAccess::Only && projects.is_empty() {
        return Err(Error::field("projects", "Name at least one project, or open the zone to all."));
    }
    match zones::set_access(conn, id, access, projects).await? {
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
