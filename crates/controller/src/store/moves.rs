//! Guests that are moved between nodes: the other place that each has meanwhile.
//!
//! The place where a guest is stands in its row, the other one here. They are exchanged as a whole and in one statement of
//! the truth, there and back, so that whatever reads rows sees it at one node or at the other. What it leaves behind is known
//! until resolvers have forgotten the old node.

use std::net::Ipv4Addr;

use corpus_domain::{DnsName, DnsNameId, GuestId, GuestNetwork, ImageName, MacAddress, NodeId, ZoneId};
use sqlx::PgConnection;

use super::guests::{self, GuestRow, Place, place_of, taken};
use super::pointers::{self, PointedName};
use super::{number, word};

/// Notes that the guest is to go to the node, and what it will be a clone of there: from now on it counts there, too.
pub async fn begin(conn: &mut PgConnection, guest: &GuestRow, to: NodeId, image: &ImageName) -> sqlx::Result<()> {
    // What an earlier move left is over: its own node is where visitors are sent now.
    settle(&mut *conn, guest.id).await?;
    sqlx::query!(
        "insert into guest_moves (guest_id, node_id, image, memory, cpu_millis, storage, backing)
         select id, $2, $3, memory, cpu_millis, storage, backing from guests where id = $1",
        guest.id.0,
        to.0,
        image.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Gives the guest a place at the node that it goes to, as much like the one that it has as there is room for; none when
/// something is used up there.
pub async fn choose(
    conn: &mut PgConnection,
    guest: GuestId,
    (to, network): (NodeId, GuestNetwork),
) -> sqlx::Result<Option<Place>> {
    if let Some(chosen) = place(&mut *conn, guest).await? {
        return Ok(Some(chosen));
    }
    let taken = taken(&mut *conn, to).await?;
    let Some(own) = guests::place(&mut *conn, guest).await? else { return Ok(None) };
    let Some(ip) = taken.ip(network, Some(own.ip)) else { return Ok(None) };
    // One that was only made from its address is made from the new one.
    let is_chosen = own.mac != MacAddress::for_ip(own.ip);
    let mac = taken.mac(ip, Some(own.mac).filter(|_| is_chosen || ip == own.ip));
    let Some(port) = taken.port(Some(own.ssh_port)) else { return Ok(None) };
    let ids = own.ids.and_then(|_| taken.ids());
    if own.ids.is_some() && ids.is_none() {
        return Ok(None);
    }
    sqlx::query!(
        "update guest_moves set ip = $2, mac = $3, ssh_port = $4, id_range = $5 where guest_id = $1",
        guest.0,
        ip.to_string(),
        mac.to_string(),
        port,
        ids.map(|ids| i64::from(ids.first())),
    )
    .execute(&mut *conn)
    .await?;
    place(conn, guest).await
}

/// What the guest is a clone of at its other place.
pub async fn image(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<ImageName>> {
    let found = sqlx::query_scalar!("select image from guest_moves where guest_id = $1", guest.0);
    found.fetch_optional(conn).await?.map(|image| word(&image)).transpose()
}

/// The other place of a guest, once it was chosen.
pub async fn place(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Place>> {
    let row = sqlx::query!("select ip, mac, ssh_port, id_range from guest_moves where guest_id = $1", guest.0);
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    place_of(row.ip.as_deref(), row.mac.as_deref(), row.ssh_port, row.id_range)
}

/// The guest is at this one of its two nodes. Tells whether it was at the other one.
pub async fn lead(conn: &mut PgConnection, guest: GuestId, node: NodeId) -> sqlx::Result<bool> {
    let other = sqlx::query!(
        r#"select m.ip, m.mac, m.ssh_port, m.id_range, m.image, g.image as was_image, g.node_id as was_node, g.ip as was_ip, g.mac as was_mac,
             g.ssh_port as was_port, g.id_range as was_range
           from guest_moves m join guests g on g.id = m.guest_id where m.guest_id = $1 and m.node_id = $2 for update"#,
        guest.0,
        node.0,
    );
    let Some(other) = other.fetch_optional(&mut *conn).await? else { return Ok(false) };
    let pointed = let_go(&mut *conn, guest).await?;
    // Its names were last said to lead to the old one: whoever compares finds that they do not any more.
    sqlx::query!(
        "update dns_names set spread_to = coalesce(spread_to, name_addresses(id))
         where guest_id = $1 and state = 'attached' and zone_id is not null and alias_of is null and not wildcard",
        guest.0
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update guests set node_id = $2, ip = $3, mac = $4, ssh_port = $5, id_range = $6, image = $7 where id = $1",
        guest.0,
        node.0,
        other.ip,
        other.mac,
        other.ssh_port,
        other.id_range,
        other.image,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update guest_moves set moved = not moved, node_id = $2, ip = $3, mac = $4, ssh_port = $5, id_range = $6,
             image = $7
         where guest_id = $1",
        guest.0,
        other.was_node,
        other.was_ip,
        other.was_mac,
        other.was_port,
        other.was_range,
        other.was_image,
    )
    .execute(&mut *conn)
    .await?;
    pointers::point_back(conn, guest, pointed.as_ref()).await?;
    Ok(true)
}

/// The address that the guest has points to no name any more. Tells what the one that it gets is to point to: on its way
/// there to the same name, which has no record yet, and on its way back to what it was.
async fn let_go(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<PointedName>> {
    let kept = sqlx::query!(
        "select m.pointed_zone_id, m.pointed_problem, d.id, d.name, m.ip as \"ip!\" from guest_moves m
         join dns_names d on d.id = m.pointed_name_id where m.guest_id = $1 and m.moved and m.ip is not null",
        guest.0
    );
    let kept = kept.fetch_optional(&mut *conn).await?;
    let pointed = pointers::of_guest(&mut *conn, guest).await?;
    pointers::point(&mut *conn, guest, None).await?;
    if let Some(row) = kept {
        let (id, zone) = (DnsNameId(row.id), row.pointed_zone_id.map(ZoneId));
        return Ok(Some(PointedName {
            id,
            name: word(&row.name)?,
            address: row.ip,
            zone,
            problem: row.pointed_problem,
        }));
    }
    let Some(pointed) = pointed else { return Ok(None) };
    sqlx::query!(
        "update guest_moves set pointed_name_id = $2, pointed_zone_id = $3, pointed_problem = $4 where guest_id = $1",
        guest.0,
        pointed.id.0,
        pointed.zone.map(|zone| zone.0),
        pointed.problem.as_deref(),
    )
    .execute(conn)
    .await?;
    Ok(Some(PointedName { zone: None, problem: None, ..pointed }))
}

/// What the address of a guest that is moved pointed back to when it set out.
#[derive(Debug)]
pub struct Followed {
    /// The name.
    pub name: DnsName,
    /// The address that the guest has.
    pub has: Ipv4Addr,
    /// The address at its other place.
    pub left: Ipv4Addr,
    /// Whether it is where it goes to.
    pub moved: bool,
}

/// What goes with a guest that is moved, if its address pointed to a name.
pub async fn followed(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Followed>> {
    let row = sqlx::query!(
        "select d.name, g.ip as \"has!\", m.ip as \"left!\", m.moved
         from guest_moves m join guests g on g.id = m.guest_id join dns_names d on d.id = m.pointed_name_id
         where m.guest_id = $1 and m.ip is not null and g.ip is not null",
        guest.0
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(Followed { name: word(&row.name)?, has: word(&row.has)?, left: word(&row.left)?, moved: row.moved }))
}

/// Nothing of the guest is at the node that it left; visitors are sent there for so long. What its names lead to is compared
/// again by whoever does that.
pub async fn left(conn: &mut PgConnection, guest: GuestId, seconds: f64) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into names_to_spread (name_id)
         select id from dns_names where guest_id = $1
         union
         select n.id from dns_names n join environment_guests eg
             on eg.project_id = n.project_id and eg.environment = n.environment where eg.guest_id = $1",
        guest.0
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update guest_moves set memory = 0, cpu_millis = 0, storage = 0, until_at = now() + make_interval(secs => $2)
         where guest_id = $1 and moved",
        guest.0,
        seconds,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The guest has one place.
pub async fn settle(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    sqlx::query!("delete from guest_moves where guest_id = $1", guest.0).execute(conn).await.map(drop)
}

/// For how long resolvers may keep what the names of a guest were said to lead to, in seconds.
pub async fn kept_s(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<u32> {
    let longest = sqlx::query_scalar!(
        r#"select coalesce(max(z.ttl_s), 0) as "longest!" from (
               select zone_id from dns_names where guest_id = $1
               union all
               select n.zone_id from environment_guests eg
               join dns_names n on n.project_id = eg.project_id and n.environment = eg.environment
               where eg.guest_id = $1) n join zones z on z.id = n.zone_id"#,
        guest.0,
    );
    longest.fetch_one(conn).await.and_then(number)
}

/// The names that lead to the guest by themselves and whose records are ours.
pub async fn names(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<DnsNameId>> {
    let rows = sqlx::query_scalar!(
        "select id from dns_names
         where guest_id = $1 and state = 'attached' and zone_id is not null and alias_of is null
         order by name, wildcard",
        guest.0,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(DnsNameId).collect())
}

/// Guests whose old node nobody is sent to any more, the longest ago first.
pub async fn over(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<GuestId>> {
    let rows = sqlx::query_scalar!(
        "select guest_id from guest_moves where until_at <= now() order by until_at limit $1",
        limit
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(GuestId).collect())
}

/// Ends what a move left, if it is over still, and notes that the old node has not been told so. Tells whether it did.
pub async fn end(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<bool> {
    let over = sqlx::query_scalar!(
        "delete from guest_moves where guest_id = $1 and until_at <= now() returning node_id",
        guest.0
    );
    let Some(node) = over.fetch_optional(&mut *conn).await? else { return Ok(false) };
    // A plan that was read before has a lower revision.
    sqlx::query!(
        "update nodes set plan_missed = greatest(plan_missed, plan_revision + 1)
         where id = $1 or id = (select node_id from guests where id = $2)",
        node,
        guest.0
    )
    .execute(conn)
    .await
    .map(|_| true)
}

/// Forgets the snapshots of a guest at a node that it left: they went with its files.
pub async fn forget_snapshots(conn: &mut PgConnection, guest: GuestId, node: NodeId) -> sqlx::Result<()> {
    sqlx::query!("delete from snapshots where guest_id = $1 and node_id = $2", guest.0, node.0)
        .execute(conn)
        .await
        .map(drop)
}
