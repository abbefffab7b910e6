//! DNS zones, and which projects may take names in each.

use corpus_api::words::SearchText;
use corpus_api::words::ZoneTtl;
use corpus_api::zones::{ListZones, Zone, ZoneAccess};
use corpus_domain::{DnsName, ProjectId, ProjectName, ProviderName, UserId, ZoneId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::names::Held;
use super::{number, word};

/// The zones that match in which one of these projects may take names, all when none are given; by name,
/// those after one, with the names of these projects counted.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListZones,
    visible: Option<&[ProjectId]>,
    after: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<Zone>> {
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let ids = sqlx::query_scalar!(
        "select z.id from zones z
         where ($1::uuid[] is null or z.open
             or exists (select from zone_projects a where a.zone_id = z.id and a.project_id = any($1)))
           and ($2::text is null or position(lower($2) in z.name) > 0) and ($3::text is null or z.name > $3)
         order by z.name limit $4",
        visible.as_deref(),
        asked.q.as_ref().map(SearchText::as_str),
        after,
        limit,
    );
    let ids = ids.fetch_all(&mut *conn).await?;
    shown(conn, &ids, visible.as_deref()).await
}

/// The one zone.
pub async fn get(conn: &mut PgConnection, id: ZoneId) -> sqlx::Result<Option<Zone>> {
    Ok(shown(conn, &[id.0], None).await?.pop())
}

/// These zones by name, as far as these projects are concerned.
async fn shown(conn: &mut PgConnection, ids: &[Uuid], visible: Option<&[Uuid]>) -> sqlx::Result<Vec<Zone>> {
    let rows = sqlx::query!(
        "select z.id, z.name, z.open, z.asks, z.created_at, z.provider, z.ttl_s,
                (select coalesce(sum(t.names), 0) from zone_tallies t
                 where t.zone_id = z.id and ($1::uuid[] is null or t.project_id = any($1))) as \"names!\",
                array(select p.name from zone_projects a join projects p on p.id = a.project_id
                      where a.zone_id = z.id and ($1::uuid[] is null or p.id = any($1)) order by p.name) as \"projects!\"
         from zones z where z.id = any($2) order by z.name",
        visible,
        ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(Zone {
            id: ZoneId(row.id),
            name: word(&row.name)?,
            names: number(row.names)?,
            access: match (row.open, row.asks) {
                (_, true) => ZoneAccess::Ask,
                (true, false) => ZoneAccess::All,
                (false, false) => ZoneAccess::Only,
            },
            projects: row.projects.iter().map(|name| word(name)).collect::<sqlx::Result<_>>()?,
            provider: word(&row.provider)?,
            ttl_s: ZoneTtl::try_from(number::<u64>(row.ttl_s)?)
                .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            created_at: row.created_at,
        })
    });
    rows.collect()
}

/// The names of all zones, with the DNS server that holds each.
pub async fn names(conn: &mut PgConnection) -> sqlx::Result<Vec<(DnsName, ProviderName)>> {
    let rows = sqlx::query!("select name, provider from zones order by name").fetch_all(conn).await?;
    rows.into_iter().map(|row| Ok((word(&row.name)?, word(&row.provider)?))).collect()
}

/// Holds the zone's row until the transaction ends, so that it stays as it is read.
pub async fn hold(conn: &mut PgConnection, id: ZoneId) -> sqlx::Result<()> {
    sqlx::query!("select id from zones where id = $1 for update", id.0).fetch_optional(conn).await.map(drop)
}

/// Keeps a zone, open to all projects; a name that is there already breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    name: &DnsName,
    provider: &ProviderName,
    ttl_s: Option<ZoneTtl>,
    by: UserId,
) -> sqlx::Result<ZoneId> {
    let id = ZoneId(Uuid::now_v7());
    sqlx::query!(
        "insert into zones (id, name, open, provider, ttl_s, created_by) values ($1, $2, true, $3, $4, $5)",
        id.0,
        name.as_str(),
        provider.as_str(),
        seconds(ttl_s.unwrap_or(ZoneTtl::USUAL)),
        by.0,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// Sets for how long resolvers may keep what is answered for its names; records that are there keep theirs.
pub async fn set_ttl(conn: &mut PgConnection, id: ZoneId, ttl_s: ZoneTtl) -> sqlx::Result<()> {
    sqlx::query!("update zones set ttl_s = $2 where id = $1", id.0, seconds(ttl_s)).execute(conn).await.map(drop)
}

fn seconds(ttl_s: ZoneTtl) -> i32 {
    i32::try_from(ttl_s.get()).unwrap_or(i32::MAX)
}

/// Sets which projects may take names in the zone; answers the first of those named that is not there.
pub async fn set_access(
    conn: &mut PgConnection,
    id: ZoneId,
    access: ZoneAccess,
    projects: &[ProjectName],
) -> sqlx::Result<Option<ProjectName>> {
    let names: Vec<String> = projects.iter().map(ToString::to_string).collect();
    let (open, asks) = (access != ZoneAccess::Only, access == ZoneAccess::Ask);
    sqlx::query!("update zones set open = $2, asks = $3 where id = $1", id.0, open, asks).execute(&mut *conn).await?;
    sqlx::query!("delete from zone_projects where zone_id = $1", id.0).execute(&mut *conn).await?;
    let there = sqlx::query_scalar!(
        "with there as (select id, name from projects where name = any($2)),
              kept as (insert into zone_projects (zone_id, project_id) select $1, id from there)
         select name from there",
        id.0,
        &names,
    )
    .fetch_all(conn)
    .await?;
    let missing = names.iter().find(|name| !there.contains(name));
    missing.map(|name| word(name)).transpose()
}

/// Removes a zone; a name still in it breaks the foreign key.
pub async fn delete(conn: &mut PgConnection, id: ZoneId) -> sqlx::Result<bool> {
    sqlx::query!("delete from zones where id = $1", id.0).execute(conn).await.map(|done| done.rows_affected() == 1)
}

/// The zone by its id, and the DNS server that holds it.
pub async fn name_of(conn: &mut PgConnection, id: ZoneId) -> sqlx::Result<Option<(DnsName, ProviderName)>> {
    let row = sqlx::query!("select name, provider from zones where id = $1", id.0).fetch_optional(conn).await?;
    row.map(|row| Ok((word(&row.name)?, word(&row.provider)?))).transpose()
}

/// The zone of ours that a name is in: of all, the longest.
pub async fn of_name(conn: &mut PgConnection, name: &DnsName) -> sqlx::Result<Option<(ZoneId, Held)>> {
    let row = sqlx::query!(
        "select id, name, provider, ttl_s from zones where $1 = name or right($1, length(name) + 1) = '.' || name
         order by length(name) desc limit 1",
        name.as_str(),
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let held = Held::of(Some(&row.name), Some(&row.provider), Some(row.ttl_s))?;
    Ok(Some(ZoneId(row.id)).zip(held))
}

/// Which of these names are in a zone of ours.
pub async fn are_held(conn: &mut PgConnection, names: &[DnsName]) -> sqlx::Result<Vec<bool>> {
    let names: Vec<&str> = names.iter().map(DnsName::as_str).collect();
    let held = sqlx::query_scalar!(
        r#"select exists (select from zones z where w.name = z.name or right(w.name, length(z.name) + 1) = '.' || z.name)
             as "held!"
           from unnest($1::text[]) with ordinality as w (name, number) order by w.number"#,
        &names as _,
    );
    held.fetch_all(conn).await
}

/// A zone, as far as one project is concerned.
#[derive(Debug)]
pub struct Holding {
    /// Its id.
    pub id: ZoneId,
    /// Its name.
    pub name: DnsName,
    /// Whether the project may take names in it.
    pub takes: bool,
    /// Whether operators approve each.
    pub asks: bool,
    /// The DNS server that holds it.
    pub provider: ProviderName,
}

/// The zone that holds a name: of all it is in, the longest, whoever may take names in it. Where a project may, its
/// previews may.
pub async fn holding(conn: &mut PgConnection, name: &DnsName, project: ProjectId) -> sqlx::Result<Option<Holding>> {
    let row = sqlx::query!(
        "select id, name, asks, provider, open or exists (
             select from zone_projects a where a.zone_id = z.id
                 and a.project_id = coalesce((select parent_id from projects where id = $2), $2)) as \"takes!\"
         from zones z where $1 = name or right($1, length(name) + 1) = '.' || name
         order by length(name) desc limit 1",
        name.as_str(),
        project.0,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        let (name, provider) = (word(&row.name)?, word(&row.provider)?);
        Ok(Holding { id: ZoneId(row.id), name, takes: row.takes, asks: row.asks, provider })
    })
    .transpose()
}
