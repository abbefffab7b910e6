//! Where names lead whose guests are on several nodes: to the addresses of all of them.

use corpus_domain::{DnsName, DnsNameId, GuestId};
use sqlx::PgConnection;

use super::names::Held;
use super::{number, word};

/// A name whose addresses may be others than it was last said to have.
#[derive(Debug)]
pub struct Noted {
    /// The name.
    pub name: DnsNameId,
    /// What noted it.
    pub notes: Vec<i64>,
    /// Whether it is attached, and does not lead where it should.
    pub is_due: bool,
}

/// Some of the names that were noted, those first that have waited longest.
pub async fn noted(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<Noted>> {
    let rows = sqlx::query!(
        r#"select t.name_id, t.notes as "notes!",
             coalesce((
                 select coalesce(n.spread_to, array(select a from unnest(array[o.public_ip, o.public_ipv6]) a
                                                    where a is not null order by a)) <> name_addresses(n.id)
                 from dns_names n join guests g on g.id = n.guest_id join nodes o on o.id = g.node_id
                 where n.id = t.name_id and n.state = 'attached' and n.zone_id is not null and n.alias_of is null
                     -- As long as a guest is between two nodes its job says where its names lead.
                     and not exists (
                         select from guest_moves m where m.guest_id = n.guest_id and m.moved and m.until_at is null)
                     and not exists (
                         select from environment_guests eg join guest_moves m on m.guest_id = eg.guest_id
                         where eg.project_id = n.project_id and eg.environment = n.environment
                             and m.moved and m.until_at is null)),
                 false) as "is_due!"
           from (select name_id, array_agg(id) as notes from names_to_spread where due_at <= now()
                 group by name_id order by min(due_at) limit $1) t"#,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| Noted { name: DnsNameId(row.name_id), notes: row.notes, is_due: row.is_due }).collect())
}

/// These notes are done with: others that came meanwhile are not.
pub async fn forget(conn: &mut PgConnection, notes: &[i64]) -> sqlx::Result<()> {
    sqlx::query!("delete from names_to_spread where id = any($1)", notes).execute(conn).await.map(drop)
}

/// A name that is to lead to several nodes, or to one again.
#[derive(Debug)]
pub struct Spread {
    /// The name.
    pub name: DnsName,
    /// Who holds its record.
    pub held: Held,
    /// Where it should lead to.
    pub addresses: Vec<String>,
}

/// Holds an attached name of ours until the transaction ends: nobody detaches it meanwhile.
pub async fn hold_spread(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<Option<Spread>> {
    let row = sqlx::query!(
        r#"select n.name, z.name as zone, z.provider, z.ttl_s, name_addresses(n.id) as "addresses!"
           from dns_names n join zones z on z.id = n.zone_id
           where n.id = $1 and n.state = 'attached' and not n.wildcard and n.alias_of is null for update of n"#,
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let held = Held { zone: word(&row.zone)?, provider: word(&row.provider)?, ttl_s: number(row.ttl_s)? };
    Ok(Some(Spread { name: word(&row.name)?, held, addresses: row.addresses }))
}

/// A name was said to lead to these addresses; what its guest's node has alone is remembered as nothing special.
pub async fn spread(conn: &mut PgConnection, id: DnsNameId, addresses: &[String]) -> sqlx::Result<()> {
    sqlx::query!(
        "update dns_names d set spread_to = nullif($2::text[], array(
             select a from guests g join nodes o on o.id = g.node_id
             cross join lateral unnest(array[o.public_ip, o.public_ipv6]) a
             where g.id = d.guest_id and a is not null order by a))
         where d.id = $1",
        id.0,
        addresses,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The names that may still lead visitors to a node which takes none for them soon, since this guest leaves it; and the
/// longest time for which resolvers keep that, in seconds.
pub async fn closing(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<(Vec<DnsNameId>, u32)> {
    let rows = sqlx::query!(
        "select n.id, z.ttl_s from environment_guests eg join guests g on g.id = eg.guest_id
         join dns_names n on n.project_id = eg.project_id
             and (n.environment = eg.environment
                  or (n.former_guest_id is not null and n.former_environment = eg.environment))
         join zones z on z.id = n.zone_id
         -- For each name alone: grouped as a whole it would read all names.
         cross join lateral (
             select from name_nodes s where s.name_id = n.id and s.node_id = g.node_id and not s.open offset 0) s
         where eg.guest_id = $1 and n.state = 'attached'
             and (n.spread_to is not null or n.former_guest_id is not null)",
        guest.0,
    );
    let (mut names, mut longest) = (Vec::new(), 0);
    for row in rows.fetch_all(conn).await? {
        names.push(DnsNameId(row.id));
        longest = longest.max(number(row.ttl_s)?);
    }
    Ok((names, longest))
}

/// Where an attached name is to lead to.
pub async fn addresses(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<Vec<String>> {
    let found = sqlx::query_scalar!(r#"select name_addresses($1) as "addresses!""#, id.0);
    found.fetch_one(conn).await
}
