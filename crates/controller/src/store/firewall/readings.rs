//! What nodes counted and kept from guests, as of their last reading.

use chrono::{DateTime, TimeDelta, Utc};
use corpus_domain::NodeId;
use corpus_protocol::FirewallReading;
use sqlx::PgConnection;
use uuid::Uuid;

/// No rule has counted more, and so much of each node can be summed up.
const MOST: u64 = 1 << 50;

/// Keeps a reading in place of the last one. A node tells of its own guests only, whatever it tells.
pub async fn keep(
    conn: &mut PgConnection,
    node: NodeId,
    at: DateTime<Utc>,
    reading: &FirewallReading,
) -> sqlx::Result<()> {
    let stored = |number: u64| i64::try_from(number.min(MOST)).unwrap_or_default();
    let ids: Vec<Uuid> = reading.counts.iter().map(|one| one.id.0).collect();
    let packets: Vec<i64> = reading.counts.iter().map(|one| stored(one.packets)).collect();
    let bytes: Vec<i64> = reading.counts.iter().map(|one| stored(one.bytes)).collect();
    sqlx::query!("delete from firewall_counts where node_id = $1", node.0).execute(&mut *conn).await?;
    sqlx::query!(
        "insert into firewall_counts (rule_id, node_id, packets, bytes)
         select r.id, $1, max(u.packets), max(u.bytes)
         from unnest($2::uuid[], $3::bigint[], $4::bigint[]) as u (id, packets, bytes)
         join firewall_rules r on r.id = u.id group by r.id
         on conflict (rule_id, node_id) do update set packets = excluded.packets, bytes = excluded.bytes",
        node.0,
        &ids,
        &packets,
        &bytes,
    )
    .execute(&mut *conn)
    .await?;
    keep_drops(conn, node, at, reading).await?;
    sqlx::query!("update nodes set firewall_read_at = $2 where id = $1", node.0, at).execute(conn).await.map(drop)
}

async fn keep_drops(
    conn: &mut PgConnection,
    node: NodeId,
    at: DateTime<Utc>,
    reading: &FirewallReading,
) -> sqlx::Result<()> {
    let drops = &reading.drops;
    let to: Vec<String> = drops.iter().map(|one| one.to.to_string()).collect();
    let from: Vec<String> = drops.iter().map(|one| one.from.to_string()).collect();
    let protocols: Vec<String> = drops.iter().map(|one| one.protocol.to_string()).collect();
    let ports: Vec<i32> = drops.iter().map(|one| i32::from(one.port)).collect();
    let packets: Vec<i64> = drops.iter().map(|one| i64::try_from(one.packets.min(MOST)).unwrap_or_default()).collect();
    let times: Vec<DateTime<Utc>> =
        drops.iter().map(|one| at - TimeDelta::seconds(i64::from(one.age_s.min(86_400)))).collect();
    sqlx::query!("delete from firewall_drops where guest_id in (select id from guests where node_id = $1)", node.0)
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "insert into firewall_drops (guest_id, source, protocol, port, packets, last_at)
         select g.id, u.source, u.protocol, u.port, u.packets, u.last_at
         from unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::bigint[], $7::timestamptz[])
             as u (target, source, protocol, port, packets, last_at)
         join guests g on g.node_id = $1 and g.ip = u.target",
        node.0,
        &to,
        &from,
        &protocols,
        &ports,
        &packets,
        &times,
    )
    .execute(conn)
    .await
    .map(drop)
}
