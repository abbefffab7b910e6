//! DNS names attached to guests.

use corpus_domain::{DnsName, DnsNameId, GuestId, NameState, ProjectId, UserId, ZoneId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::word;
use crate::views::NameView;

/// Whose names to list.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    /// Of these projects; of all when none are given.
    Projects(Option<&'a [ProjectId]>),
    /// Of one guest.
    Guest(GuestId),
    /// One name.
    Name(DnsNameId),
}

/// The names, by name.
pub async fn list(conn: &mut PgConnection, of: Of<'_>) -> sqlx::Result<Vec<NameView>> {
    let (projects, guest, name) = match of {
        Of::Projects(projects) => (projects.map(|ids| ids.iter().map(|id| id.0).collect::<Vec<_>>()), None, None),
        Of::Guest(id) => (None, Some(id.0), None),
        Of::Name(id) => (None, None, Some(id.0)),
    };
    let rows = sqlx::query!(
        "select n.id, n.name, z.name as zone, n.guest_id, g.name as guest, n.state, n.state_reason, n.answered_at,
                c.public_ip
         from dns_names n join zones z on z.id = n.zone_id join guests g on g.id = n.guest_id
         join nodes c on c.id = g.node_id
         where ($1::uuid[] is null or g.project_id = any($1)) and ($2::uuid is null or g.id = $2)
           and ($3::uuid is null or n.id = $3)
         order by n.name",
        projects.as_deref(),
        guest,
        name,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(NameView {
                id: DnsNameId(row.id),
                name: word(&row.name)?,
                zone: word(&row.zone)?,
                guest_id: GuestId(row.guest_id),
                guest: word(&row.guest)?,
                state: word(&row.state)?,
                state_reason: row.state_reason,
                answered_at: row.answered_at,
                target: row.public_ip,
                job: None,
            })
        })
        .collect()
}

/// Keeps a wanted name; a name that is there already breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    name: &DnsName,
    zone: ZoneId,
    guest: GuestId,
    by: UserId,
) -> sqlx::Result<DnsNameId> {
    let id = DnsNameId(Uuid::now_v7());
    sqlx::query!(
        "insert into dns_names (id, name, zone_id, guest_id, state, created_by) values ($1, $2, $3, $4, 'wanted', $5)",
        id.0,
        name.as_str(),
        zone.0,
        guest.0,
        by.0,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// Serializes who takes which name: whether one is free depends on those around it.
const TAKING_KEY: i64 = 0x636f_7270_6e61;

/// Holds the giving of names until the transaction ends.
pub async fn hold_all(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock($1)::text as held", TAKING_KEY).fetch_one(conn).await.map(drop)
}

/// How near to a name another one is too near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near<'a> {
    /// Only the same one.
    Same,
    /// Also those above it and below it, up to the zone that holds it: they share cookies.
    Around(&'a DnsName),
}

/// Whether another project has the name, one near it, or had it a week ago, or has a guest that is
/// called so.
pub async fn is_of_others(
    conn: &mut PgConnection,
    name: &DnsName,
    project: ProjectId,
    near: Near<'_>,
) -> sqlx::Result<bool> {
    let zone = match near {
        Near::Same => None,
        Near::Around(zone) => Some(zone.as_str()),
    };
    sqlx::query_scalar!(
        "select exists (
             select from (
                 select n.name, g.project_id from dns_names n join guests g on g.id = n.guest_id
                 union all
                 select name, project_id from freed_names where freed_at > now() - interval '7 days'
             ) taken
             where project_id <> $2
               and (name = $1
                    or ($3::text is not null and length(name) > length($3)
                        and (right($1, length(name) + 1) = '.' || name or right(name, length($1) + 1) = '.' || $1)))
         ) or exists (select from guests where name = $1 and project_id <> $2) as \"of_others!\"",
        name.as_str(),
        project.0,
        zone,
    )
    .fetch_one(conn)
    .await
}

/// Sets the state, and the reason of it.
pub async fn set_state(
    conn: &mut PgConnection,
    id: DnsNameId,
    state: NameState,
    reason: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query!("update dns_names set state = $2, state_reason = $3 where id = $1", id.0, state.as_str(), reason)
        .execute(conn)
        .await
        .map(drop)
}

/// Notes that the authoritative server answered the name just now.
pub async fn answered(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!("update dns_names set answered_at = now() where id = $1", id.0).execute(conn).await.map(drop)
}

/// Sets whether the node should route the name.
pub async fn set_routed(conn: &mut PgConnection, id: DnsNameId, routed: bool) -> sqlx::Result<()> {
    sqlx::query!("update dns_names set routed = $2 where id = $1", id.0, routed).execute(conn).await.map(drop)
}

/// Sets whether the node should route the names of a guest.
pub async fn set_routed_of_guest(conn: &mut PgConnection, guest: GuestId, routed: bool) -> sqlx::Result<()> {
    sqlx::query!("update dns_names set routed = $2 where guest_id = $1", guest.0, routed).execute(conn).await.map(drop)
}

/// Forgets a name.
pub async fn delete(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!("delete from dns_names where id = $1", id.0).execute(conn).await.map(drop)
}

/// Forgets the names of a guest.
pub async fn delete_of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    sqlx::query!("delete from dns_names where guest_id = $1", guest.0).execute(conn).await.map(drop)
}

/// The names that lead to the guests of projects, the oldest of each guest first.
pub async fn hosts(conn: &mut PgConnection, projects: &[ProjectId]) -> sqlx::Result<Vec<(GuestId, DnsName)>> {
    let projects: Vec<_> = projects.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        "select n.guest_id, n.name from dns_names n join guests g on g.id = n.guest_id
         where g.project_id = any($1) and n.state = 'attached' order by n.created_at, n.name",
        &projects,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((GuestId(row.guest_id), word(&row.name)?))).collect()
}
