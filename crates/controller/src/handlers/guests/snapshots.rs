//! Snapshots of guests: who takes one, brings one back, or deletes it.

use corpus_api::jobs::JobAccepted;
use corpus_api::snapshots::{
    GetSnapshotSchedule, ListSnapshots, MOST_SNAPSHOTS, RemoveSnapshot, RestoreSnapshot, SetSnapshotSchedule,
    SnapshotAccepted, SnapshotSchedule, Snapshots, TakeSnapshot,
};
use corpus_api::words::Label;
use corpus_api::{Denied, Operation, Write};
use corpus_domain::{Door, GuestId, GuestState, Room, SnapshotEvery, SnapshotId, SnapshotState};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{is_settled, limits, move_guest, row};
use crate::job_errors::jobs_error;
use crate::quotas::More;
use crate::sagas::{snapshot, snapshot_restore};
use crate::store::audit::{self, Author};
use crate::store::guests::{self, GuestRow};
use crate::store::nodes::Node;
use crate::store::snapshots::What;
use crate::store::{snapshot_schedules, snapshots};
use crate::{Controller, changed, quotas};

impl Handle<ListSnapshots> for Controller {
    async fn handle(&self, permit: Permit<ListSnapshots>) -> Result<Snapshots> {
        let (id, who, project) = (permit.guest, permit.who(), Some(permit.project()?));
        let mut conn = permit.connection().await?;
        let guest = guests::get(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        Ok(Snapshots {
            guest: id,
            project: guest.project,
            environment: guest.environment,
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
        let (asked, who) = (change.operation(), change.who());
        let tx = change.transaction().await?;
        let held = limits::hold(tx, asked.guest).await?;
        let comment = asked.comment.as_ref().map(Label::as_str);
        let id = note(tx, &held, What::Asked(comment, who.id), who.ops).await?;
        let (guest, _) = held;
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

impl Handle<GetSnapshotSchedule> for Controller {
    async fn handle(&self, permit: Permit<GetSnapshotSchedule>) -> Result<SnapshotSchedule> {
        Ok(snapshot_schedules::of_guest(&mut *permit.connection().await?, permit.guest).await?)
    }
}

impl Handle<SetSnapshotSchedule> for Controller {
    async fn handle(&self, mut change: Change<SetSnapshotSchedule>) -> Result<Committed<SetSnapshotSchedule>> {
        let asked = change.operation();
        let guest = held(&mut change, asked.guest).await?;
        let tx = change.transaction().await?;
        let was = snapshot_schedules::of_guest(tx, guest.id).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "snapshot.schedule", guest.id.0, told).await);
        }
        snapshot_schedules::set(tx, guest.id, (asked.every, asked.keep), asked.deployments).await?;
        let now = snapshot_schedules::of_guest(tx, guest.id).await?;
        if now.version == was.version {
            return change.unchanged(now).await;
        }
        let what =
            |one: &SnapshotSchedule| json!({ "every": one.every, "keep": one.keep, "deployments": one.deployments });
        let entry = Entry::new("snapshot.schedule", guest.name.as_str()).id(guest.id.0);
        change.commit(entry.detail(json!({ "from": what(&was), "to": what(&now) })), now).await
    }
}

/// What a change of a schedule was, from what the audit tells of it.
fn told(detail: &Value) -> Option<String> {
    let (from, to) = (changed::read::<Value>(detail, "from")?, changed::read::<Value>(detail, "to")?);
    let every = |one| changed::read::<SnapshotEvery>(one, "every");
    let keep = |one| changed::read::<u64>(one, "keep");
    let deployments = |one| changed::read::<u64>(one, "deployments").map_or("none".to_owned(), |kept| kept.to_string());
    changed::parts([
        ("every", every(&from)?.to_string(), every(&to)?.to_string()),
        ("keep", keep(&from)?.to_string(), keep(&to)?.to_string()),
        ("before deployments", deployments(&from), deployments(&to)),
    ])
}

impl Controller {
    /// Takes the snapshot that is due of a guest, in the name of nobody; or keeps why none is taken.
    pub(crate) async fn take_scheduled(&self, guest: GuestId) -> Result<()> {
        let mut tx = self.services.begin().await?;
        // Another server may have, or somebody have changed it.
        let held = limits::hold(&mut tx, guest).await?;
        if !snapshot_schedules::hold_due(&mut tx, guest).await? {
            return Ok(());
        }
        match note(&mut tx, &held, What::Scheduled, false).await {
            Ok(id) => {
                let (guest, _) = held;
                snapshot_schedules::taken(&mut tx, guest.id).await?;
                let job = self.jobs.submit(&mut tx, snapshot::take(&guest, id)).await.map_err(jobs_error)?.id();
                self.noted_by_itself(&mut tx, "snapshot.take", &guest, json!({ "snapshot": id, "job": job })).await?;
            }
            Err(why @ (Error::Conflict(_) | Error::Field { .. } | Error::Fields(_))) => {
                snapshot_schedules::not_taken(&mut tx, guest, &why.to_string()).await?;
            }
            Err(error) => return Err(error),
        }
        Ok(tx.commit().await?)
    }

    /// Deletes a snapshot that is more than the schedule keeps, unless somebody does something with it.
    pub(crate) async fn remove_scheduled(&self, guest: GuestId, id: SnapshotId) -> Result<()> {
        let mut tx = self.services.begin().await?;
        guests::hold(&mut tx, guest).await?;
        let Some(guest) = guests::get(&mut tx, guest).await? else { return Ok(()) };
        if !snapshots::set_state(&mut tx, (id, guest.id), SnapshotState::Ready, SnapshotState::Removing).await? {
            return Ok(());
        }
        let job = self.jobs.submit(&mut tx, snapshot::remove(&guest, id)).await.map_err(jobs_error)?.id();
        self.noted_by_itself(&mut tx, "snapshot.remove", &guest, json!({ "snapshot": id, "job": job })).await?;
        Ok(tx.commit().await?)
    }

    async fn noted_by_itself(
        &self,
        tx: &mut PgConnection,
        action: &'static str,
        guest: &GuestRow,
        detail: Value,
    ) -> Result<()> {
        let entry = Entry::new(action, guest.name.as_str()).id(guest.id.0).of_project(guest.project_id).detail(detail);
        Ok(audit::write(tx, Author::new(None, "corpus", Door::Corpus), entry).await?)
    }
}

/// Notes a snapshot that is to be taken of a guest, if it may have one more.
pub(super) async fn note(
    tx: &mut PgConnection,
    (guest, node): &(GuestRow, Node),
    what: What<'_>,
    by_ops: bool,
) -> Result<SnapshotId> {
    is_settled(guest)?;
    if snapshots::count(tx, guest.id).await? >= i64::from(MOST_SNAPSHOTS) {
        let message = format!("{} has {MOST_SNAPSHOTS} snapshots already: delete one first.", guest.name);
        return Err(Error::Conflict(message));
    }
    let may_take = guest.storage;
    if let Some(free) = node.free_on(guest.backing).filter(|free| free.storage < may_take) {
        let (free, most) = (free.storage.gb(), may_take.gb());
        let message = format!("{} has {free} of storage free, and a snapshot may take {most}.", node.address);
        return Err(Error::Conflict(message));
    }
    let more = More { room: Room { storage: may_take, ..Room::default() }, ..More::default() };
    quotas::refuse(&quotas::now(tx, guest.project_id, more).await?, by_ops, |_| "comment")?;
    let id = SnapshotId(Uuid::now_v7());
    snapshots::insert(tx, id, (guest, may_take), what).await?;
    Ok(id)
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
