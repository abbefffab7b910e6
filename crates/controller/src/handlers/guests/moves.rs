//! Moving a guest to another node: which one, and what is noted before the job begins.

use corpus_api::Denied;
use corpus_api::guests::{GuestMoving, MoveGuest};
use corpus_domain::{GuestState, ImageName, NodeId, Room};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;
use sqlx::PgConnection;

use super::request::no_node;
use super::{is_settled, row};
use crate::Controller;
use crate::sagas::guest_move;
use crate::store::guests::GuestRow;
use crate::store::nodes::Node;
use crate::store::{images, moves, nodes, pointers, room};

/// How often a node is chosen anew when others take its room meanwhile.
const TRIES: usize = 5;

impl Handle<MoveGuest> for Controller {
    async fn handle(&self, mut change: Change<MoveGuest>) -> Result<Committed<MoveGuest>> {
        let (id, only) = (change.guest, change.node);
        for _ in 0..TRIES {
            let guest = row(&mut change, id).await?;
            // Its root is root on its node: which nodes these are is for operators to say, as when it was requested.
            if guest.privileged.is_some() && !change.who().ops {
                return Err(Denied::Forbidden.into());
            }
            is_settled(&guest)?;
            let Some(to) = place(change.transaction().await?, &guest, only).await? else {
                change.start_over().await?;
                continue;
            };
            let tx = change.transaction().await?;
            if let Some(pointed) = pointers::of_guest(tx, id).await? {
                let message = format!(
                    "The address of {} points back to {}. Let it point to no name first: it may have another address there.",
                    guest.name, pointed.name
                );
                return Err(Error::Conflict(message));
            }
            let image = image(tx, &guest, to.id).await?;
            moves::begin(tx, &guest, to.id, &image).await?;
            let has_image = images::is_on(tx, to.id, &image).await?;
            let job = self.queue(&mut change, guest_move::job(&guest, &to, has_image)).await?;
            let entry = Entry::new("guest.move", guest.name.as_str()).id(id.0);
            let detail =
                json!({ "from": guest.node_address, "to": to.address, "runs": guest.state == GuestState::Running });
            return change.commit(entry.detail(detail), GuestMoving { node: to.id, job }).await;
        }
        Err(Error::Conflict("Many guests are being placed at once. Try again.".to_owned()))
    }
}

/// Where it goes, held until the change is over; none where others took the room in between.
async fn place(conn: &mut PgConnection, guest: &GuestRow, only: Option<NodeId>) -> Result<Option<Node>> {
    if only == Some(guest.node_id) {
        return Err(Error::field("node", format!("{} is on {} already.", guest.name, guest.node_address)));
    }
    let needed = Room { storage: guest.storage, ..Room::of_guest(guest.limits, guest.backing, guest.size) };
    let wanted = room::Wanted {
        environment: guest.environment,
        only,
        besides: Some(guest.node_id),
        needed,
        driver: guest.driver,
        backing: guest.backing,
    };
    let Some(id) = room::pick(&mut *conn, wanted).await? else {
        let mut others = nodes::list(&mut *conn, only).await?;
        others.retain(|node| node.id != guest.node_id);
        return Err(no_node(&others, wanted));
    };
    nodes::lock(&mut *conn, id).await?;
    if room::pick(&mut *conn, room::Wanted { only: Some(id), ..wanted }).await?.is_none() {
        return Ok(None);
    }
    let node = nodes::get(&mut *conn, id).await?.ok_or(Denied::NotFound)?;
    Ok(Some(node))
}

/// What it is a clone of there: the same if the node has it, or the newest version, since all its files are brought.
async fn image(conn: &mut PgConnection, guest: &GuestRow, to: NodeId) -> Result<ImageName> {
    if images::is_on(&mut *conn, to, &guest.image).await? {
        return Ok(guest.image.clone());
    }
    let name = images::labelled(&mut *conn, &guest.image).await?.map(|version| version.name);
    let newest = images::newest(&mut *conn, name.as_ref().unwrap_or(&guest.image)).await?;
    Ok(newest.map_or_else(|| guest.image.clone(), |version| version.label))
}
