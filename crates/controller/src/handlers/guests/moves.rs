//! Moving a guest to another node, asked for or because its node is emptied: which one it goes to, and what is noted before
//! the job begins.

use std::net::Ipv4Addr;

use corpus_api::Denied;
use corpus_api::guests::{GuestMoving, MoveGuest};
use corpus_domain::{Door, GuestId, GuestState, ImageName, Leaving, NodeId, Room};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;
use sqlx::PgConnection;

use super::request::no_node;
use super::{is_settled, row};
use crate::Controller;
use crate::job_errors::jobs_error;
use crate::sagas::other_place::Target;
use crate::sagas::{guest_evacuate, guest_move};
use crate::store::audit::{self, Author};
use crate::store::guests::{self, GuestRow};
use crate::store::nodes::Node;
use crate::store::{Transaction, images, leaving, moves, nodes, pointers, room};

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
            let Some(target) = set_out(change.transaction().await?, &guest, only).await? else {
                change.start_over().await?;
                continue;
            };
            let job = self.queue(&mut change, guest_move::job(&guest, &target)).await?;
            return change.commit(told(&guest, &target), GuestMoving { node: target.node.id, job }).await;
        }
        Err(Error::Conflict("Many guests are being placed at once. Try again.".to_owned()))
    }
}

/// Notes where the guest goes, where it is promised room from now on; none where others took that in between.
async fn set_out(tx: &mut PgConnection, guest: &GuestRow, only: Option<NodeId>) -> Result<Option<Target>> {
    is_settled(guest)?;
    let Some(node) = place(&mut *tx, guest, only).await? else { return Ok(None) };
    let image = image(&mut *tx, guest, node.id).await?;
    moves::begin(&mut *tx, guest, node.id, &image).await?;
    let has_image = images::is_on(&mut *tx, node.id, &image).await?;
    let pointed = pointed(tx, guest, &node).await?;
    Ok(Some(Target { node, has_image, pointed }))
}

/// The addresses whose reverse records go with the guest. It is given the one that it will have right now: the job has to
/// hold it from its beginning, or a guest of a third node that has it, too, would write and remove the same record.
async fn pointed(tx: &mut PgConnection, guest: &GuestRow, to: &Node) -> Result<Vec<Ipv4Addr>> {
    let (Some(from), Some(_)) = (guest.ip, pointers::of_guest(&mut *tx, guest.id).await?) else {
        return Ok(Vec::new());
    };
    let place = moves::choose(tx, guest.id, (to.id, to.network)).await?;
    let mut addresses: Vec<Ipv4Addr> = std::iter::once(from).chain(place.map(|place| place.ip)).collect();
    addresses.dedup();
    Ok(addresses)
}

fn told<'a>(guest: &'a GuestRow, target: &Target) -> Entry<'a> {
    let detail = json!({
        "from": guest.node_address, "to": target.node.address, "runs": guest.state == GuestState::Running
    });
    Entry::new("guest.move", guest.name.as_str()).id(guest.id.0).detail(detail)
}

impl Controller {
    /// Has a guest leave its node as that was asked for, if it is to and others don't take all room in between; or keeps
    /// why it can't.
    pub(crate) async fn have_leave(&self, guest: GuestId) -> Result<()> {
        for _ in 0..TRIES {
            let mut tx = self.services.begin().await?;
            // Another server may have, or somebody want it to stay.
            guests::hold(&mut tx, guest).await?;
            let Some((how, answers)) = leaving::hold(&mut tx, guest).await? else { return Ok(()) };
            let Some(row) = guests::get(&mut tx, guest).await? else { return Ok(()) };
            match self.send(&mut tx, &row, how, answers).await {
                Ok(true) => return Ok(tx.commit().await?),
                Ok(false) => {}
                Err(why @ (Error::Conflict(_) | Error::Field { .. } | Error::Fields(_))) => {
                    drop(tx);
                    let mut tx = self.services.begin().await?;
                    leaving::can_not(&mut tx, guest, &why.to_string()).await?;
                    return Ok(tx.commit().await?);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells whether it goes: others may have taken the room in between.
    async fn send(&self, tx: &mut Transaction, guest: &GuestRow, how: Leaving, answers: bool) -> Result<bool> {
        let (entry, job) = match how {
            Leaving::Move => {
                let Some(target) = set_out(tx, guest, None).await? else { return Ok(false) };
                let job = guest_move::job(guest, &target);
                (told(guest, &target), self.jobs.submit(tx, job).await)
            }
            // Before it is looked whether it has a backup: it may not be needed.
            Leaving::Backup if answers => {
                let message = format!("{} answers: have its guests moved.", guest.node_address);
                return Err(Error::Conflict(message));
            }
            Leaving::Backup => {
                let Some((backup, project)) = leaving::latest_backup(tx, guest.id).await? else {
                    return Err(Error::Conflict(format!("{} has no backup.", guest.name)));
                };
                let Some(target) = set_out(tx, guest, None).await? else { return Ok(false) };
                let job = guest_evacuate::job(guest, &target, backup, project);
                let detail = json!({
                    "from": guest.node_address, "to": target.node.address, "backup": backup.id, "of": backup.taken_at
                });
                let entry = Entry::new("guest.evacuate", guest.name.as_str()).id(guest.id.0).detail(detail);
                (entry, self.jobs.submit(tx, job).await)
            }
        };
        leaving::goes(tx, guest.id, job.map_err(jobs_error)?.id()).await?;
        let author = Author::new(None, "corpus", Door::Corpus);
        audit::write(tx, author, entry.of_project(guest.project_id)).await?;
        Ok(true)
    }
}

/// Where it goes, held until the change is over; none where others took the room in between.
async fn place(conn: &mut PgConnection, guest: &GuestRow, only: Option<NodeId>) -> Result<Option<Node>> {
    if only == Some(guest.node_id) {
        return Err(Error::field("node", format!("{} is on {} already.", guest.name, guest.node_address)));
    }
    if let Some(only) = only
        && leaving::is_left_at(&mut *conn, only, guest.id).await?
    {
        let message = format!("Files of {} were left behind there; have them removed first.", guest.name);
        return Err(Error::field("node", message));
    }
    room_for(conn, guest, only, Some(guest.node_id)).await
}

/// A node with room for another one like this guest, held until the change is over; none where others took that in between.
pub(super) async fn room_for(
    conn: &mut PgConnection,
    guest: &GuestRow,
    only: Option<NodeId>,
    besides: Option<NodeId>,
) -> Result<Option<Node>> {
    let needed = Room { storage: guest.storage, ..Room::of_guest(guest.limits, guest.backing, guest.size) };
    let wanted = room::Wanted {
        environment: guest.environment,
        only,
        besides,
        moved: besides.and(Some(guest.id)),
        needed,
        driver: guest.driver,
        backing: guest.backing,
    };
    let Some(id) = room::pick(&mut *conn, wanted).await? else {
        let mut others = nodes::list(&mut *conn, only).await?;
        others.retain(|node| Some(node.id) != besides);
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
pub(super) async fn image(conn: &mut PgConnection, guest: &GuestRow, to: NodeId) -> Result<ImageName> {
    if images::is_on(&mut *conn, to, &guest.image).await? {
        return Ok(guest.image.clone());
    }
    let name = images::labelled(&mut *conn, &guest.image).await?.map(|version| version.name);
    let newest = images::newest(&mut *conn, name.as_ref().unwrap_or(&guest.image)).await?;
    Ok(newest.map_or_else(|| guest.image.clone(), |version| version.label))
}
