//! Detaching a DNS name: the node's route, the record, the row.

use corpus_domain::{DnsName, DnsNameId, JobKind, NameState, NodeId};
use serde::{Deserialize, Serialize};

use super::name_attach::{dns_failed, provider};
use super::node_calls::apply;
use crate::dns::Removal;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::names;
use crate::store::names::NameRow;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    id: DnsNameId,
    name: DnsName,
    zone: DnsName,
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NameDetach;
}

type Ctx = StepContext<Services, Params>;

/// The job for a name whose state was set to detaching.
pub fn job(name: &NameRow, guest: &GuestRow) -> NewJob<Params> {
    let node = guest.node_id;
    let params = Params { id: name.id, name: name.name.clone(), zone: name.zone.clone(), node };
    NewJob::new(format!("Detach {} from {}", name.name, name.guest), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(node)
        .locks([Lock::guest(guest.id), Lock::node_shared(node), Lock::exclusive("name", name.id)])
}

/// The steps. The record goes first, so that nobody is led to a route that is gone.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("mark", "Mark as being detached", mark).undo(mark_failed))
        .step(Step::new("record", "Remove the record", unrecord).retry(Retry::times(8)))
        .step(Step::new("routes", "Remove its route", unroute).retry(Retry::times(20)))
        .step(Step::new("forget", "Free the name", forget).not_cancellable())
}

async fn mark(ctx: Ctx) -> Result<(), StepError> {
    set_state(&ctx, NameState::Detaching, None).await
}

async fn mark_failed(ctx: Ctx) -> Result<(), StepError> {
    set_state(&ctx, NameState::Failed, Some("it was not detached completely; detach it again")).await
}

async fn set_state(ctx: &Ctx, state: NameState, reason: Option<&str>) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::set_state(&mut tx, ctx.params().id, state, reason).await?;
    Ok(tx.commit().await?)
}

async fn unrecord(ctx: Ctx) -> Result<(), StepError> {
    remove_record(&ctx, &ctx.params().zone, &ctx.params().name).await
}

async fn unroute(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::set_routed(&mut tx, ctx.params().id, false).await?;
    tx.commit().await?;
    apply(&ctx, ctx.params().node).await
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::delete(&mut tx, ctx.params().id).await?;
    Ok(tx.commit().await?)
}

/// Removes a record of ours; one that is gone or was never ours is left as it is.
pub(super) async fn remove_record<P: JobParams>(
    ctx: &StepContext<Services, P>,
    zone: &DnsName,
    name: &DnsName,
) -> Result<(), StepError> {
    ctx.still_ours().await?;
    let removal = provider(ctx.services())?.remove_record(zone, name).await.map_err(dns_failed)?;
    if removal == Removal::NotOurs {
        ctx.log(format!("the record of {name} is not ours any more; it was left"));
    }
    Ok(())
}
