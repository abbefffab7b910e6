//! How much a guest may take of its node: its limits, and its storage.
//!
//! What it gets more is promised to it with the request, and counted in its project's quota from then on.

use corpus_api::guests::{EnlargeGuest, SetGuestLimits, ShrinkGuest};
use corpus_api::jobs::JobAccepted;
use corpus_api::{Denied, Version};
use corpus_domain::{GuestId, JobKind, Limits, QuotaOf, Room, SizeProfile, processors};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::is_settled;
use crate::quotas::More;
use crate::sagas::{guest_enlarge, guest_limit, guest_shrink};
use crate::store::guests::{self, GuestRow};
use crate::store::nodes;
use crate::store::nodes::Node;
use crate::store::{guest_storage, snapshots};
use crate::{Controller, changed, quotas, store};

impl Handle<EnlargeGuest> for Controller {
    async fn handle(&self, mut change: Change<EnlargeGuest>) -> Result<Committed<EnlargeGuest>> {
        let (id, size, who) = (change.guest, change.size, change.who());
        let tx = change.transaction().await?;
        let (guest, node) = hold(tx, id).await?;
        require_size(tx, &guest).await?;
        enlargeable(&guest, &node, size)?;
        if guests::is_being(tx, id, JobKind::GuestEnlarge).await? {
            let message = format!("{} is just being enlarged. Try again when that is done.", guest.name);
            return Err(Error::Conflict(message));
        }
        let room = Room { storage: guest.storage_more(size), ..Room::default() };
        let more = More { room, ..More::default() };
        quotas::refuse(&quotas::now(tx, guest.project_id, more).await?, who.ops, |_| "size")?;
        guests::promise_storage(tx, id, size).await?;
        let job = self.queue(&mut change, guest_enlarge::job(&guest, size)).await?;
        let entry = Entry::new("guest.enlarge", guest.name.as_str()).id(id.0);
        let detail = json!({ "from": guest.size, "to": size });
        change.commit(entry.detail(detail), JobAccepted { job }).await
    }
}

impl Handle<ShrinkGuest> for Controller {
    async fn handle(&self, mut change: Change<ShrinkGuest>) -> Result<Committed<ShrinkGuest>> {
        let (id, size) = (change.guest, change.size);
        let tx = change.transaction().await?;
        let (guest, _) = hold(tx, id).await?;
        require_size(tx, &guest).await?;
        shrinkable(&guest, size)?;
        for kind in [JobKind::GuestEnlarge, JobKind::GuestShrink] {
            if guests::is_being(tx, id, kind).await? {
                let message = format!("{} is just being resized. Try again when that is done.", guest.name);
                return Err(Error::Conflict(message));
            }
        }
        if snapshots::count(tx, id).await? > 0 {
            let message = format!(
                "{} has snapshots, which would be brought back with the storage that it had: delete them first.",
                guest.name
            );
            return Err(Error::Conflict(message));
        }
        if let Some(storage) = guest_storage::of_guest(tx, id).await?.filter(|has| has.used > size.storage()) {
            let message = format!("There are {} in it, which do not fit: choose a larger size.", storage.used.gb());
            return Err(Error::field("size", message));
        }
        let job = self.queue(&mut change, guest_shrink::job(&guest, size)).await?;
        let entry = Entry::new("guest.shrink", guest.name.as_str()).id(id.0);
        change.commit(entry.detail(json!({ "from": guest.size, "to": size })), JobAccepted { job }).await
    }
}

impl Handle<SetGuestLimits> for Controller {
    async fn handle(&self, mut change: Change<SetGuestLimits>) -> Result<Committed<SetGuestLimits>> {
        let (id, chosen) = (change.guest, change.limits());
        let (guest, node) = hold(change.transaction().await?, id).await?;
        let to = chosen.over(guest.limits);
        is_settled(&guest)?;
        if to == guest.limits {
            return Err(Error::field("memory", "These are its limits already: change one of them."));
        }
        if guests::is_being(change.transaction().await?, id, JobKind::GuestLimit).await? {
            let message = format!("The limits of {} are just being changed. Try again when that is done.", guest.name);
            return Err(Error::Conflict(message));
        }
        if change.version != Version::of(&guest.limits) {
            return Err(changed::by_others(change.transaction().await?, "guest.limit", id.0, limited).await);
        }
        let most = guest.limits.most(to);
        promisable(&guest, &node, most)?;
        let more = More { room: more(&guest, most), ..More::default() };
        let (who, tx) = (change.who(), change.transaction().await?);
        quotas::refuse(&quotas::now(tx, guest.project_id, more).await?, who.ops, QuotaOf::as_str)?;
        guests::set_limits(tx, id, most).await?;
        let job = self.queue(&mut change, guest_limit::job(&guest, to)).await?;
        let entry = Entry::new("guest.limit", guest.name.as_str()).id(id.0);
        let detail = json!({ "from": guest.limits, "to": to });
        change.commit(entry.detail(detail), JobAccepted { job }).await
    }
}

/// What a change of them was.
fn limited(detail: &Value) -> Option<String> {
    let (was, is): (Limits, Limits) = (changed::read(detail, "from")?, changed::read(detail, "to")?);
    changed::parts([
        ("memory", was.memory.to_string(), is.memory.to_string()),
        ("CPU", was.cpu.to_string(), is.cpu.to_string()),
        ("processes", was.processes.to_string(), is.processes.to_string()),
        ("I/O weight", was.io_weight.to_string(), is.io_weight.to_string()),
    ])
}

/// The guest and its node, which stay as they are read until the change is over; what its project takes is held too.
pub(super) async fn hold(conn: &mut PgConnection, id: GuestId) -> Result<(GuestRow, Node)> {
    let before = guests::get(conn, id).await?.ok_or(Denied::NotFound)?;
    store::quotas::hold(conn, before.project_id).await?;
    nodes::lock(conn, before.node_id).await?;
    guests::hold(conn, id).await?;
    let guest = guests::get(conn, id).await?.ok_or(Denied::NotFound)?;
    let node = nodes::get(conn, guest.node_id).await?.ok_or(Denied::NotFound)?;
    Ok((guest, node))
}

/// What the guest gets more by these limits.
fn more(guest: &GuestRow, most: Limits) -> Room {
    let room = |limits| Room::of_guest(limits, guest.backing, guest.size);
    room(most).without(room(guest.limits))
}

/// What the guest gets more must be free on its node; what it gets less needs no room.
fn promisable(guest: &GuestRow, node: &Node, most: Limits) -> Result<()> {
    let more = more(guest, most);
    let Some(free) = node.free() else { return Ok(()) };
    let refused = |field, has: String, needed: String| {
        let message = format!("{} has {has} free, and {needed} more are needed. Choose less.", node.address);
        Err(Error::field(field, message))
    };
    if more.memory > free.memory {
        return refused("memory", free.memory.gib(), more.memory.gib());
    }
    if more.cpu_millis > free.cpu_millis {
        return refused("cpu", processors(free.cpu_millis), processors(more.cpu_millis));
    }
    Ok(())
}

async fn require_size(conn: &mut PgConnection, guest: &GuestRow) -> Result<()> {
    if guest_storage::is_held(conn, guest).await? {
        return Ok(());
    }
    let (name, backing) = (&guest.name, guest.backing);
    Err(Error::Conflict(format!("{name} is on {backing}, which fills its node's disk: it has no size to change.")))
}

fn shrinkable(guest: &GuestRow, size: SizeProfile) -> Result<()> {
    is_settled(guest)?;
    if guest.size.smaller_than().any(|smaller| smaller == size) {
        return Ok(());
    }
    Err(Error::field("size", format!("It has {}: choose a smaller size, or enlarge it.", guest.size)))
}

fn enlargeable(guest: &GuestRow, node: &Node, size: SizeProfile) -> Result<()> {
    is_settled(guest)?;
    if !guest.size.larger_than().any(|larger| larger == size) {
        let message = format!("It has {} already: choose a larger size, or shrink it.", guest.size);
        return Err(Error::field("size", message));
    }
    guest.storage_free(node, size).map_err(|why| Error::field("size", format!("{why}. Choose a smaller size.")))
}
