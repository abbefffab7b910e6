//! What a node should look like, from the rows: the one source of its bridge, firewall and routes.

use corpus_domain::{GuestName, NodeId};
use corpus_protocol::{GuestPort, HttpRoute, NodePlan, SshRoute};
use sqlx::PgConnection;

use super::{number, surroundings, word};
use crate::surroundings::Surroundings;

/// Raises the node's revision and reads its plan, both in the caller's transaction: the row
/// lock that the update takes puts concurrent plans of one node in order, so the plan with
/// the highest revision holds what every earlier one held. Revisions follow the clock, so that
/// they rise too on a host that was forgotten and is linked again.
pub async fn next(conn: &mut PgConnection, node: NodeId, surroundings: &Surroundings) -> sqlx::Result<NodePlan> {
    let row = sqlx::query!(
        "update nodes set plan_revision =
             greatest(plan_revision + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)
         where id = $1 returning plan_revision, network, bridge",
        node.0,
    )
    .fetch_one(&mut *conn)
    .await?;
    read(conn, node, (row.plan_revision, row.network, row.bridge), surroundings).await
}

/// The node's plan without a new revision, to compare the node with; none when it is not linked.
pub async fn current(
    conn: &mut PgConnection,
    node: NodeId,
    surroundings: &Surroundings,
) -> sqlx::Result<Option<NodePlan>> {
    let row = sqlx::query!("select plan_revision, network, bridge from nodes where id = $1", node.0)
        .fetch_optional(&mut *conn)
        .await?;
    match row {
        Some(row) => read(conn, node, (row.plan_revision, row.network, row.bridge), surroundings).await.map(Some),
        None => Ok(None),
    }
}

async fn read(
    conn: &mut PgConnection,
    node: NodeId,
    (revision, network, bridge): (i64, String, String),
    surroundings: &Surroundings,
) -> sqlx::Result<NodePlan> {
    let guests = sqlx::query!(
        "select name, ip as \"ip!\", mac as \"mac!\", ssh_port as \"ssh_port!\" from guests
         where node_id = $1 and routed and ip is not null and mac is not null and ssh_port is not null order by ssh_port",
        node.0,
    )
    .fetch_all(&mut *conn)
    .await?;
    let names = sqlx::query!(
        "select n.name, g.name as guest, g.ip as \"ip!\" from dns_names n join guests g on g.id = n.guest_id
         where g.node_id = $1 and n.routed and g.ip is not null order by n.name",
        node.0,
    )
    .fetch_all(&mut *conn)
    .await?;
    let (egress, zones) = surroundings::read(conn, surroundings).await?;
    // A guest that is being made has its port from whoever starts it, until it has a route.
    let (mut ssh_routes, mut ports) = (Vec::with_capacity(guests.len()), Vec::with_capacity(guests.len()));
    for guest in guests {
        let port = number::<u16>(guest.ssh_port)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        let (name, ip) = (word::<GuestName>(&guest.name)?, word(&guest.ip)?);
        ports.push(GuestPort { guest: name.clone(), ip, mac: word(&guest.mac)? });
        ssh_routes.push(SshRoute { guest: name, port, ip });
    }
    let mut http_routes = Vec::with_capacity(names.len());
    for name in names {
        http_routes.push(HttpRoute { name: word(&name.name)?, guest: word(&name.guest)?, ip: word(&name.ip)? });
    }
    Ok(NodePlan {
        revision,
        bridge,
        network: word(&network)?,
        ssh_routes,
        http_routes,
        firewall: Vec::new(),
        ports,
        egress,
        zones,
    })
}
