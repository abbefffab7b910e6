//! Networks that have a name.

use corpus_api::Version;
use corpus_api::firewall::networks::NamedNetwork;
use corpus_domain::{FirewallRuleId, Ipv4Network, NamedNetworkId, NetworkName, UserId};
use sqlx::PgConnection;

use super::super::{number, word};

/// As many are shown.
const MOST: i64 = 500;

/// All of them, or the one, by name.
pub async fn list(conn: &mut PgConnection, only: Option<NamedNetworkId>) -> sqlx::Result<Vec<NamedNetwork>> {
    let rows = sqlx::query!(
        "select w.id, w.name, w.networks, w.comment, w.created_at,
             (select count(*) from firewall_rules r where r.network_id = w.id) as \"rules!\"
         from named_networks w where $1::uuid is null or w.id = $1 order by w.name limit $2",
        only.map(|id| id.0),
        MOST,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(NamedNetwork {
            id: NamedNetworkId(row.id),
            name: word(&row.name)?,
            version: version(&row.networks, row.comment.as_deref()),
            networks: row.networks.iter().map(|one| word(one)).collect::<sqlx::Result<_>>()?,
            comment: row.comment,
            rules: number(row.rules)?,
            created_at: row.created_at,
        })
    });
    rows.collect()
}

fn version(networks: &[String], comment: Option<&str>) -> Version {
    Version::of(&(networks, comment))
}

/// Holds the row until the transaction ends, so that it stays as it is read.
pub async fn hold(conn: &mut PgConnection, id: NamedNetworkId) -> sqlx::Result<()> {
    sqlx::query!("select id from named_networks where id = $1 for update", id.0).fetch_optional(conn).await.map(drop)
}

/// The id of a name.
pub async fn by_name(conn: &mut PgConnection, name: &NetworkName) -> sqlx::Result<Option<NamedNetworkId>> {
    let id = sqlx::query_scalar!("select id from named_networks where name = $1", name.as_str());
    Ok(id.fetch_optional(conn).await?.map(NamedNetworkId))
}

/// How many there are.
pub async fn are_full(conn: &mut PgConnection) -> sqlx::Result<bool> {
    let count = sqlx::query_scalar!("select count(*) as \"count!\" from named_networks").fetch_one(conn).await?;
    Ok(count >= MOST)
}

/// Keeps one; a name that is there already breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    (id, name): (NamedNetworkId, &NetworkName),
    networks: &[Ipv4Network],
    comment: Option<&str>,
    by: UserId,
) -> sqlx::Result<()> {
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into named_networks (id, name, networks, comment, created_by) values ($1, $2, $3, $4, $5)",
        id.0,
        name.as_str(),
        &networks,
        comment,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Sets which addresses it is, and what.
pub async fn set(
    conn: &mut PgConnection,
    id: NamedNetworkId,
    networks: &[Ipv4Network],
    comment: Option<&str>,
) -> sqlx::Result<()> {
    let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
    sqlx::query!("update named_networks set networks = $2, comment = $3 where id = $1", id.0, &networks, comment)
        .execute(conn)
        .await
        .map(drop)
}

/// Forgets it; a rule that names it breaks the foreign key.
pub async fn delete(conn: &mut PgConnection, id: NamedNetworkId) -> sqlx::Result<()> {
    sqlx::query!("delete from named_networks where id = $1", id.0).execute(conn).await.map(drop)
}

/// The rules that name it.
pub async fn rules_of(conn: &mut PgConnection, id: NamedNetworkId) -> sqlx::Result<Vec<FirewallRuleId>> {
    let rules = sqlx::query_scalar!("select id from firewall_rules where network_id = $1", id.0);
    Ok(rules.fetch_all(conn).await?.into_iter().map(FirewallRuleId).collect())
}
