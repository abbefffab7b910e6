//! What nodes are reached through that do not answer from here.
//!
//! Where a node or a guest is read that is entered, its gateway is read with it: as JSON, by [`read`], so that this file
//! alone knows what there is of one. The key for it is kept nowhere: it is made from the controller's own.

use corpus_domain::{NodeAddress, NodeId, UnixUser};
use serde::Deserialize;
use serde_json::Value;
use sqlx::PgConnection;

use super::{json, word};
use crate::nodes::{Gateway, HostKey};

#[derive(Deserialize)]
struct Row {
    address: NodeAddress,
    ssh_port: u16,
    ssh_user: UnixUser,
    host_key: String,
    serves: String,
}

/// The gateway of a row whose query selects `(select to_jsonb(w) from node_gateways w where w.node_id = …)`.
pub(super) fn read(row: Option<Value>) -> sqlx::Result<Option<Box<Gateway>>> {
    let Some(row) = row else { return Ok(None) };
    let Row { address, ssh_port, ssh_user, host_key, serves } = json(row)?;
    let pinned_host_key = word(&host_key)?;
    Ok(Some(Box::new(Gateway { address, port: ssh_port, user: ssh_user, pinned_host_key, serves })))
}

/// Keeps the gateway of a node that is being linked.
pub async fn insert(conn: &mut PgConnection, node: NodeId, gateway: &Gateway) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into node_gateways (node_id, address, ssh_port, ssh_user, host_key, serves)
         values ($1, $2, $3, $4, $5, $6)",
        node.0,
        gateway.address.to_string(),
        i32::from(gateway.port),
        gateway.user.as_str(),
        gateway.pinned_host_key.to_string(),
        gateway.serves,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Pins another host key of the gateway, after a person confirmed it; tells whether the node has one.
pub async fn set_host_key(conn: &mut PgConnection, node: NodeId, host_key: &HostKey) -> sqlx::Result<bool> {
    let host_key = host_key.to_string();
    let set = sqlx::query!("update node_gateways set host_key = $2 where node_id = $1", node.0, host_key);
    set.execute(conn).await.map(|done| done.rows_affected() == 1)
}
