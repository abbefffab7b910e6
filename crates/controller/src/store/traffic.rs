//! What visitors asked for: which nodes are to be read, what they told ([`readings`]), and how it is shown ([`shown`]).
//!
//! A node is believed about the names of its own guests only, and counts for the environment whose guest takes the
//! requests on that node. A reading is added in the transaction that remembers how far it went, so it counts once however
//! often it is asked for, and whichever server asks.

pub mod readings;
pub mod shown;

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, NodeId, ProjectId};
use corpus_protocol::RoutedName;
use sqlx::PgConnection;

use super::word;

/// For how many days minutes are kept.
pub const DAYS_OF_MINUTES: i32 = 2;
/// For how many days hours are kept.
const DAYS_OF_HOURS: i32 = 31;
/// As many rows are removed in one transaction.
const FORGOTTEN_AT_ONCE: i64 = 10_000;

/// Takes up to `room` nodes that nobody took for so many seconds, those first that were taken longest ago.
pub async fn take_nodes(conn: &mut PgConnection, room: i64, every: f64) -> sqlx::Result<Vec<NodeId>> {
    sqlx::query!(
        "insert into traffic_read (node_id)
         select n.id from nodes n
         where n.state in ('ready', 'draining') and not exists (select from traffic_read t where t.node_id = n.id)
         on conflict do nothing"
    )
    .execute(&mut *conn)
    .await?;
    let taken = sqlx::query_scalar!(
        "update traffic_read set taken_at = now() where node_id in (
             select t.node_id from traffic_read t join nodes n on n.id = t.node_id
             where n.state in ('ready', 'draining') and n.reachability = 'reachable'
               and t.taken_at <= now() - make_interval(secs => $2)
             order by t.taken_at limit $1 for update of t skip locked)
         returning node_id",
        room,
        every,
    );
    Ok(taken.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// Until when a node's minutes are counted.
pub async fn counted_to(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Option<DateTime<Utc>>> {
    let to = sqlx::query_scalar!("select counted_to from traffic_read where node_id = $1", node.0);
    Ok(to.fetch_optional(conn).await?.flatten())
}

/// The names that lead to guests of an environment, by the node that serves them; so many of each node.
pub async fn names_of(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
    of_node: i64,
) -> sqlx::Result<Vec<(NodeId, RoutedName)>> {
    let rows = sqlx::query!(
        r#"select node_id as "node!", name as "name!", wildcard as "wildcard!" from (
               select l.node_id, l.name, l.wildcard,
                   row_number() over (partition by l.node_id order by l.name, l.wildcard) as place
               from names_on_nodes l where l.project_id = $1 and l.environment = $2) named
           where place <= $3 order by node_id, name, wildcard"#,
        project.0,
        environment.as_str(),
        of_node,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok((NodeId(row.node), RoutedName { name: word(&row.name)?, wildcard: row.wildcard }))).collect()
}

/// Removes some of what is older than it is kept; whether there may be more.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<bool> {
    let minutes = sqlx::query!(
        "delete from traffic_minutes where (project_id, environment, at) in (
             select project_id, environment, at from traffic_minutes
             where at < now() - make_interval(days => $1) limit $2)",
        DAYS_OF_MINUTES,
        FORGOTTEN_AT_ONCE,
    );
    let minutes = minutes.execute(&mut *conn).await?.rows_affected();
    let hours = sqlx::query!(
        "delete from traffic_hours where (project_id, environment, at) in (
             select project_id, environment, at from traffic_hours
             where at < now() - make_interval(days => $1) limit $2)",
        DAYS_OF_HOURS,
        FORGOTTEN_AT_ONCE,
    );
    let hours = hours.execute(&mut *conn).await?.rows_affected();
    sqlx::query!("delete from traffic_errors where at < now() - make_interval(days => $1)", DAYS_OF_HOURS)
        .execute(conn)
        .await?;
    Ok(minutes.max(hours) >= FORGOTTEN_AT_ONCE.unsigned_abs())
}
