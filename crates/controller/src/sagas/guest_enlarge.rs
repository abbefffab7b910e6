//! Enlarging a guest's storage, whether it runs or not.
//!
//! The row follows the node in the same step: storage does not shrink, so there is no way back, and
//! an interrupted job leaves at most a row that says less than there is. It goes on beside a
//! deployment, which may itself be what needs the room. While the job is under way the row promises what the guest
//! will have, so that nobody else is promised it, by the node or by the project's quota.

use std::time::Duration;

use corpus_domain::{GuestId, GuestName, JobKind, NodeId, SizeProfile};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::node_calls::ask;
use crate::jobs::{Job, JobParams, Lock, NewJob, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests;
use crate::store::guests::GuestRow;

/// A file system that is used hard grows when it comes to it.
const LIMIT: Duration = Duration::from_mins(2);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    node: NodeId,
    size: SizeProfile,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestEnlarge;
}

/// The job for a guest whose size is smaller.
pub fn job(guest: &GuestRow, size: SizeProfile) -> NewJob<Params> {
    let params = Params { guest: guest.id, name: guest.name.clone(), node: guest.node_id, size };
    NewJob::new(format!("Enlarge guest {} to {size}, {}", guest.name, size.storage().gb()), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::shared("guest", guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new().step(Step::new("enlarge", "Enlarge its storage", enlarge).limit(LIMIT * 2).undo(settle))
}

async fn enlarge(ctx: StepContext<Services, Params>) -> Result<(), StepError> {
    let Params { guest, name, node, size } = ctx.params().clone();
    ask(&ctx, node, Request::EnsureSize { name, size, shrink: false }, LIMIT).await?;
    let mut tx = ctx.begin().await?;
    guests::set_size(&mut tx, guest, size).await?;
    guests::settle_storage(&mut tx, guest).await?;
    Ok(tx.commit().await?)
}

/// What it did not get it is not promised any more.
async fn settle(ctx: StepContext<Services, Params>) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    guests::settle_storage(&mut tx, ctx.params().guest).await?;
    Ok(tx.commit().await?)
}
