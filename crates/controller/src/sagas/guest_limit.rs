//! Changing what a guest may take of its node, whether it runs or not.
//!
//! While the job is under way the row holds the larger of the old and the new limits, so that
//! nobody else is promised what the guest may still have. It goes on beside a deployment.

use std::time::Duration;

use corpus_domain::{GuestId, GuestName, JobKind, Limits, NodeId};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::node_calls::ask;
use crate::jobs::{Job, JobParams, Lock, NewJob, Step, StepContext, StepError, StepErrorKind};
use crate::services::Services;
use crate::store::guests;
use crate::store::guests::GuestRow;

/// The kernel may take a while to get memory back.
const LIMIT: Duration = Duration::from_secs(30);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    node: NodeId,
    from: Limits,
    to: Limits,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestLimit;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest with other limits.
pub fn job(guest: &GuestRow, to: Limits) -> NewJob<Params> {
    let params = Params { guest: guest.id, name: guest.name.clone(), node: guest.node_id, from: guest.limits, to };
    NewJob::new(format!("Limit guest {} to {to}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::shared("guest", guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new().step(Step::new("limit", "Hold it to the new limits", limit).undo(give_back))
}

async fn limit(ctx: Ctx) -> Result<(), StepError> {
    let to = ctx.params().to;
    hold(&ctx, to).await?;
    keep(&ctx, to).await
}

/// A guest that uses more memory by now than it had before keeps what it got.
async fn give_back(ctx: Ctx) -> Result<(), StepError> {
    let Params { from, to, .. } = ctx.params().clone();
    match hold(&ctx, from).await {
        Err(error) if error.kind == StepErrorKind::Permanent => {
            ctx.log(format!("it can't have its old limits again and keeps the new ones: {error}"));
            keep(&ctx, to).await
        }
        other => {
            other?;
            keep(&ctx, from).await
        }
    }
}

async fn hold(ctx: &Ctx, limits: Limits) -> Result<(), StepError> {
    let name = ctx.params().name.clone();
    ask(ctx, ctx.params().node, Request::EnsureLimits { name, limits }, LIMIT).await.map(drop)
}

async fn keep(ctx: &Ctx, limits: Limits) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    guests::set_limits(&mut tx, ctx.params().guest, limits).await?;
    Ok(tx.commit().await?)
}
