//! Taking and deleting snapshots of a guest. The row is there before the files and goes after them.

use std::time::Duration;

use corpus_domain::{GuestId, GuestName, JobKind, NodeId, SnapshotId};
use corpus_protocol::{Answer, Request};
use serde::{Deserialize, Serialize};

use super::node_calls::ask;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::snapshots;

/// How long copying a guest's files, or deleting a copy, may take where it is not done at once.
pub const LONG: Duration = Duration::from_mins(35);

/// Which snapshot, and of which guest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Snapshot {
    id: SnapshotId,
    guest: GuestId,
    name: GuestName,
    node: NodeId,
}

/// What the job that takes one is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Take(Snapshot);

impl JobParams for Take {
    const KIND: JobKind = JobKind::SnapshotTake;
}

/// What the job that deletes one is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Remove(Snapshot);

impl JobParams for Remove {
    const KIND: JobKind = JobKind::SnapshotRemove;
}

/// The job for a snapshot that was noted.
pub fn take(guest: &GuestRow, id: SnapshotId) -> NewJob<Take> {
    of(guest, format!("Take a snapshot of {}", guest.name), Take(snapshot(guest, id)))
}

/// The job for a snapshot that is being deleted.
pub fn remove(guest: &GuestRow, id: SnapshotId) -> NewJob<Remove> {
    of(guest, format!("Delete a snapshot of {}", guest.name), Remove(snapshot(guest, id)))
}

fn snapshot(guest: &GuestRow, id: SnapshotId) -> Snapshot {
    Snapshot { id, guest: guest.id, name: guest.name.clone(), node: guest.node_id }
}

fn of<P>(guest: &GuestRow, title: String, params: P) -> NewJob<P>
where
    P: JobParams,
{
    NewJob::new(title, params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// Takes one.
pub fn take_steps() -> Job<Services, Take> {
    Job::new().step(Step::new("snapshot", "Keep its files as they are", keep).undo(discard).limit(LONG * 2))
}

/// Deletes one. There is no way back; a failure leaves it to be deleted again.
pub fn remove_steps() -> Job<Services, Remove> {
    Job::new().step(Step::new("remove", "Delete its files", delete).undo(leave).retry(Retry::times(20)).limit(LONG * 2))
}

async fn keep(ctx: StepContext<Services, Take>) -> Result<(), StepError> {
    let Take(Snapshot { id, name, node, .. }) = ctx.params().clone();
    let Answer::Snapshot { bytes } = ask(&ctx, node, Request::EnsureSnapshot { name, snapshot: id }, LONG).await?
    else {
        return Err(StepError::permanent("the node told something else than a snapshot"));
    };
    let mut tx = ctx.begin().await?;
    snapshots::taken(&mut tx, id, bytes).await?;
    Ok(tx.commit().await?)
}

async fn discard(ctx: StepContext<Services, Take>) -> Result<(), StepError> {
    let Take(snapshot) = ctx.params().clone();
    gone(&ctx, snapshot).await
}

async fn delete(ctx: StepContext<Services, Remove>) -> Result<(), StepError> {
    let Remove(snapshot) = ctx.params().clone();
    gone(&ctx, snapshot).await
}

async fn gone<P: Send + Sync>(ctx: &StepContext<Services, P>, snapshot: Snapshot) -> Result<(), StepError> {
    let Snapshot { id, name, node, .. } = snapshot;
    ask(ctx, node, Request::EnsureNoSnapshot { name, snapshot: id }, LONG).await?;
    let mut tx = ctx.begin().await?;
    snapshots::delete(&mut tx, id).await?;
    Ok(tx.commit().await?)
}

async fn leave(ctx: StepContext<Services, Remove>) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    snapshots::back(&mut tx, ctx.params().0.id).await?;
    Ok(tx.commit().await?)
}
