//! Attaching a DNS name: the record, the answer of the authoritative server, the node's route.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use corpus_domain::{DnsName, DnsNameId, JobKind, NameState, NodeId};
use serde::{Deserialize, Serialize};

use super::name_detach::remove_record;
use super::node_calls::{apply, node};
use crate::dns::authority::{AuthorityError, wait_until_answered};
use crate::dns::{AddressRecord, DnsError, DnsProvider};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::rules::made_by_others;
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::names;
use crate::store::names::NameRow;

/// How long a name server may take to answer a record that it took.
const PROPAGATION: Duration = Duration::from_mins(2);

/// How long resolvers may keep the answer: short, since guests move.
const TTL_S: u32 = 60;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    id: DnsNameId,
    name: DnsName,
    node: NodeId,
    /// Whether what others' records are about is refused: not for operators.
    #[serde(default)]
    only_free: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NameAttach;
}

type Ctx = StepContext<Services, Params>;

/// The job for a name whose row is there.
pub fn job(id: DnsNameId, name: &DnsName, guest: &GuestRow, only_free: bool) -> NewJob<Params> {
    let params = Params { id, name: name.clone(), node: guest.node_id, only_free };
    NewJob::new(format!("Attach {name} to {}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id), Lock::exclusive("name", id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("wanted", "Note the name", wanted).undo(forget))
        .step(
            Step::new("record", "Write the record", record)
                .undo(unrecord)
                .undo_retry(Retry::times(20))
                .retry(Retry::times(8)),
        )
        .step(Step::new("answered", "Wait for the authoritative server", answered).limit(PROPAGATION * 2))
        .step(Step::new("routes", "Route its HTTP", route).undo(unroute).undo_retry(Retry::times(20)))
        .step(Step::new("attached", "Mark as attached", attached))
}

async fn row(ctx: &Ctx) -> Result<NameRow, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let found = names::get(&mut conn, ctx.params().id).await?;
    found.ok_or_else(|| StepError::permanent("the guest is gone, and the name with it"))
}

async fn wanted(ctx: Ctx) -> Result<(), StepError> {
    row(&ctx).await.map(drop)
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::delete(&mut tx, ctx.params().id).await?;
    Ok(tx.commit().await?)
}

async fn record(ctx: Ctx) -> Result<(), StepError> {
    let address = target(&ctx).await?;
    let zone = row(&ctx).await?.zone;
    let record = AddressRecord { zone, name: ctx.params().name.clone(), address, ttl_s: TTL_S };
    ctx.still_ours().await?;
    let provider = provider(ctx.services())?;
    if ctx.params().only_free
        && let Some(other) = provider.made_by_others(&record.zone, &record.name).await.map_err(dns_failed)?
    {
        return Err(StepError::permanent(made_by_others(&record.name, &other)));
    }
    provider.ensure_record(&record).await.map_err(dns_failed)?;
    ctx.log(format!("{} is {address}", ctx.params().name));
    Ok(())
}

async fn unrecord(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let found = names::get(&mut conn, ctx.params().id).await?;
    drop(conn);
    match found {
        Some(name) => remove_record(&ctx, &name.zone, &name.name).await,
        None => Ok(()),
    }
}

async fn answered(ctx: Ctx) -> Result<(), StepError> {
    let target = target(&ctx).await?;
    let waited = wait_until_answered(ctx.services().settings.authority, &ctx.params().name, target, PROPAGATION);
    let unanswered = |error: AuthorityError| {
        StepError::transient(error.to_string()).while_waiting_for("the authoritative server to answer").caused_by(error)
    };
    ctx.or_cancelled(async { waited.await.map_err(unanswered) }).await?;
    let mut tx = ctx.begin().await?;
    names::answered(&mut tx, ctx.params().id).await?;
    Ok(tx.commit().await?)
}

async fn route(ctx: Ctx) -> Result<(), StepError> {
    set_routed(&ctx, true).await
}

async fn unroute(ctx: Ctx) -> Result<(), StepError> {
    set_routed(&ctx, false).await
}

async fn set_routed(ctx: &Ctx, routed: bool) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::set_routed(&mut tx, ctx.params().id, routed).await?;
    tx.commit().await?;
    apply(ctx, ctx.params().node).await
}

async fn attached(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::set_state(&mut tx, ctx.params().id, NameState::Attached, None).await?;
    Ok(tx.commit().await?)
}

/// Where names of the node's guests point to.
async fn target(ctx: &Ctx) -> Result<IpAddr, StepError> {
    let found = node(ctx, ctx.params().node).await?.public_ip.and_then(|ip| ip.parse().ok());
    found.ok_or_else(|| StepError::permanent("the node's public address is not known; initialize it again"))
}

/// The configured DNS server.
pub(super) fn provider(services: &Services) -> Result<Arc<dyn DnsProvider>, StepError> {
    services.dns.clone().ok_or_else(|| StepError::permanent("no DNS server is configured"))
}

/// A failure of the DNS server as a failure of a step.
pub(super) fn dns_failed(error: DnsError) -> StepError {
    let message = error.to_string();
    if error.is_transient() {
        return StepError::transient(message).while_waiting_for("the DNS server to answer").caused_by(error);
    }
    StepError::permanent(message).caused_by(error)
}
