//! DNS names attached to guests.

use corpus_api::names::{ListNames, NameLine};
use corpus_api::words::SearchText;
use corpus_domain::{DnsName, DnsNameId, GuestId, GuestName, JobId, NameState, ProjectId, ProjectName, UserId, ZoneId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::word;

/// A name as jobs and changes work with it.
#[derive(Debug, Clone)]
pub struct NameRow {
    /// Its id.
    pub id: DnsNameId,
    /// The name.
    pub name: DnsName,
    /// The zone that holds it.
    pub zone: DnsName,
    /// The guest it leads to.
    pub guest_id: GuestId,
    /// That guest's name.
    pub guest: GuestName,
    /// Its state.
    pub state: NameState,
}

/// The one name.
pub async fn get(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<Option<NameRow>> {
    Ok(rows(conn, Some(id), None).await?.pop())
}

/// The names of a guest, by name.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<NameRow>> {
    rows(conn, None, Some(guest)).await
}

async fn rows(conn: &mut PgConnection, id: Option<DnsNameId>, guest: Option<GuestId>) -> sqlx::Result<Vec<NameRow>> {
    let rows = sqlx::query!(
        "select n.id, n.name, z.name as zone, n.guest_id, g.name as guest, n.state
         from dns_names n join zones z on z.id = n.zone_id join guests g on g.id = n.guest_id
         where n.id = $1 or n.guest_id = $2 order by n.name",
        id.map(|id| id.0),
        guest.map(|id| id.0),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(NameRow {
            id: DnsNameId(row.id),
            name: word(&row.name)?,
            zone: word(&row.zone)?,
            guest_id: GuestId(row.guest_id),
            guest: word(&row.guest)?,
            state: word(&row.state)?,
        })
    });
    rows.collect()
}

/// The names that match, by name, those after one.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListNames,
    visible: Option<&[ProjectId]>,
    after: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<NameLine>> {
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let ids = sqlx::query_scalar!(
        "select n.id from dns_names n
         where ($1::uuid[] is null or n.project_id = any($1))
           and ($2::text is null or n.project_id = (select id from projects where name = $2))
           and ($3::uuid is null or n.zone_id = $3) and ($4::text is null or n.state = $4)
           and ($5::uuid is null or n.guest_id = $5)
           and ($6::text is null or position(lower($6) in n.name) > 0) and ($7::text is null or n.name > $7)
         order by n.name limit $8",
        visible.as_deref(),
        asked.project.as_ref().map(ProjectName::as_str),
        asked.zone.map(|id| id.0),
        asked.state.map(NameState::as_str),
        asked.guest.map(|id| id.0),
        asked.q.as_ref().map(SearchText::as_str),
        after,
        limit,
    );
    let ids = ids.fetch_all(&mut *conn).await?;
    lines(conn, &ids).await
}

/// The one name as it is shown.
pub async fn line(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<Option<NameLine>> {
    Ok(lines(conn, &[id.0]).await?.pop())
}

/// These names as they are shown, by name; a job is told of while the name is not settled.
async fn lines(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<NameLine>> {
    let rows = sqlx::query!(
        r#"select n.id, n.name, n.zone_id, z.name as zone, n.guest_id, g.name as guest, n.state, n.state_reason,
                n.answered_at, c.public_ip,
                (select j.id from jobs j
                 where n.state in ('wanted', 'detaching') and j.guest_id = n.guest_id
                   and j.state in ('waiting', 'running', 'undoing', 'stuck') and j.params ->> 'id' = n.id::text
                 order by j.queue_order desc limit 1) as "job?"
         from dns_names n join zones z on z.id = n.zone_id join guests g on g.id = n.guest_id
         join nodes c on c.id = g.node_id
         where n.id = any($1) order by n.name"#,
        ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(NameLine {
            id: DnsNameId(row.id),
            name: word(&row.name)?,
            zone: ZoneId(row.zone_id),
            zone_name: word(&row.zone)?,
            guest: GuestId(row.guest_id),
            guest_name: word(&row.guest)?,
            state: word(&row.state)?,
            state_reason: row.state_reason,
            answered_at: row.answered_at,
            target: row.public_ip,
            job: row.job.map(JobId),
        })
    });
    rows.collect()
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
        "select guest_id, name from dns_names
         where project_id = any($1) and state = 'attached' order by created_at, name",
        &projects,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((GuestId(row.guest_id), word(&row.name)?))).collect()
}
