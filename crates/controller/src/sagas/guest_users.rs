//! Having a guest have the users that its project wants.
//!
//! The accounts are made in the guest, their keys are brought by its node like those of members. Both are read when the job
//! runs, so of several such jobs the last is right, and there is nothing to undo.

use corpus_domain::{GuestId, GuestName, JobKind, NodeId};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::guest_calls::{LAYOUT, ask_inside};
use super::node_calls::bring_keys;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guest_users;
use crate::store::guests::GuestRow;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestUsers;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest that runs.
pub fn job(guest: &GuestRow) -> NewJob<Params> {
    let params = Params { guest: guest.id, name: guest.name.clone(), node: guest.node_id };
    NewJob::new(format!("Bring its users to guest {}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps. Keys come first: who may not any more is out, whatever the guest itself makes of it.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("sshkeys", "Bring SSH keys", keys).retry(Retry::times(10)))
        .step(Step::new("users", "Make and end accounts", users).retry(Retry::times(3)).limit(LAYOUT))
}

async fn users(ctx: Ctx) -> Result<(), StepError> {
    ensure(&ctx, ctx.params().guest).await
}

async fn keys(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, name, node } = ctx.params();
    bring_keys(&ctx, *node, *guest, name).await
}

/// The guest has the accounts that its project wants.
pub(super) async fn ensure<P: JobParams>(ctx: &StepContext<Services, P>, guest: GuestId) -> Result<(), StepError> {
    let users = guest_users::of_guest(&mut *ctx.services().db.acquire().await?, guest).await?;
    ask_inside(ctx, guest, Request::EnsureUsers { users }, LAYOUT).await.map(drop)
}
