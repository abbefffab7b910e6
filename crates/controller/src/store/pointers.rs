//! Which names the addresses of guests point back to.
//!
//! The row of the name says it. The database sees to it that an address points to one name, and to one that leads to the
//! guest that has the address.

use corpus_domain::{DnsName, DnsNameId, GuestId, GuestNetwork, NodeAddress, NodeId, ZoneId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::word;

/// So many nodes are told of.
const NODES: i64 = 100;

/// A name that an address points back to, as jobs keep it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointedName {
    /// The name's id.
    pub id: DnsNameId,
    /// The name.
    pub name: DnsName,
    /// The address of its guest.
    pub address: String,
    /// The reverse zone that the record stands in, if it does.
    pub zone: Option<ZoneId>,
    /// Why it does not, once that was seen.
    pub problem: Option<String>,
}

/// What the address of a guest points back to.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<PointedName>> {
    one(conn, Some(guest), None).await
}

/// What points back to a name.
pub async fn of_name(conn: &mut PgConnection, name: DnsNameId) -> sqlx::Result<Option<PointedName>> {
    one(conn, None, Some(name)).await
}

async fn one(
    conn: &mut PgConnection,
    guest: Option<GuestId>,
    name: Option<DnsNameId>,
) -> sqlx::Result<Option<PointedName>> {
    let row = sqlx::query!(
        "select id, name, pointed_address as \"address!\", pointer_zone_id, pointer_problem from dns_names
         where pointed_address is not null and (guest_id = $1 or id = $2)",
        guest.map(|id| id.0),
        name.map(|id| id.0),
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let (id, zone) = (DnsNameId(row.id), row.pointer_zone_id.map(ZoneId));
    Ok(Some(PointedName { id, name: word(&row.name)?, address: row.address, zone, problem: row.pointer_problem }))
}

/// Whether an address is that of a node itself: its name is what that points back to.
pub async fn is_of_node(conn: &mut PgConnection, address: &str) -> sqlx::Result<bool> {
    let of_node = sqlx::query_scalar!(
        "select exists (select from nodes where public_ip = $1 or public_ipv6 = $1) as \"of_node!\"",
        address,
    );
    of_node.fetch_one(conn).await
}

/// Whether an address points back to a guest's name.
pub async fn is_of_guest(conn: &mut PgConnection, address: &str) -> sqlx::Result<bool> {
    let of_guest = sqlx::query_scalar!(
        "select exists (select from dns_names where pointed_address = $1) as \"of_guest!\"",
        address,
    );
    of_guest.fetch_one(conn).await
}

/// Networks of the nodes besides this one that take guests now, all or only this one.
pub async fn networks(
    conn: &mut PgConnection,
    besides: NodeId,
    only: Option<NodeId>,
) -> sqlx::Result<Vec<(NodeAddress, GuestNetwork)>> {
    let rows = sqlx::query!(
        "select address, network from nodes
         where state = 'ready' and reachability = 'reachable' and id <> $1 and ($2::uuid is null or id = $2)
         order by address, id limit $3",
        besides.0,
        only.map(|id| id.0),
        NODES,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok((word(&row.address)?, word(&row.network)?))).collect()
}

/// The address of a guest is to point to this name, or to none. Tells whether the name leads to the guest still, and the
/// guest has an address; one that points to another guest's name breaks the unique rule.
pub async fn point(conn: &mut PgConnection, guest: GuestId, name: Option<DnsNameId>) -> sqlx::Result<bool> {
    set(conn, guest, name, false).await
}

/// The same, of what it pointed to before: unless the name is gone, or the address points to another guest's name by now.
pub async fn point_back(conn: &mut PgConnection, guest: GuestId, before: Option<&PointedName>) -> sqlx::Result<()> {
    set(conn, guest, before.map(|before| before.id), true).await?;
    let Some(PointedName { id, zone, problem, .. }) = before else { return Ok(()) };
    sqlx::query!(
        "update dns_names set pointer_zone_id = (select z.id from zones z where z.id = $2), pointer_problem = $3,
             pointer_at = case when $2::uuid is null and $3::text is null then null else now() end
         where id = $1 and guest_id = $4 and pointed_address is not null",
        id.0,
        zone.map(|zone| zone.0),
        problem.as_deref(),
        guest.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

async fn set(conn: &mut PgConnection, guest: GuestId, name: Option<DnsNameId>, if_free: bool) -> sqlx::Result<bool> {
    sqlx::query!(
        "update dns_names set pointed_address = null, pointer_zone_id = null, pointer_problem = null, pointer_at = null
         where guest_id = $1 and pointed_address is not null and id is distinct from $2",
        guest.0,
        name.map(|id| id.0),
    )
    .execute(&mut *conn)
    .await?;
    let Some(name) = name else { return Ok(true) };
    let pointed = sqlx::query!(
        "update dns_names d set pointed_address = g.ip, pointer_at = null, pointer_problem = null
         from guests g
         where d.id = $2 and d.guest_id = $1 and g.id = $1 and g.ip is not null
             and not ($3 and exists (
                 select from dns_names o where o.pointed_address = g.ip and o.guest_id <> $1))",
        guest.0,
        name.0,
        if_free,
    );
    Ok(pointed.execute(conn).await?.rows_affected() == 1)
}

/// Nothing points back to a name any more.
pub async fn forget(conn: &mut PgConnection, name: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!(
        "update dns_names set pointed_address = null, pointer_zone_id = null, pointer_problem = null, pointer_at = null
         where id = $1 and pointed_address is not null",
        name.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Keeps where the record of a name that is pointed to stands, or why there is none.
pub async fn keep(conn: &mut PgConnection, name: DnsNameId, stands: Result<ZoneId, &str>) -> sqlx::Result<()> {
    sqlx::query!(
        "update dns_names set pointer_zone_id = $2, pointer_problem = $3, pointer_at = now()
         where id = $1 and pointed_address is not null",
        name.0,
        stands.ok().map(|zone| zone.0),
        stands.err(),
    )
    .execute(conn)
    .await
    .map(drop)
}
