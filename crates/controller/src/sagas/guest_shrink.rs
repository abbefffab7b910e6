//! Shrinking a guest's storage, whether it runs or not.
//!
//! What is in the way is moved by the file system itself, and what does not fit is refused by the node. The guest is
//! promised what it had until it has less, so that undoing this always finds the room.

use std::time::Duration;

use corpus_domain::{GuestId, GuestName, JobKind, NodeId, SizeProfile};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::node_calls::ask;
use super::snapshot::LONG;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests;
use crate::store::guests::GuestRow;

/// How long growing back may take.
const BACK: Duration = Duration::from_mins(2);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    node: NodeId,
    from: SizeProfile,
    size: SizeProfile,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestShrink;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest whose size is larger. Nothing is deployed meanwhile.
pub fn job(guest: &GuestRow, size: SizeProfile) -> NewJob<Params> {
    let params = Params { guest: guest.id, name: guest.name.clone(), node: guest.node_id, from: guest.size, size };
    NewJob::new(format!("Shrink guest {} to {size}, {}", guest.name, size.storage().gb()), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(
            Step::new("shrink", "Shrink its storage", shrink)
                .limit(LONG * 2)
                .undo(grow_back)
                .undo_limit(BACK * 2)
                .undo_retry(Retry::times(20)),
        )
        .step(Step::new("note", "Note what it is promised", note).undo(promise_again).not_cancellable())
}

async fn shrink(ctx: Ctx) -> Result<(), StepError> {
    let Params { name, node, size, .. } = ctx.params().clone();
    ask(&ctx, node, Request::EnsureSize { name, size, shrink: true }, LONG).await.map(drop)
}

async fn grow_back(ctx: Ctx) -> Result<(), StepError> {
    let Params { name, node, from, .. } = ctx.params().clone();
    ask(&ctx, node, Request::EnsureSize { name, size: from, shrink: false }, BACK).await.map(drop)
}

async fn promise_again(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, from, .. } = ctx.params().clone();
    let mut tx = ctx.begin().await?;
    guests::set_size(&mut tx, guest, from).await?;
    Ok(tx.commit().await?)
}

async fn note(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, size, .. } = ctx.params().clone();
    let mut tx = ctx.begin().await?;
    guests::set_smaller_size(&mut tx, guest, size).await?;
    Ok(tx.commit().await?)
}
