//! Taking a node out of service for further guests, and back.

use corpus_api::node_service::{DrainNode, ResumeNode};
use corpus_api::nodes::NodeChanged;
use corpus_domain::NodeState;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Handle, Result};

use super::{held, move_node};
use crate::Controller;

impl Handle<DrainNode> for Controller {
    async fn handle(&self, mut change: Change<DrainNode>) -> Result<Committed<DrainNode>> {
        let id = change.node;
        let node = held(&mut change, id).await?;
        move_node(change.transaction().await?, &node, &[NodeState::Ready], NodeState::Draining).await?;
        let subject = node.address.to_string();
        change.commit(Entry::new("node.drain", &subject).id(node.id.0), NodeChanged { node: node.id }).await
    }
}

impl Handle<ResumeNode> for Controller {
    async fn handle(&self, mut change: Change<ResumeNode>) -> Result<Committed<ResumeNode>> {
        let id = change.node;
        let node = held(&mut change, id).await?;
        move_node(change.transaction().await?, &node, &[NodeState::Draining], NodeState::Ready).await?;
        let subject = node.address.to_string();
        change.commit(Entry::new("node.resume", &subject).id(node.id.0), NodeChanged { node: node.id }).await
    }
}
