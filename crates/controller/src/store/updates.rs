//! Which updates guests lack: whose node is to be asked, what it is asked, and what it told.

use chrono::{DateTime, Utc};
use corpus_domain::{GuestName, ImageName, NodeId};
use corpus_protocol::GuestUpdates;
use sqlx::PgConnection;

use super::word;

/// Nodes that were not asked for an hour, as many as may be asked at once. They are taken: nobody else asks them now.
pub async fn take_due(conn: &mut PgConnection, most: i64) -> sqlx::Result<Vec<NodeId>> {
    let nodes = sqlx::query_scalar!(
        "update nodes set updates_asked_at = now() where id in (
             select id from nodes
             where state in ('ready', 'draining') and reachability = 'reachable'
               and (updates_asked_at is null or updates_asked_at < now() - interval '1 hour')
             order by updates_asked_at nulls first limit $1 for update skip locked)
         returning id",
        most,
    );
    Ok(nodes.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// The guests of a node that run, each with the newest version of its image, where the node has that.
pub async fn asked(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<(GuestName, ImageName)>> {
    let rows = sqlx::query!(
        r#"select g.name, n.label as "label!" from guests g join image_versions v on v.label = g.image
            join newest_images n on n.name = v.name and n.image_id is not distinct from v.image_id
            join node_images i on i.node_id = g.node_id and i.label = n.label
         where g.node_id = $1 and g.state = 'running' order by g.name"#,
        node.0,
    );
    rows.fetch_all(conn).await?.into_iter().map(|row| Ok((word(&row.name)?, word(&row.label)?))).collect()
}

/// Keeps what a node told of its guests, and that it told nothing of the others that it was asked about.
pub async fn keep(conn: &mut PgConnection, node: NodeId, at: DateTime<Utc>, told: &[GuestUpdates]) -> sqlx::Result<()> {
    let names: Vec<String> = told.iter().map(|one| one.name.to_string()).collect();
    let images: Vec<String> = told.iter().map(|one| one.image.to_string()).collect();
    let counts: Vec<i32> = told.iter().map(|one| i32::try_from(one.count).unwrap_or(i32::MAX)).collect();
    // An array of arrays has rows of one length.
    let packages: Vec<String> = told.iter().map(|one| one.packages.join(" ")).collect();
    sqlx::query!(
        "update guests g set lacks_count = t.count, lacks_image = t.image, lacks_at = $2,
             lacks = array_remove(string_to_array(t.packages, ' '), '')
         from unnest($3::text[], $4::text[], $5::int[], $6::text[]) as t (name, image, count, packages)
         where g.node_id = $1 and g.name = t.name",
        node.0,
        at,
        &names,
        &images,
        &counts,
        &packages,
    )
    .execute(conn)
    .await
    .map(drop)
}
