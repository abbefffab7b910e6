//! Signs of intrusion: what nodes counted, by guest and hour, and who failed too often.
//!
//! A node tells of its own guests only, whatever it tells: what it names is looked up among those on it. Of what it
//! counts and never forgets by itself the rise is kept; a count that fell began anew.

pub mod blocks;
mod shown;

pub use self::shown::{Signs, of_guest, signs};

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::{IntrusionKind, NodeId, SourceAddress};
use corpus_protocol::SignsReading;
use sqlx::PgConnection;

use super::{number, word};

/// As many addresses that failed too often are looked at in one round.
const MOST_OFFENDERS: i64 = 200;

/// A node that is to be read, and from where it is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Which.
    pub node: NodeId,
    /// Up to where it was read; none: never yet.
    pub after: Option<i64>,
}

/// Takes up to `room` nodes in service that were not taken for so long, so that no other server takes them too.
pub async fn take_due(conn: &mut PgConnection, room: i64, every: Duration) -> sqlx::Result<Vec<Due>> {
    sqlx::query!(
        "insert into intrusion_readings (node_id) select id from nodes where state in ('ready', 'draining')
         on conflict (node_id) do nothing"
    )
    .execute(&mut *conn)
    .await?;
    let rows = sqlx::query!(
        "update intrusion_readings set due_at = now() + make_interval(secs => $2) where node_id in (
             select r.node_id from intrusion_readings r join nodes n on n.id = r.node_id
             where n.state in ('ready', 'draining') and n.reachability = 'reachable' and r.due_at <= now()
             order by r.due_at limit $1 for update of r skip locked)
         returning node_id, read_until",
        room,
        every.as_secs_f64(),
    );
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| Due { node: NodeId(row.node_id), after: row.read_until }).collect())
}

/// Keeps a reading that went on from where the last one ended; of two that did, the first counts. Tells whether it was
/// kept.
pub async fn keep(conn: &mut PgConnection, due: Due, at: DateTime<Utc>, reading: &SignsReading) -> sqlx::Result<bool> {
    let last = sqlx::query!(
        "select read_until, read_at, tls_errors from intrusion_readings where node_id = $1 for update",
        due.node.0
    );
    let Some(last) = last.fetch_optional(&mut *conn).await?.filter(|last| last.read_until == due.after) else {
        return Ok(false);
    };
    let hour = hour_of(at);
    let tls_errors = stored(reading.tls_errors);
    let rise = match last.read_at {
        None => 0,
        Some(_) if tls_errors < last.tls_errors => tls_errors,
        Some(_) => tls_errors - last.tls_errors,
    };
    if rise > 0 {
        sqlx::query!(
            "insert into intrusion_signs (node_id, kind, hour, count) values ($1, $2, $3, $4)
             on conflict (node_id, kind, hour) where guest_id is null
                 do update set count = intrusion_signs.count + excluded.count",
            due.node.0,
            IntrusionKind::TlsError.as_str(),
            hour,
            rise,
        )
        .execute(&mut *conn)
        .await?;
    }
    keep_drops(conn, due.node, hour, reading).await?;
    keep_ssh(conn, due.node, at, reading).await?;
    sqlx::query!(
        "update intrusion_readings set read_until = $2, read_at = $3, tls_errors = $4 where node_id = $1",
        due.node.0,
        reading.until,
        at,
        tls_errors,
    )
    .execute(conn)
    .await?;
    Ok(true)
}

/// A guest of which nothing is told has lost nothing for a while: its count begins anew.
async fn keep_drops(
    conn: &mut PgConnection,
    node: NodeId,
    hour: DateTime<Utc>,
    reading: &SignsReading,
) -> sqlx::Result<()> {
    let targets: Vec<String> = reading.dropped.iter().map(|one| one.to.to_string()).collect();
    let packets: Vec<i64> = reading.dropped.iter().map(|one| stored(one.packets)).collect();
    sqlx::query!(
        "insert into intrusion_signs (node_id, guest_id, kind, hour, count)
         select $1, told.id, $2, $3, told.rise from (
             select g.id, case when d.packets is null or u.packets < d.packets then u.packets
                 else u.packets - d.packets end as rise
             from (select ip, max(packets) as packets from unnest($4::text[], $5::bigint[]) as t (ip, packets)
                   group by ip) u
             join guests g on g.node_id = $1 and g.ip = u.ip
             left join intrusion_drops d on d.guest_id = g.id and d.node_id = $1) told
         where told.rise > 0 order by told.id
         on conflict (guest_id, kind, hour, node_id) where guest_id is not null
             do update set count = intrusion_signs.count + excluded.count",
        node.0,
        IntrusionKind::DroppedPacket.as_str(),
        hour,
        &targets,
        &packets,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from intrusion_drops d using guests g
         where d.node_id = $1 and g.id = d.guest_id and (g.node_id <> $1 or g.ip is null or g.ip <> all($2))",
        node.0,
        &targets,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into intrusion_drops (guest_id, node_id, packets)
         select g.id, $1, max(u.packets) from unnest($2::text[], $3::bigint[]) as u (ip, packets)
         join guests g on g.node_id = $1 and g.ip = u.ip group by g.id order by g.id
         on conflict (guest_id) do update set node_id = excluded.node_id, packets = excluded.packets",
        node.0,
        &targets,
        &packets,
    )
    .execute(conn)
    .await
    .map(drop)
}

async fn keep_ssh(
    conn: &mut PgConnection,
    node: NodeId,
    at: DateTime<Utc>,
    reading: &SignsReading,
) -> sqlx::Result<()> {
    let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let addresses: Vec<String> = reading.ssh.iter().map(|one| one.from.to_string()).collect();
    let ports: Vec<i32> = reading.ssh.iter().map(|one| i32::from(one.port.get())).collect();
    let refused: Vec<i32> = reading.ssh.iter().map(|one| count(one.refused)).collect();
    let accepted: Vec<i32> = reading.ssh.iter().map(|one| count(one.accepted)).collect();
    sqlx::query!(
        "insert into intrusion_failures (node_id, guest_id, address, read_at, refused, accepted)
         select $1, g.id, u.address, $2, max(u.refused), max(u.accepted)
         from unnest($3::text[], $4::int[], $5::int[], $6::int[]) as u (address, port, refused, accepted)
         join guests g on g.node_id = $1 and g.ssh_port = u.port
         group by g.id, u.address order by g.id, u.address
         on conflict (node_id, guest_id, address, read_at) do nothing",
        node.0,
        at,
        &addresses,
        &ports,
        &refused,
        &accepted,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into intrusion_signs (node_id, guest_id, kind, hour, count)
         select node_id, guest_id, $3, $4, sum(refused) from intrusion_failures
         where node_id = $1 and read_at = $2 group by node_id, guest_id having sum(refused) > 0 order by guest_id
         on conflict (guest_id, kind, hour, node_id) where guest_id is not null
             do update set count = intrusion_signs.count + excluded.count",
        node.0,
        at,
        IntrusionKind::RefusedSsh.as_str(),
        hour_of(at),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Who failed too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offender {
    /// From where.
    pub address: SourceAddress,
    /// How many sessions look refused.
    pub refused: u32,
    /// At how many guests.
    pub guests: u32,
    /// The one node that told it, if it was no more than one.
    pub node: Option<NodeId>,
}

/// Addresses that failed at least so often in this time, at guests that let nobody in from there meanwhile. Those that
/// are blocked already are left out, and those that only a node told of that told of so many before.
pub async fn offenders(
    conn: &mut PgConnection,
    failures: u32,
    window: Duration,
    most_of_one_node: u32,
) -> sqlx::Result<Vec<Offender>> {
    let rows = sqlx::query!(
        r#"select o.address, o.refused as "refused!", o.guests as "guests!", o.node
           from (select f.address, least(sum(f.refused), 2147483647)::bigint as refused, count(*) as guests,
                     case when max(cardinality(f.nodes)) = 1 and min(f.nodes[1]::text) = max(f.nodes[1]::text)
                         then min(f.nodes[1]::text)::uuid end as node
                 from (select address, guest_id, sum(refused) as refused, array_agg(distinct node_id) as nodes
                       from intrusion_failures where read_at > now() - make_interval(secs => $2)
                       group by address, guest_id having sum(accepted) = 0 and sum(refused) > 0) f
                 where not exists (select from blocked_addresses b where b.address = f.address and b.ended_at is null)
                 group by f.address having sum(f.refused) >= $1::bigint) o
           where o.node is null or (select count(*) from blocked_addresses b
                                    where b.node_id = o.node and b.ended_at is null) < $3::bigint
           order by 2 desc, 1 limit $4"#,
        i64::from(failures),
        window.as_secs_f64(),
        i64::from(most_of_one_node),
        MOST_OFFENDERS,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(Offender {
            address: word(&row.address)?,
            refused: number(row.refused)?,
            guests: number(row.guests)?,
            node: row.node.map(NodeId),
        })
    });
    rows.collect()
}

/// What an address did until now counts no more.
pub async fn forgive(conn: &mut PgConnection, address: SourceAddress) -> sqlx::Result<()> {
    sqlx::query!("delete from intrusion_failures where address = $1", address.to_string()).execute(conn).await.map(drop)
}

/// Nodes with more signs of this kind in this hour.
pub async fn noisy_nodes(
    conn: &mut PgConnection,
    kind: IntrusionKind,
    at: DateTime<Utc>,
    more_than: u64,
) -> sqlx::Result<u32> {
    let count = sqlx::query_scalar!(
        "select count(*) as \"count!\" from (
             select node_id from intrusion_signs where kind = $1 and hour = $2
             group by node_id having sum(count) > $3::bigint) n",
        kind.as_str(),
        hour_of(at),
        stored(more_than),
    );
    number(count.fetch_one(conn).await?)
}

/// Whether operators were not told yet in this hour; from now on they were.
pub async fn take_hour(conn: &mut PgConnection, at: DateTime<Utc>) -> sqlx::Result<bool> {
    let taken =
        sqlx::query!("insert into intrusion_told (hour) values ($1) on conflict (hour) do nothing", hour_of(at));
    Ok(taken.execute(conn).await?.rows_affected() > 0)
}

/// Forgets who failed when that counts no more, signs after thirty days, and blocks that ended as long ago.
pub async fn forget_old(conn: &mut PgConnection, window: Duration) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from intrusion_failures where read_at < now() - make_interval(secs => $1)",
        window.as_secs_f64()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("delete from intrusion_told where hour < now() - interval '1 day'").execute(&mut *conn).await?;
    sqlx::query!("delete from intrusion_signs where hour < now() - interval '30 days'").execute(&mut *conn).await?;
    sqlx::query!("delete from blocked_addresses where ended_at < now() - interval '30 days'")
        .execute(conn)
        .await
        .map(drop)
}

/// No counter of a node has come further, and so much of each can be summed up.
fn stored(number: u64) -> i64 {
    const MOST: u64 = 1 << 50;
    i64::try_from(number.min(MOST)).unwrap_or_default()
}

/// The hour that a time is in.
fn hour_of(at: DateTime<Utc>) -> DateTime<Utc> {
    let seconds = at.timestamp();
    DateTime::from_timestamp(seconds - seconds.rem_euclid(3_600), 0).unwrap_or(at)
}
