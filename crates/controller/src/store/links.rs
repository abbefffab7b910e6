//! Ways between nodes whose guests share names, or reach each other: what a node is known by, who comes to it, and who is lent to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use chrono::{DateTime, Utc};
use corpus_domain::{CertificateId, DnsNameId, Environment, GuestId, GuestName, NodeId};
use corpus_protocol::{LentGuest, Links, ServedCertificate, link_name};
use sqlx::PgConnection;

use super::certificates::Kept;
use super::far;
use super::word;

/// What a node is known by from now on.
#[derive(Debug)]
pub struct NewLink<'a> {
    /// The node.
    pub node: NodeId,
    /// The id that its file has there.
    pub id: CertificateId,
    /// The chain, to the authority's own certificate.
    pub chain: &'a str,
    /// Its key.
    pub key_sealed: &'a [u8],
    /// The digest of chain and key.
    pub digest: &'a str,
    /// Until when it is valid.
    pub not_after: DateTime<Utc>,
    /// When the next one is due.
    pub renew_at: DateTime<Utc>,
}

/// Keeps it in place of an earlier one.
pub async fn put(conn: &mut PgConnection, new: &NewLink<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into node_links (node_id, certificate_id, chain, key_sealed, digest, not_after, renew_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (node_id) do update set certificate_id = excluded.certificate_id, chain = excluded.chain,
             key_sealed = excluded.key_sealed, digest = excluded.digest, not_after = excluded.not_after,
             renew_at = excluded.renew_at",
        new.node.0,
        new.id.0,
        new.chain,
        new.key_sealed,
        new.digest,
        new.not_after,
        new.renew_at,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether a node shares names with others, or guests of it and of others reach each other, and it has nothing to be known by, or not for long any more.
pub async fn is_due(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<bool> {
    let due = sqlx::query_scalar!(
        r#"select exists (
             select from lent_guests where node_id = $1
             union all
             select from names_left where node_id = $1
             union all
             select from far_guests
             where (source_node = $1 or target_node = $1) and is_there and state <> 'removing')
           and not exists (select from node_links where node_id = $1 and renew_at > now()) as "due!""#,
        node.0,
    );
    due.fetch_one(conn).await
}

/// Some of the nodes that have to be given something new to be known by, those first that have waited longest.
pub async fn due(conn: &mut PgConnection) -> sqlx::Result<Vec<NodeId>> {
    let rows = sqlx::query_scalar!(
        "select l.node_id from node_links l join nodes n on n.id = l.node_id
         where l.renew_at <= now() and n.state in ('ready', 'draining') and n.reachability = 'reachable'
         order by l.renew_at limit 16"
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// Of these certificates, those of nodes.
pub async fn kept(conn: &mut PgConnection, ids: &[uuid::Uuid]) -> sqlx::Result<Vec<Kept>> {
    let rows =
        sqlx::query!("select certificate_id, chain, key_sealed from node_links where certificate_id = any($1)", ids);
    let rows = rows.fetch_all(conn).await?.into_iter();
    let kept = |id, chain, key_sealed| Kept { id: CertificateId(id), chain, key_sealed };
    Ok(rows.map(|row| kept(row.certificate_id, row.chain, row.key_sealed)).collect())
}

/// The ways of a node; none where it has nothing to do with another, or is not known to others yet.
pub async fn of_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Option<Links>> {
    // A node that a guest has left brings it visitors, and may have none to lend.
    let own = sqlx::query!(
        r#"select certificate_id, digest, exists (select from names_left where node_id = $1) as "brings!"
           from node_links where node_id = $1"#,
        node.0
    );
    let Some(own) = own.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let rows = sqlx::query!(
        r#"select g.name, g.ip as "ip!", m.to_node_id as "to!", n.address, n.public_ip,
             case when jsonb_typeof(n.facts -> 'addresses') = 'array' then n.facts -> 'addresses' end as addresses
           from lent_guests m join guests g on g.id = m.guest_id join nodes n on n.id = m.to_node_id
           where m.node_id = $1 order by g.name"#,
        node.0,
    );
    let mut peers = BTreeSet::new();
    let mut lent: BTreeMap<GuestName, (Ipv4Addr, BTreeSet<NodeId>)> = BTreeMap::new();
    for row in rows.fetch_all(&mut *conn).await? {
        peers.extend(sources(row.addresses, row.address, row.public_ip));
        let ip = word(&row.ip)?;
        lent.entry(word(&row.name)?).or_insert_with(|| (ip, BTreeSet::new())).1.insert(NodeId(row.to));
    }
    let far = far::of_node(conn, node).await?;
    if lent.is_empty() && far.is_empty() && !own.brings {
        return Ok(None);
    }
    peers.extend(addresses(conn, far.others()).await?);
    let certificate = ServedCertificate {
        id: CertificateId(own.certificate_id),
        digest: own.digest,
        names: vec![word(&link_name(node))?],
    };
    let lent = lent.into_iter().map(|(guest, (ip, to))| LentGuest { guest, ip, to: to.into_iter().collect() });
    let (peers, lent) = (peers.into_iter().collect(), lent.collect());
    Ok(Some(Links { certificate, peers, lent, ways: far.ways, let_out: far.let_out, open: far.open }))
}

/// Where nodes may come from.
async fn addresses(conn: &mut PgConnection, nodes: BTreeSet<NodeId>) -> sqlx::Result<BTreeSet<Ipv4Addr>> {
    let nodes: Vec<uuid::Uuid> = nodes.into_iter().map(|node| node.0).collect();
    let rows = sqlx::query!(
        r#"select n.address, n.public_ip,
             case when jsonb_typeof(n.facts -> 'addresses') = 'array' then n.facts -> 'addresses' end as addresses
           from nodes n where n.id = any($1)"#,
        &nodes,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.flat_map(|row| sources(row.addresses, row.address, row.public_ip)).collect())
}

/// The addresses of a node, as it tells them and as it is known.
fn sources(told: Option<serde_json::Value>, address: String, public: Option<String>) -> Vec<Ipv4Addr> {
    let told: Vec<String> = told.and_then(|told| serde_json::from_value(told).ok()).unwrap_or_default();
    let all = told.into_iter().chain([address]).chain(public);
    all.filter_map(|text| text.parse::<Ipv4Addr>().ok()).filter(|ip| !ip.is_loopback()).collect()
}

/// The nodes that serve what guests share.
#[derive(Debug, Default)]
pub struct Beside {
    /// Those that the guests are on.
    pub own: BTreeSet<NodeId>,
    /// The others, which bring visitors there.
    pub others: BTreeSet<NodeId>,
}

/// The nodes of these guests, and those that serve what they share with others.
pub async fn beside(conn: &mut PgConnection, guests: &[GuestId]) -> sqlx::Result<Beside> {
    let guests: Vec<uuid::Uuid> = guests.iter().map(|guest| guest.0).collect();
    let rows = sqlx::query!(
        r#"select node_id as "node_id!", bool_or(own) as "own!" from (
             select node_id, true as own from guests where id = any($1)
             union all
             select o.node_id, false from balance_members m join balance_members o
               on o.project_id = m.project_id and o.environment = m.environment
             where m.guest_id = any($1)) nodes group by node_id"#,
        &guests,
    );
    let mut beside = Beside::default();
    for row in rows.fetch_all(conn).await? {
        let nodes = if row.own { &mut beside.own } else { &mut beside.others };
        nodes.insert(NodeId(row.node_id));
    }
    Ok(beside)
}

/// The nodes that take visitors of a name: that of its guest, of its other end as long as it is being switched, and the
/// others.
pub async fn of_name(conn: &mut PgConnection, name: DnsNameId) -> sqlx::Result<Beside> {
    let rows = sqlx::query!(
        r#"select s.node_id as "node_id!", bool_or(s.node_id = g.node_id or s.node_id is not distinct from f.node_id) as "own!"
           from name_nodes s join dns_names n on n.id = s.name_id join guests g on g.id = n.guest_id
           left join guests f on f.id = n.former_guest_id
           where s.name_id = $1 group by s.node_id"#,
        name.0,
    );
    let mut beside = Beside::default();
    for row in rows.fetch_all(conn).await? {
        let nodes = if row.own { &mut beside.own } else { &mut beside.others };
        nodes.insert(NodeId(row.node_id));
    }
    Ok(beside)
}

/// The nodes of a guest, or of the environment that it leads.
pub async fn of_end(
    conn: &mut PgConnection,
    guest: GuestId,
    environment: Option<Environment>,
) -> sqlx::Result<BTreeSet<NodeId>> {
    let rows = sqlx::query_scalar!(
        r#"select node_id as "node_id!" from guests where id = $1
           union
           select g.node_id from environment_guests l
           join environment_guests eg on eg.project_id = l.project_id and eg.environment = l.environment
           join guests g on g.id = eg.guest_id
           where l.guest_id = $1 and $2::boolean and eg.state in ('ready', 'leaving') and g.routed and g.ip is not null"#,
        guest.0,
        environment.is_some(),
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// A node did not answer when it was to be told this plan, or a newer one.
pub async fn missed(conn: &mut PgConnection, node: NodeId, revision: i64) -> sqlx::Result<()> {
    sqlx::query!("update nodes set plan_missed = greatest(plan_missed, $2) where id = $1", node.0, revision)
        .execute(conn)
        .await
        .map(drop)
}

/// A node was told this plan.
pub async fn told(conn: &mut PgConnection, node: NodeId, revision: i64) -> sqlx::Result<()> {
    sqlx::query!("update nodes set plan_missed = null where id = $1 and plan_missed <= $2", node.0, revision)
        .execute(conn)
        .await
        .map(drop)
}

/// The nodes that missed something.
pub async fn behind(conn: &mut PgConnection) -> sqlx::Result<BTreeSet<NodeId>> {
    let rows = sqlx::query_scalar!("select id from nodes where plan_missed is not null");
    Ok(rows.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}
