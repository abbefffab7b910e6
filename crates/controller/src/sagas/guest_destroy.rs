//! Destroying a guest: its names, its routes, itself, its row.
//!
//! There is no way back from this, so nothing is undone: a failure leaves the guest `failed`
//! with the reason, and destroying it again goes on where it ended.

use std::time::Duration;

use corpus_domain::{GuestId, GuestName, GuestState, JobKind, NodeId};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::guest_point::unpoint;
use super::name_detach::remove_record;
use super::node_calls::{apply_with, ask};
use crate::dns::Owner;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::{far, guests, names};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestDestroy;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest whose state was set to destroying.
pub fn job(guest: &GuestRow) -> NewJob<Params> {
    let params = Params { guest: guest.id, name: guest.name.clone(), node: guest.node_id };
    NewJob::new(format!("Destroy guest {}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("mark", "Mark as being destroyed", mark).undo(mark_failed))
        .step(Step::new("routes", "Remove its routes", unroute).retry(Retry::times(20)))
        .step(Step::new("names", "Remove its DNS names", remove_names).retry(Retry::times(20)))
        .step(Step::new("absent", "Destroy", absent).retry(Retry::times(20)).limit(Duration::from_mins(2)))
        .step(Step::new("forget", "Free its name, address and port", forget).not_cancellable())
}

async fn mark(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let from = GuestState::ALL;
    guests::set_state(&mut tx, ctx.params().guest, from, GuestState::Destroying, None).await?;
    Ok(tx.commit().await?)
}

async fn mark_failed(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let reason = "it was not destroyed completely; destroy it again";
    guests::set_state(&mut tx, ctx.params().guest, &[GuestState::Destroying], GuestState::Failed, Some(reason)).await?;
    Ok(tx.commit().await?)
}

async fn unroute(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    guests::set_routed(&mut tx, ctx.params().guest, false).await?;
    names::set_routed_of_guest(&mut tx, ctx.params().guest, false).await?;
    let others = far::beside(&mut tx, ctx.params().guest).await?;
    tx.commit().await?;
    apply_with(&ctx, ctx.params().node, others).await
}

async fn remove_names(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let mut all = names::of_guest(&mut conn, ctx.params().guest).await?;
    drop(conn);
    // A name stays for as long as it has aliases.
    all.sort_by_key(|name| name.alias_of.is_none());
    for name in all {
        unpoint(&ctx, name.id).await?;
        remove_record(&ctx, name.held.as_ref(), &Owner::new(name.name, name.wildcard)).await?;
        let mut tx = ctx.begin().await?;
        names::delete(&mut tx, name.id).await?;
        tx.commit().await?;
    }
    Ok(())
}

async fn absent(ctx: Ctx) -> Result<(), StepError> {
    let absent = Request::EnsureAbsent { name: ctx.params().name.clone(), id: Some(ctx.params().guest) };
    ask(&ctx, ctx.params().node, absent, Duration::from_mins(2)).await.map(drop)
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::delete_of_guest(&mut tx, ctx.params().guest).await?;
    guests::delete(&mut tx, ctx.params().guest).await?;
    Ok(tx.commit().await?)
}
