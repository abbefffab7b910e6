//! Names that are being switched: what each leads to now, and its other end.
//!
//! The other end is what the name is to lead to, and once it does what it led to before. As long as it is noted the nodes of
//! both take the name's visitors. The job that notes it holds the name; what it leaves behind (`former_until`) is ended by
//! whichever server comes first once that time is over, or goes on in the next job, which may lead the name back at once.

use chrono::{DateTime, Utc};
use corpus_domain::{DnsNameId, Environment, GuestId, NodeId};
use sqlx::PgConnection;

use super::word_opt;

/// The other end of a name that is being switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Former {
    /// The guest; of an environment its leader.
    pub guest: GuestId,
    /// The environment.
    pub environment: Option<Environment>,
    /// Until when resolvers may send visitors to its nodes; none while a job works on it.
    pub until: Option<DateTime<Utc>>,
}

/// The other end of a name, if it has one.
pub async fn former(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<Option<Former>> {
    let row = sqlx::query!(
        r#"select former_guest_id as "guest!", former_environment, former_until from dns_names
           where id = $1 and former_guest_id is not null"#,
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let environment = word_opt(row.former_environment.as_deref())?;
    Ok(Some(Former { guest: GuestId(row.guest), environment, until: row.former_until }))
}

/// The nodes of this end are to take visitors of the name and its aliases too, until [`settle_at`] or [`settle`] says
/// otherwise.
pub async fn prepare(
    conn: &mut PgConnection,
    id: DnsNameId,
    (guest, environment): (GuestId, Option<Environment>),
) -> sqlx::Result<()> {
    sqlx::query!(
        "update dns_names set former_guest_id = $2, former_environment = $3, former_until = null
         where id = $1 or alias_of = $1",
        id.0,
        guest.0,
        environment.map(Environment::as_str),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Has a name lead to another guest, or to the environment that it leads, and its aliases along with it. Where its nodes
/// were told of both ends, what it led to is the other one now. Tells whether it led to `from` still.
pub async fn switch(
    conn: &mut PgConnection,
    id: DnsNameId,
    from: GuestId,
    (guest, environment): (GuestId, Option<Environment>),
    is_wide: bool,
) -> sqlx::Result<bool> {
    let switched = sqlx::query!(
        "update dns_names set guest_id = $3, environment = $4,
             former_guest_id = case when $5 then $2::uuid end,
             former_environment = case when $5 then environment end, former_until = null
         where (id = $1 or alias_of = $1) and guest_id = $2",
        id.0,
        from.0,
        guest.0,
        environment.map(Environment::as_str),
        is_wide,
    );
    Ok(switched.execute(conn).await?.rows_affected() > 0)
}

/// Resolvers send visitors to the other end's nodes for so long.
pub async fn settle_at(conn: &mut PgConnection, id: DnsNameId, seconds: f64) -> sqlx::Result<()> {
    sqlx::query!(
        "update dns_names set former_until = now() + make_interval(secs => $2)
         where (id = $1 or alias_of = $1) and former_guest_id is not null",
        id.0,
        seconds,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The name leads to one end only.
pub async fn settle(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!(
        "update dns_names set former_guest_id = null, former_environment = null, former_until = null
         where id = $1 or alias_of = $1",
        id.0
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Names to whose other end nobody is sent any more, the longest ago first.
pub async fn over(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<DnsNameId>> {
    let rows = sqlx::query_scalar!(
        "select id from dns_names where former_until <= now() and alias_of is null order by former_until limit $1",
        limit,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(DnsNameId).collect())
}

/// Ends the switch of a name if it is still over, and notes that its nodes have not been told so. Tells whether it did.
pub async fn end(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<bool> {
    let held = sqlx::query_scalar!("select id from dns_names where id = $1 and former_until <= now() for update", id.0);
    if held.fetch_optional(&mut *conn).await?.is_none() {
        return Ok(false);
    }
    let mut nodes = nodes(conn, id).await?;
    nodes.sort_unstable();
    settle(&mut *conn, id).await?;
    for node in nodes {
        // A plan that was read before has a lower revision.
        sqlx::query!("update nodes set plan_missed = greatest(plan_missed, plan_revision + 1) where id = $1", node.0)
            .execute(&mut *conn)
            .await?;
    }
    Ok(true)
}

async fn nodes(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<Vec<NodeId>> {
    let rows = sqlx::query_scalar!(r#"select node_id as "node!" from name_nodes where name_id = $1"#, id.0);
    Ok(rows.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}
