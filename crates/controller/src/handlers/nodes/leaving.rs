//! Emptying a node: what is asked for its guests, and what a lost one has of those that went on elsewhere.

use corpus_api::leaving::{
    AllLeftBehind, EmptyNode, KeepGuests, LeavingGuests, ListLeaving, ListLeftBehind, RemoveLeftBehind,
};
use corpus_api::nodes::NodeChanged;
use corpus_api::{Cursor, Denied};
use corpus_domain::{Leaving, NodeState, Reachability};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use super::super::pointers::lost_at;
use super::super::{after, lines, page};
use super::{held, move_node};
use crate::Controller;
use crate::store::leaving;

/// What cursors are for.
const LEAVING: &str = "leaving guests";
const LEFT: &str = "left behind";

impl Handle<EmptyNode> for Controller {
    async fn handle(&self, mut change: Change<EmptyNode>) -> Result<Committed<EmptyNode>> {
        let asked = change.operation();
        let node = held(&mut change, asked.node).await?;
        if asked.how == Leaving::Backup {
            if node.reachability == Reachability::Reachable {
                return Err(Error::Conflict(format!("{} answers: have its guests moved.", node.address)));
            }
            if !asked.off {
                let message = "Make sure that it is off first: what runs there still would be there twice.";
                return Err(Error::field("off", message.to_owned()));
            }
        }
        let tx = change.transaction().await?;
        if node.state != NodeState::Draining {
            move_node(tx, &node, &[NodeState::Ready], NodeState::Draining).await?;
        }
        let guests = leaving::ask(tx, node.id, asked.how).await?;
        let subject = node.address.to_string();
        let entry =
            Entry::new("node.empty", &subject).id(node.id.0).detail(json!({ "how": asked.how, "guests": guests }));
        change.commit(entry, NodeChanged { node: node.id }).await
    }
}

impl Handle<KeepGuests> for Controller {
    async fn handle(&self, mut change: Change<KeepGuests>) -> Result<Committed<KeepGuests>> {
        let id = change.node;
        let node = held(&mut change, id).await?;
        let guests = leaving::keep(change.transaction().await?, node.id).await?;
        let subject = node.address.to_string();
        let entry = Entry::new("node.keep", &subject).id(node.id.0).detail(json!({ "guests": guests }));
        change.commit(entry, NodeChanged { node: node.id }).await
    }
}

impl Handle<ListLeaving> for Controller {
    async fn handle(&self, permit: Permit<ListLeaving>) -> Result<LeavingGuests> {
        let (limit, rows) = lines(permit.limit);
        let beyond = after(permit.cursor.as_ref(), LEAVING)?;
        let mut conn = permit.connection().await?;
        let (found, all) = leaving::page(&mut conn, permit.node, beyond, rows).await?;
        let lost_at = if all.pointed > 0 { lost_at(&mut conn, permit.node, None).await? } else { Vec::new() };
        let (found, next) = page(found, limit, |(position, _)| Cursor::after(LEAVING, position));
        Ok(LeavingGuests { items: found.into_iter().map(|(_, one)| one).collect(), lost_at, next, ..all })
    }
}

impl Handle<ListLeftBehind> for Controller {
    async fn handle(&self, permit: Permit<ListLeftBehind>) -> Result<AllLeftBehind> {
        let (limit, rows) = lines(permit.limit);
        let beyond = after(permit.cursor.as_ref(), LEFT)?;
        let mut conn = permit.connection().await?;
        let found = leaving::left_behind(&mut conn, permit.node, beyond, rows).await?;
        let (items, next) = page(found, limit, |one| Cursor::after(LEFT, &(&one.name, one.guest)));
        Ok(AllLeftBehind { items, next })
    }
}

impl Handle<RemoveLeftBehind> for Controller {
    async fn handle(&self, mut change: Change<RemoveLeftBehind>) -> Result<Committed<RemoveLeftBehind>> {
        let asked = change.operation();
        let node = held(&mut change, asked.node).await?;
        let removing = leaving::remove(change.transaction().await?, node.id, asked.guest).await?;
        let name = removing.ok_or(Denied::NotFound)?;
        let entry = Entry::new("node.left-behind.remove", name.as_str()).id(asked.guest.0);
        change.commit(entry.detail(json!({ "node": node.address })), NodeChanged { node: node.id }).await
    }
}
