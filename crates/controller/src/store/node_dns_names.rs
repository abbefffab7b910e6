//! The DNS names of nodes themselves.

use corpus_domain::{DnsName, NodeId, ZoneId};
use sqlx::PgConnection;

use super::names::Held;
use super::word;

/// The name of a node, and who holds it.
pub async fn get(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Option<(DnsName, Held)>> {
    let row = sqlx::query!(
        "select n.name, z.name as zone, z.provider, z.ttl_s from node_dns_names n join zones z on z.id = n.zone_id
         where n.node_id = $1",
        node.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let held = Held::of(Some(&row.zone), Some(&row.provider), Some(row.ttl_s))?;
    Ok(Some(word(&row.name)?).zip(held))
}

/// Whether a node has the name, or a guest.
pub async fn is_taken(conn: &mut PgConnection, name: &DnsName, but: NodeId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        "select exists (select from node_dns_names where name = $1 and node_id <> $2)
             or exists (select from dns_names where name = $1) as \"taken!\"",
        name.as_str(),
        but.0,
    )
    .fetch_one(conn)
    .await
}

/// Whether a node has the name.
pub async fn is_of_node(conn: &mut PgConnection, name: &DnsName) -> sqlx::Result<bool> {
    sqlx::query_scalar!("select exists (select from node_dns_names where name = $1) as \"taken!\"", name.as_str())
        .fetch_one(conn)
        .await
}

/// Keeps the name of a node, in place of the one that it had.
pub async fn set(conn: &mut PgConnection, node: NodeId, name: &DnsName, zone: ZoneId) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into node_dns_names (node_id, name, zone_id) values ($1, $2, $3)
         on conflict (node_id) do update set name = excluded.name, zone_id = excluded.zone_id, created_at = now()",
        node.0,
        name.as_str(),
        zone.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Forgets the name of a node.
pub async fn delete(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<()> {
    sqlx::query!("delete from node_dns_names where node_id = $1", node.0).execute(conn).await.map(drop)
}
