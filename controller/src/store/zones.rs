//! DNS zones.

use corpus_domain::{DnsName, UserId, ZoneId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, word};
use crate::views::ZoneView;

/// All zones, by name.
pub async fn list(conn: &mut PgConnection) -> sqlx::Result<Vec<ZoneView>> {
    let rows = sqlx::query!(
        "select z.id, z.name, z.created_at, count(n.id) as \"names!\" from zones z
         left join dns_names n on n.zone_id = z.id group by z.id order by z.name"
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let (id, name) = (ZoneId(row.id), word(&row.name)?);
            Ok(ZoneView { id, name, names: number(row.names)?, created_at: row.created_at })
        })
        .collect()
}

/// Keeps a zone; a name that is there already breaks the unique rule.
pub async fn insert(conn: &mut PgConnection, name: &DnsName, by: UserId) -> sqlx::Result<ZoneId> {
    let id = ZoneId(Uuid::now_v7());
    sqlx::query!("insert into zones (id, name, created_by) values ($1, $2, $3)", id.0, name.as_str(), by.0)
        .execute(conn)
        .await?;
    Ok(id)
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

/// The zone that holds a name: of all it is in, the longest.
pub async fn holding(conn: &mut PgConnection, name: &DnsName) -> sqlx::Result<Option<(ZoneId, DnsName)>> {
    let zones = list(conn).await?;
    let holding = zones.into_iter().filter(|zone| name.is_in(&zone.name));
    Ok(holding.max_by_key(|zone| zone.name.as_str().len()).map(|zone| (zone.id, zone.name)))
}
