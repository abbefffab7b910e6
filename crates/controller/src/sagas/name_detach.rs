//! Detaching a DNS name: the node's route, the record, the row.

use corpus_domain::{DnsName, DnsNameId, JobKind, NameState, NodeId, ProviderName};
use serde::{Deserialize, Serialize};

use super::guest_point::unpoint;
use super::name_attach::{dns_failed, provider};
use super::node_calls::apply_name;
use crate::dns::{Owner, Removal};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::names;
use crate::store::names::{Held, NameRow};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    id: DnsNameId,
    name: DnsName,
    /// Whether it is all names below it.
    #[serde(default)]
    wildcard: bool,
    /// None where it is not ours.
    #[serde(default)]
    zone: Option<DnsName>,
    /// Jobs of earlier releases knew one DNS server.
    #[serde(default = "ProviderName::first")]
    provider: ProviderName,
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NameDetach;
}

type Ctx = StepContext<Services, Params>;

/// The job for a name whose state was set to detaching.
pub fn job(name: &NameRow, guest: &GuestRow) -> NewJob<Params> {
    let node = guest.node_id;
    let zone = name.held.as_ref().map(|held| held.zone.clone());
    let provider = name.held.as_ref().map_or_else(ProviderName::first, |held| held.provider.clone());
    let params = Params { id: name.id, name: name.name.clone(), wildcard: name.wildcard, zone, provider, node };
    let mut locks = vec![Lock::guest(guest.id), Lock::node_shared(node), Lock::exclusive("name", name.id)];
    // What it leads along with is not switched meanwhile.
    locks.extend(name.alias_of.as_ref().map(|target| Lock::shared("name", target.id)));
    NewJob::new(format!("Detach {} from {}", Owner::new(name.name.clone(), name.wildcard), name.guest), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(node)
        .locks(locks)
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
    let Params { id, zone, provider, name, wildcard, .. } = ctx.params();
    unpoint(&ctx, *id).await?;
    match zone {
        Some(zone) => remove(&ctx, provider, zone, &Owner::new(name.clone(), *wildcard)).await,
        None => Ok(()),
    }
}

async fn unroute(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::set_routed(&mut tx, ctx.params().id, false).await?;
    tx.commit().await?;
    apply_name(&ctx, ctx.params().id).await
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::delete(&mut tx, ctx.params().id).await?;
    Ok(tx.commit().await?)
}

/// Removes a record of ours; one that is gone or was never ours is left as it is. In a zone that others hold there is
/// none of ours.
pub(super) async fn remove_record<P: JobParams>(
    ctx: &StepContext<Services, P>,
    held: Option<&Held>,
    name: &Owner,
) -> Result<(), StepError> {
    match held {
        Some(held) => remove(ctx, &held.provider, &held.zone, name).await,
        None => Ok(()),
    }
}

async fn remove<P: JobParams>(
    ctx: &StepContext<Services, P>,
    of: &ProviderName,
    zone: &DnsName,
    name: &Owner,
) -> Result<(), StepError> {
    ctx.still_ours().await?;
    let removal = provider(ctx.services(), of)?.dns.remove_record(zone, name).await.map_err(dns_failed)?;
    if removal == Removal::NotOurs {
        ctx.log(format!("the record of {name} is not ours any more; it was left"));
    }
    Ok(())
}
