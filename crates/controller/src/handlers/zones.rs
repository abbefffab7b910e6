//! Zones, and which projects may take names in each.

use corpus_api::zones::{
    CreateZone, DnsServers, GetZone, GetZoneAccess, ListDnsServers, ListZones, RemoveZone, SetZoneAccess, SetZoneTtl,
    Zone, ZoneAccess, ZoneCreated, ZoneOpenness, ZonePage, ZoneProjects, ZoneRemoved, ZoneTtlSet,
};
use corpus_api::{Cursor, Denied};
use corpus_domain::{DnsName, ProjectName, ProviderName, ZoneId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{after, lines, page};
use crate::dns::DnsError;
use crate::rules::kept_for_nodes;
use crate::store::zones;
use crate::{Controller, changed};

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
        let (of, ttl_s) = (self.chosen(change.provider.as_ref())?, change.ttl_s);
        let provider = &self.provider(&of)?.dns;
        if let Some(why) = kept_for_nodes(&name) {
            return Err(Error::field("name", why));
        }
        let tx = change.transaction().await?;
        let zone = zones::insert(tx, &name, &of, ttl_s, by)
            .await
            .map_err(|error| Error::taken(error, "name", format!("The zone {name} is there already.")))?;
        open_to(tx, zone, access, &projects).await?;
        provider.ensure_zone(&name).await.map_err(dns_error)?;
        let detail = json!({ "access": told(access, &projects), "provider": of });
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
            return Err(changed::by_others(tx, "zone.access", id.0, opened).await);
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
        let (name, of) = {
            let mut conn = change.connection().await?;
            zones::name_of(&mut conn, id).await?.ok_or(Denied::NotFound)?
        };
        let provider = &self.provider(&of)?.dns;
        let tx = change.transaction().await?;
        zones::delete(tx, id).await.map_err(|error| in_use(error, &name))?;
        provider.remove_zone(&name).await.map_err(dns_error)?;
        let committed = change.commit(Entry::new("zone.remove", name.as_str()).id(id.0), ZoneRemoved { zone: id });
        let committed = committed.await?;
        self.services.surroundings_changed.notify_one();
        Ok(committed)
    }
}

impl Handle<SetZoneTtl> for Controller {
    async fn handle(&self, mut change: Change<SetZoneTtl>) -> Result<Committed<SetZoneTtl>> {
        let (id, ttl_s) = (change.zone, change.ttl_s);
        let tx = change.transaction().await?;
        zones::hold(tx, id).await?;
        let before = zone(tx, id).await?;
        zones::set_ttl(tx, id, ttl_s).await?;
        let detail = json!({ "ttl_s": ttl_s, "before": before.ttl_s });
        let entry = Entry::new("zone.ttl", before.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, ZoneTtlSet { ttl_s }).await
    }
}

impl Handle<ListDnsServers> for Controller {
    async fn handle(&self, _: Permit<ListDnsServers>) -> Result<DnsServers> {
        Ok(DnsServers { items: self.services.dns.names().cloned().collect() })
    }
}

impl Controller {
    /// The DNS server that a zone is made at: the one that was chosen, or the only one.
    fn chosen(&self, given: Option<&ProviderName>) -> Result<ProviderName> {
        self.dns()?;
        let names = || self.services.dns.names().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match given {
            Some(name) if self.services.dns.get(name).is_some() => Ok(name.clone()),
            Some(name) => {
                Err(Error::field("provider", format!("There is no DNS server {name}. Those configured: {}.", names())))
            }
            None => {
                self.services.dns.only().cloned().ok_or_else(|| {
                    Error::field("provider", format!("Choose the DNS server that holds it: {}.", names()))
                })
            }
        }
    }
}

async fn zone(conn: &mut PgConnection, id: ZoneId) -> Result<Zone> {
    Ok(zones::get(conn, id).await?.ok_or(Denied::NotFound)?)
}

/// A zone that is open to all is for none in particular.
fn only(access: ZoneAccess, projects: &ZoneProjects) -> Vec<ProjectName> {
    match access {
        ZoneAccess::All | ZoneAccess::Ask => Vec::new(),
        ZoneAccess::Only => projects.to_vec(),
    }
}

/// What the audit tells of it.
fn told(access: ZoneAccess, projects: &[ProjectName]) -> Value {
    match access {
        ZoneAccess::All => json!("all"),
        ZoneAccess::Ask => json!("ask"),
        ZoneAccess::Only => json!({ "only": projects }),
    }
}

/// What a change of it was.
fn opened(detail: &Value) -> Option<String> {
    let words = |of: &str| match detail.get(of)? {
        Value::String(word) if word == "ask" => Some("open to all projects that ask".to_owned()),
        Value::String(_) => Some("open to all projects".to_owned()),
        only => Some(format!("only for {}", changed::read::<Vec<String>>(only, "only")?.join(", "))),
    };
    changed::parts([("it", words("before")?, words("access")?)])
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
pub(super) fn dns_error(error: DnsError) -> Error {
    if matches!(
        error,
        DnsError::Refused { .. }
            | DnsError::NotEmpty { .. }
            | DnsError::ZoneMissing(_)
            | DnsError::ZoneNotConfigured { .. }
            | DnsError::UpdateRefused { .. }
            | DnsError::Foreign { .. }
    ) {
        return Error::field("name", error.to_string());
    }
    Error::Unavailable { message: format!("Nothing was changed: {error}."), source: Box::new(error) }
}

fn in_use(error: sqlx::Error, name: &DnsName) -> Error {
    match &error {
        sqlx::Error::Database(inner) if inner.is_foreign_key_violation() => Error::Conflict(format!(
            "Names are still attached in {name}, a node is called so, or addresses point back by it; take them away first."
        )),
        _ => error.into(),
    }
}
