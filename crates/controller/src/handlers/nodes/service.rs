//! Taking a node out of service for further guests, and back; rebooting it.

use corpus_api::jobs::JobAccepted;
use corpus_api::node_service::{DrainNode, RebootNode, ResumeNode};
use corpus_api::nodes::NodeChanged;
use corpus_domain::NodeState;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;

use super::{held, move_node};
use crate::Controller;
use crate::sagas::node_reboot;
use crate::store::leaving;

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
        let tx = change.transaction().await?;
        // Those that have not begun to leave stay, too; what may run there twice does not get company.
        leaving::keep(tx, node.id).await?;
        if leaving::may_run_at(tx, node.id).await? {
            return Err(Error::Conflict(format!(
                "{} has guests that went on elsewhere and are not known to be stopped there. They are when it answers.",
                node.address
            )));
        }
        move_node(tx, &node, &[NodeState::Draining], NodeState::Ready).await?;
        let subject = node.address.to_string();
        change.commit(Entry::new("node.resume", &subject).id(node.id.0), NodeChanged { node: node.id }).await
    }
}

impl Handle<RebootNode> for Controller {
    async fn handle(&self, mut change: Change<RebootNode>) -> Result<Committed<RebootNode>> {
        let id = change.node;
        let node = held(&mut change, id).await?;
        if !matches!(node.state, NodeState::Ready | NodeState::Draining) {
            return Err(Error::Conflict(format!(
                "{} is {} now; only a node in service can be rebooted.",
                node.address, node.state
            )));
        }
        let job = self.queue(&mut change, node_reboot::job(&node)).await?;
        let subject = node.address.to_string();
        let entry = Entry::new("node.reboot", &subject).id(node.id.0).detail(json!({ "guests": node.guests }));
        change.commit(entry, JobAccepted { job }).await
    }
}
