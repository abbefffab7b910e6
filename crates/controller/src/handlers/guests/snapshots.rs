//! Snapshots of guests: who takes one, brings one back, or deletes it.

use corpus_api::jobs::JobAccepted;
use corpus_api::snapshots::{
    ListSnapshots, MOST_SNAPSHOTS, RemoveSnapshot, RestoreSnapshot, SnapshotAccepted, Snapshots, TakeSnapshot,
};
use corpus_api::words::Label;
use corpus_api::{Denied, Operation, Write};
use corpus_domain::{GuestId, GuestState, SnapshotId, SnapshotState};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use uuid::Uuid;

use super::{is_settled, move_guest, row};
use crate::Controller;
use crate::sagas::{snapshot, snapshot_restore};
use crate::store::guests::{self, GuestRow};
use crate::store::snapshots;

impl Handle<ListSnapshots> for Controller {
    async fn handle(&self, permit: Permit<ListSnapshots>) -> Result<Snapshots> {
        let (id, who, project) = (permit.guest, permit.who(), Some(permit.project()?));
        let mut conn = permit.connection().await?;
        let guest = guests::get(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        Ok(Snapshots {
            guest: id,
            items: snapshots::of_guest(&mut conn, id).await?,
            most: MOST_SNAPSHOTS,
            at_once: guest.state == GuestState::Stopped || guest.backing.copies_at_once(),
            may_take: who.can::<TakeSnapshot>(project),
            may_change: who.can::<RestoreSnapshot>(project),
            name: guest.name,
        })
    }
}

impl Handle<TakeSnapshot> for Controller {
    async fn handle(&self, mut change: Change<TakeSnapshot>) -> Result<Committed<TakeSnapshot>> {
        let (asked, by) = (change.operation(), change.who().id);
        let guest = held(&mut change, asked.guest).await?;
        is_settled(&guest)?;
        let tx = change.transaction().await?;
        if snapshots::count(tx, guest.id).await? >= i64::from(MOST_SNAPSHOTS) {
            let message = format!("{} has {MOST_SNAPSHOTS} snapshots already: delete one first.", guest.name);
            return Err(Error::Conflict(message));
        }
        let id = SnapshotId(Uuid::now_v7());
        let comment = asked.comment.as_ref().map(Label::as_str);
        snapshots::insert(tx, (id, guest.id), comment, by).await?;
        let job = self.queue(&mut change, snapshot::take(&guest, id)).await?;
        let detail = json!({ "snapshot": id, "comment": asked.comment });
        let entry = Entry::new("snapshot.take", guest.name.as_str()).id(guest.id.0).detail(detail);
        change.commit(entry, SnapshotAccepted { snapshot: id, job }).await
    }
}

impl Handle<RestoreSnapshot> for Controller {
    async fn handle(&self, mut change: Change<RestoreSnapshot>) -> Result<Committed<RestoreSnapshot>> {
        let asked = change.operation();
        let guest = held(&mut change, asked.guest).await?;
        is_settled(&guest)?;
        use_it(&mut change, &guest, asked.snapshot, SnapshotState::Restoring).await?;
        if guest.state == GuestState::Running {
            move_guest(change.transaction().await?, &guest, &[GuestState::Running], GuestState::Starting).await?;
        }
        let job = self.queue(&mut change, snapshot_restore::job(&guest, asked.snapshot)).await?;
        let entry = Entry::new("snapshot.restore", guest.name.as_str()).id(guest.id.0);
        change.commit(entry.detail(json!({ "snapshot": asked.snapshot })), JobAccepted { job }).await
    }
}

impl Handle<RemoveSnapshot> for Controller {
    async fn handle(&self, mut change: Change<RemoveSnapshot>) -> Result<Committed<RemoveSnapshot>> {
        let asked = change.operation();
        let guest = held(&mut change, asked.guest).await?;
        use_it(&mut change, &guest, asked.snapshot, SnapshotState::Removing).await?;
        let job = self.queue(&mut change, snapshot::remove(&guest, asked.snapshot)).await?;
        let entry = Entry::new("snapshot.remove", guest.name.as_str()).id(guest.id.0);
        change.commit(entry.detail(json!({ "snapshot": asked.snapshot })), JobAccepted { job }).await
    }
}

/// The guest, which stays as it is read until the change is over.
async fn held<O: Operation<Kind = Write>>(change: &mut Change<O>, id: GuestId) -> Result<GuestRow> {
    guests::hold(change.transaction().await?, id).await?;
    row(change, id).await
}

/// Nobody else does anything with the snapshot from now on.
async fn use_it<O: Operation<Kind = Write>>(
    change: &mut Change<O>,
    guest: &GuestRow,
    id: SnapshotId,
    to: SnapshotState,
) -> Result<()> {
    let (of, tx) = ((id, guest.id), change.transaction().await?);
    if snapshots::set_state(tx, of, SnapshotState::Ready, to).await? {
        return Ok(());
    }
    let state = snapshots::state(tx, of).await?.ok_or(Denied::NotFound)?;
    Err(Error::Conflict(format!("A job is on this snapshot: it is {state}. Try again when that is done.")))
}
