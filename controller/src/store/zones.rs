//! DNS zones, and which projects may take names in each.

use corpus_domain::{DnsName, ProjectId, ProjectName, UserId, ZoneId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, word};
use crate::views::{ZoneAccess, ZoneView};

/// The zones in which one of these projects may take names, all when none are given; by name, with
/// the names of these projects counted.
pub async fn list(conn: &mut PgConnection, projects: Option<&[ProjectId]>) -> sqlx::Result<Vec<ZoneView>> {
    let projects = projects.map(|ids| ids.iter().map(|id| id.0).collect::<Vec<_>>());
    let rows = sqlx::query!(
        "select z.id, z.name, z.open, z.created_at,
                (select count(*) from dns_names n join guests g on g.id = n.guest_id
                 where n.zone_id = z.id and ($1::uuid[] is null or g.project_id = any($1))) as \"names!\",
                array(select p.name from zone_projects a join projects p on p.id = a.project_id
                      where a.zone_id = z.id and ($1::uuid[] is null or p.id = any($1)) order by p.name) as \"projects!\"
         from zones z
         where $1::uuid[] is null or z.open
            or exists (select from zone_projects a where a.zone_id = z.id and a.project_id = any($1))
         order by z.name",
        projects.as_deref(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let projects = row.projects.iter().map(|name| word(name)).collect::<sqlx::Result<_>>()?;
            let access = if row.open { ZoneAccess::All } else { ZoneAccess::Only(projects) };
            let (id, name) = (ZoneId(row.id), word(&row.name)?);
            Ok(ZoneView { id, name, names: number(row.names)?, access, created_at: row.created_at })
        })
        .collect()
}

/// Keeps a zone, open to all projects; a name that is there already breaks the unique rule.
pub async fn insert(conn: &mut PgConnection, name: &DnsName, by: UserId) -> sqlx::Result<ZoneId> {
    let id = ZoneId(Uuid::now_v7());
    sqlx::query!("insert into zones (id, name, open, created_by) values ($1, $2, true, $3)", id.0, name.as_str(), by.0)
        .execute(conn)
        .await?;
    Ok(id)
}

/// Sets which projects may take names in the zone; answers the first of those named that is not there.
pub async fn set_access(conn: &mut PgConnection, id: ZoneId, access: &ZoneAccess) -> sqlx::Result<Option<ProjectName>> {
    let (open, names) = match access {
        ZoneAccess::All => (true, Vec::new()),
        ZoneAccess::Only(projects) => (false, projects.iter().map(ToString::to_string).collect()),
    };
    sqlx::query!("update zones set open = $2 where id = $1", id.0, open).execute(&mut *conn).await?;
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

/// The zone by its id.
pub async fn name_of(conn: &mut PgConnection, id: ZoneId) -> sqlx::Result<Option<DnsName>> {
    sqlx::query_scalar!("select name from zones where id = $1", id.0)
        .fetch_optional(conn)
        .await?
        .map(|name| word(&name))
        .transpose()
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
}

/// The zone that holds a name: of all it is in, the longest, whoever may take names in it.
pub async fn holding(conn: &mut PgConnection, name: &DnsName, project: ProjectId) -> sqlx::Result<Option<Holding>> {
    let row = sqlx::query!(
        "select id, name, open or exists (select from zone_projects a where a.zone_id = z.id and a.project_id = $2) as \"takes!\"
         from zones z where $1 = name or right($1, length(name) + 1) = '.' || name
         order by length(name) desc limit 1",
        name.as_str(),
        project.0,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| Ok(Holding { id: ZoneId(row.id), name: word(&row.name)?, takes: row.takes })).transpose()
}
