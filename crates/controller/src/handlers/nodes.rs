//! Compute nodes as members see them, and what operators do with them.

mod leaving;
mod link;
mod proposals;
mod service;
mod shown;

use corpus_api::jobs::JobAccepted;
use corpus_api::nodes::{
    GetNode, GetNodeName, GetOvercommit, InitializeNode, ListNodes, NameNode, Node, NodeNamed, NodeOvercommit,
    NodePage, NodeSort, RepairNode, SetOvercommit, UnlinkNode,
};
use corpus_api::{Cursor, Denied, Operation, Write};
use corpus_domain::{NodeId, NodeState, Overcommit};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgTransaction;

use super::{after, lines, page};
use crate::changed::read;
use crate::sagas::{node_initialize, node_repair, node_unlink};
use crate::store::{drift, node_dns_names, nodes};
use crate::{Controller, changed};

/// The lists, for their cursors.
const fn list(sort: Option<NodeSort>) -> &'static str {
    match sort {
        None | Some(NodeSort::Address) => "nodes by address",
        Some(NodeSort::FreeSlots) => "nodes by free slots",
    }
}

impl Handle<ListNodes> for Controller {
    async fn handle(&self, permit: Permit<ListNodes>) -> Result<NodePage> {
        let ((limit, rows), list) = (lines(permit.limit), list(permit.sort));
        let from = after(permit.cursor.as_ref(), list)?;
        let visible = permit.visible();
        let mut conn = permit.connection().await?;
        let found = nodes::lines(&mut conn, &permit, visible.as_deref(), from, rows).await?;
        let place = |one: &nodes::Line| Cursor::after(list, &(one.rank, &one.line.address, one.ssh_port));
        let (found, next) = page(found, limit, place);
        Ok(NodePage { items: found.into_iter().map(|one| one.line).collect(), next })
    }
}

impl Handle<GetNode> for Controller {
    async fn handle(&self, permit: Permit<GetNode>) -> Result<Node> {
        let (id, visible) = (permit.node, permit.visible());
        let mut conn = permit.connection().await?;
        let line = nodes::line(&mut conn, id, visible.as_deref()).await?.ok_or(Denied::NotFound)?;
        let mut row = nodes::get(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        if visible.is_some() {
            shown::tell_less(&mut row);
        }
        let guests = drift::guests_named(&mut conn, id, &row.drift).await?;
        let dns_name = node_dns_names::get(&mut conn, id).await?.map(|(name, _)| name);
        Ok(Node { dns_name, ..shown::whole(line, row, &guests) })
    }
}

impl Handle<GetOvercommit> for Controller {
    async fn handle(&self, permit: Permit<GetOvercommit>) -> Result<NodeOvercommit> {
        let found = nodes::overcommit(&mut *permit.connection().await?, permit.node).await?;
        Ok(NodeOvercommit::of(found.ok_or(Denied::NotFound)?))
    }
}

impl Handle<SetOvercommit> for Controller {
    async fn handle(&self, mut change: Change<SetOvercommit>) -> Result<Committed<SetOvercommit>> {
        let asked = change.operation();
        let to = Overcommit { memory: asked.memory, cpu: asked.cpu, storage: asked.storage };
        let node = held(&mut change, asked.node).await?;
        if NodeOvercommit::of(node.overcommit).version != asked.version {
            let tx = change.transaction().await?;
            return Err(changed::by_others(tx, "node.overcommit", node.id.0, overcommitted).await);
        }
        nodes::set_overcommit(change.transaction().await?, node.id, to).await?;
        let detail = json!({ "from": node.overcommit, "to": to });
        let subject = node.address.to_string();
        let entry = Entry::new("node.overcommit", &subject).id(node.id.0).detail(detail);
        change.commit(entry, NodeOvercommit::of(to)).await
    }
}

impl Handle<InitializeNode> for Controller {
    async fn handle(&self, mut change: Change<InitializeNode>) -> Result<Committed<InitializeNode>> {
        let id = change.node;
        let node = held(&mut change, id).await?;
        let from = [NodeState::Linked, NodeState::Ready, NodeState::Failed];
        move_node(change.transaction().await?, &node, &from, NodeState::Initializing).await?;
        let job = self.queue(&mut change, node_initialize::job(&node)).await?;
        let subject = node.address.to_string();
        change.commit(Entry::new("node.initialize", &subject).id(node.id.0), JobAccepted { job }).await
    }
}

impl Handle<RepairNode> for Controller {
    async fn handle(&self, mut change: Change<RepairNode>) -> Result<Committed<RepairNode>> {
        let id = change.node;
        let node = held(&mut change, id).await?;
        if !matches!(node.state, NodeState::Ready | NodeState::Draining) {
            return Err(Error::Conflict(format!(
                "{} is {} now; only a node in service can be repaired. Initialize it.",
                node.address, node.state
            )));
        }
        let job = self.queue(&mut change, node_repair::job(&node)).await?;
        let found: Vec<&str> = node.drift.iter().map(|one| one.text.as_str()).collect();
        let subject = node.address.to_string();
        let entry = Entry::new("node.repair", &subject).id(node.id.0).detail(json!({ "found": found }));
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Handle<UnlinkNode> for Controller {
    async fn handle(&self, mut change: Change<UnlinkNode>) -> Result<Committed<UnlinkNode>> {
        let asked = change.operation();
        let node = held(&mut change, asked.node).await?;
        if node.guests > 0 {
            let (address, guests) = (&node.address, node.guests);
            return Err(Error::Conflict(format!("{address} still has {guests} guests; destroy them first.")));
        }
        let own = node_dns_names::get(change.transaction().await?, node.id).await?.filter(|_| !asked.force);
        if let Some((name, _)) = own {
            return Err(Error::Conflict(format!("{} has the DNS name {name}; take it away first.", node.address)));
        }
        let from = [NodeState::Linked, NodeState::Ready, NodeState::Draining, NodeState::Failed];
        move_node(change.transaction().await?, &node, &from, NodeState::Unlinking).await?;
        let job = self.queue(&mut change, node_unlink::job(&node, asked.force)).await?;
        let subject = node.address.to_string();
        let entry = Entry::new("node.unlink", &subject).id(node.id.0).detail(json!({ "force": asked.force }));
        change.commit(entry, JobAccepted { job }).await
    }
}

/// What a change of the overcommit was.
fn overcommitted(detail: &Value) -> Option<String> {
    let (was, is): (Overcommit, Overcommit) = (read(detail, "from")?, read(detail, "to")?);
    let parts = [("memory", was.memory, is.memory), ("CPU", was.cpu, is.cpu), ("storage", was.storage, is.storage)];
    changed::parts(parts)
}

impl Handle<GetNodeName> for Controller {
    async fn handle(&self, permit: Permit<GetNodeName>) -> Result<NodeNamed> {
        let id = permit.node;
        let name = nodes::name(&mut *permit.connection().await?, id).await?;
        Ok(NodeNamed::of(id, name))
    }
}

impl Handle<NameNode> for Controller {
    async fn handle(&self, mut change: Change<NameNode>) -> Result<Committed<NameNode>> {
        let asked = change.operation();
        let node = held(&mut change, asked.node).await?;
        let was = NodeNamed::of(node.id, nodes::name(change.transaction().await?, node.id).await?);
        if was.version != asked.version {
            let tx = change.transaction().await?;
            return Err(changed::by_others(tx, "node.name", node.id.0, renamed).await);
        }
        let named = nodes::set_name(change.transaction().await?, node.id, asked.name.as_ref()).await;
        named.map_err(|error| Error::taken(error, "name", "Another node is called so; take another name."))?;
        let subject = node.address.to_string();
        let entry =
            Entry::new("node.name", &subject).id(node.id.0).detail(json!({ "from": was.name, "name": asked.name }));
        change.commit(entry, NodeNamed::of(node.id, asked.name.clone())).await
    }
}

/// What a change of a node's name was.
fn renamed(detail: &Value) -> Option<String> {
    let name = |of: &str| detail.get(of).and_then(Value::as_str).unwrap_or("none").to_owned();
    changed::parts([("the name", name("from"), name("name"))])
}

/// The node, its row held until the change ends.
pub(super) async fn held<O: Operation<Kind = Write>>(change: &mut Change<O>, id: NodeId) -> Result<nodes::Node> {
    let tx = change.transaction().await?;
    nodes::lock(tx, id).await?;
    Ok(nodes::get(tx, id).await?.ok_or(Denied::NotFound)?)
}

async fn move_node(tx: &mut PgTransaction<'_>, node: &nodes::Node, from: &[NodeState], to: NodeState) -> Result<()> {
    if nodes::set_state(tx, node.id, from, to, None).await? {
        return Ok(());
    }
    Err(Error::Conflict(format!("{} is {} now; this can't be done in that state.", node.address, node.state)))
}

#[cfg(test)]
mod tests;
