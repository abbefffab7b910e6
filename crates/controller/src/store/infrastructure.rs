//! What Corpus is made of, by the addresses at which it was last seen, and the nodes that must know.

use std::net::Ipv4Addr;

use corpus_domain::NodeId;
use sqlx::PgConnection;

use super::word;

/// The addresses of a host, as it was just resolved. One that was not among them for a day is forgotten: a
/// name may have more addresses than one answer holds.
pub async fn saw(conn: &mut PgConnection, host: &str, addresses: &[Ipv4Addr]) -> sqlx::Result<()> {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into infrastructure (host, address) select $1, unnest($2::text[])
         on conflict (host, address) do update set seen_at = now(), asked_at = now()
         where infrastructure.seen_at < now() - interval '1 hour'",
        host,
        &texts,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("delete from infrastructure where host = $1 and seen_at < now() - interval '1 day'", host)
        .execute(conn)
        .await
        .map(drop)
}

/// A host that could not be resolved stays where it was.
pub async fn asked(conn: &mut PgConnection, host: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update infrastructure set asked_at = now() where host = $1 and asked_at < now() - interval '1 hour'",
        host
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Forgets the hosts that no server has asked for in a week.
pub async fn forget_unasked(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("delete from infrastructure where asked_at < now() - interval '7 days'").execute(conn).await.map(drop)
}

/// All addresses, each once.
pub async fn addresses(conn: &mut PgConnection) -> sqlx::Result<Vec<Ipv4Addr>> {
    let rows = sqlx::query_scalar!("select distinct address from infrastructure").fetch_all(conn).await?;
    let mut addresses = rows.iter().map(|row| word(row)).collect::<sqlx::Result<Vec<Ipv4Addr>>>()?;
    addresses.sort_unstable();
    Ok(addresses)
}

/// Where the sites of nodes are asked for: their public addresses, or the ones they are linked by.
pub async fn sites(conn: &mut PgConnection) -> sqlx::Result<Vec<Ipv4Addr>> {
    let rows = sqlx::query!("select address, public_ip from nodes").fetch_all(conn).await?;
    let texts = rows.into_iter().flat_map(|row| [Some(row.address), row.public_ip]).flatten();
    let mut sites: Vec<Ipv4Addr> = texts.filter_map(|text| text.parse().ok()).collect();
    sites.sort_unstable();
    sites.dedup();
    Ok(sites)
}

/// What the nodes' facts say of their addresses.
pub async fn of_nodes(conn: &mut PgConnection) -> sqlx::Result<Vec<Ipv4Addr>> {
    let rows = sqlx::query_scalar!(
        "select distinct a as \"address!\" from nodes, jsonb_array_elements_text(facts->'addresses') a
         where jsonb_typeof(facts->'addresses') = 'array'"
    );
    Ok(rows.fetch_all(conn).await?.iter().filter_map(|text| text.parse().ok()).collect())
}

/// The nodes that take guests, or have some, and answer.
pub async fn nodes_in_service(conn: &mut PgConnection) -> sqlx::Result<Vec<NodeId>> {
    let rows = sqlx::query_scalar!(
        "select id from nodes where state in ('ready', 'draining') and reachability = 'reachable' order by id"
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

#[cfg(test)]
mod tests {
    use sqlx::PgPool;

    use super::*;

    fn ips(texts: &[&str]) -> Vec<Ipv4Addr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn what_was_seen_stays_until_it_is_seen_elsewhere(db: PgPool) -> sqlx::Result<()> {
        let mut conn = db.acquire().await?;
        saw(&mut conn, "ldap.x", &ips(&["192.0.2.1", "192.0.2.2"])).await?;
        saw(&mut conn, "db.x", &ips(&["192.0.2.1"])).await?;
        assert_eq!(addresses(&mut conn).await?, ips(&["192.0.2.1", "192.0.2.2"]));
        sqlx::query(
            "update infrastructure set seen_at = now() - interval '2 days', asked_at = now() - interval '2 days'",
        )
        .execute(&mut *conn)
        .await?;
        // It could not be resolved: nothing is forgotten.
        asked(&mut conn, "ldap.x").await?;
        forget_unasked(&mut conn).await?;
        assert_eq!(addresses(&mut conn).await?, ips(&["192.0.2.1", "192.0.2.2"]));
        saw(&mut conn, "ldap.x", &ips(&["192.0.2.3"])).await?;
        assert_eq!(addresses(&mut conn).await?, ips(&["192.0.2.1", "192.0.2.3"]), "db.x is still at the first");
        sqlx::query("update infrastructure set asked_at = now() - interval '8 days' where host = 'db.x'")
            .execute(&mut *conn)
            .await?;
        forget_unasked(&mut conn).await?;
        assert_eq!(addresses(&mut conn).await?, ips(&["192.0.2.3"]));
        Ok(())
    }
}
