//! Attaching a DNS name: the record, the answer of the authoritative server, the node's route.
//!
//! A name of a zone that others hold gets no record from us: the world is asked instead.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use corpus_api::names::AttachName;
use corpus_domain::{DnsName, DnsNameId, Environment, JobKind, NameState, NodeId, ProviderName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::name_detach::remove_record;
use super::node_calls::{apply_name, node};
use crate::certificates::{Issuer, certified};
use crate::dns::authority::{AuthorityError, wait_until_alias, wait_until_all_answered};
use crate::dns::{Content, DnsError, Owner, Provider, Record};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::rules::made_by_others;
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::names::NameRow;
use crate::store::{certificates, claims, names, spread};

/// How long a name server may take to answer a record that it took.
pub(super) const PROPAGATION: Duration = Duration::from_mins(2);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    id: DnsNameId,
    name: DnsName,
    /// Whether it is all names below it.
    #[serde(default)]
    wildcard: bool,
    node: NodeId,
    /// What it is another name for, and leads along with; none: it has the addresses of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alias_of: Option<DnsName>,
    /// Whether what others' records are about is refused: not for operators.
    #[serde(default)]
    only_free: bool,
    /// What was asked for, to ask again when it can't be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Value>,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NameAttach;
}

type Ctx = StepContext<Services, Params>;

/// The job for a name whose row is there, of a guest, or of the environment that it leads.
pub fn job(
    id: DnsNameId,
    (name, wildcard): (&DnsName, bool),
    (guest, environment): (&GuestRow, Option<Environment>),
    only_free: bool,
) -> NewJob<Params> {
    let asked = AttachName { guest: guest.id, name: name.clone(), wildcard };
    let asked = if environment.is_none() { serde_json::to_value(asked).ok() } else { None };
    let params = Params { id, name: name.clone(), wildcard, node: guest.node_id, alias_of: None, only_free, asked };
    let name = Owner::new(name.clone(), wildcard);
    let title = match environment {
        Some(environment) => format!("Attach {name} to {environment} of {}", guest.project),
        None => format!("Attach {name} to {}", guest.name),
    };
    NewJob::new(title, params).guest(guest.id).project(guest.project_id).node(guest.node_id).locks([
        Lock::guest(guest.id),
        Lock::node_shared(guest.node_id),
        Lock::exclusive("name", id),
    ])
}

/// The job for a name whose row is there, and which is another name for this one.
pub fn alias_job(id: DnsNameId, name: &DnsName, target: &NameRow, guest: &GuestRow, only_free: bool) -> NewJob<Params> {
    let (name, alias_of, node) = (name.clone(), Some(target.name.clone()), guest.node_id);
    let title = format!("Attach {name} as an alias of {}", target.name);
    let params = Params { id, name, wildcard: false, node, alias_of, only_free, asked: None };
    NewJob::new(title, params).guest(guest.id).project(guest.project_id).node(node).locks([
        Lock::guest(guest.id),
        Lock::node_shared(node),
        Lock::exclusive("name", id),
        // What it leads along with is not switched meanwhile.
        Lock::shared("name", target.id),
    ])
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
    let Params { name, wildcard, alias_of, .. } = ctx.params();
    let (content, said) = if let Some(target) = alias_of {
        (Content::Alias(target.clone()), format!("an alias of {target}"))
    } else {
        let addresses = own_addresses(&ctx).await?;
        let said = addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" and ");
        (Content::Addresses(addresses), said)
    };
    let Some(held) = row(&ctx).await?.held else { return Ok(()) };
    let owner = Owner::new(name.clone(), *wildcard);
    let record = Record { zone: held.zone, owner, content, ttl_s: held.ttl_s };
    ctx.still_ours().await?;
    let dns = &provider(ctx.services(), &held.provider)?.dns;
    if ctx.params().only_free
        && let Some(other) = dns.made_by_others(&record.zone, &record.owner).await.map_err(dns_failed)?
    {
        return Err(StepError::permanent(made_by_others(name, &other)));
    }
    dns.ensure_record(&record).await.map_err(dns_failed)?;
    ctx.log(format!("{} is {said}", record.owner));
    if ctx.params().alias_of.is_some() {
        return Ok(());
    }
    let mut tx = ctx.begin().await?;
    let said = spread::addresses(&mut tx, ctx.params().id).await?;
    spread::spread(&mut tx, ctx.params().id, &said).await?;
    Ok(tx.commit().await?)
}

async fn unrecord(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let found = names::get(&mut conn, ctx.params().id).await?;
    drop(conn);
    match found {
        Some(name) => remove_record(&ctx, name.held.as_ref(), &Owner::new(name.name, name.wildcard)).await,
        None => Ok(()),
    }
}

async fn answered(ctx: Ctx) -> Result<(), StepError> {
    if let Some(held) = row(&ctx).await?.held {
        let authority = provider(ctx.services(), &held.provider)?.authority;
        let unanswered = |error: AuthorityError| {
            let awaited = "the authoritative server to answer";
            StepError::transient(error.to_string()).while_waiting_for(awaited).caused_by(error)
        };
        ctx.or_cancelled(async { authority_answers(&ctx, authority).await?.map_err(unanswered) }).await?;
    } else {
        let wanted = own_addresses(&ctx).await?;
        ctx.or_cancelled(world_answers(&ctx, &ctx.params().name, &wanted)).await?;
    }
    let mut tx = ctx.begin().await?;
    names::answered(&mut tx, ctx.params().id).await?;
    Ok(tx.commit().await?)
}

/// Waits until the server of its zone answers what was written. What an alias leads to may be held by another server.
async fn authority_answers(ctx: &Ctx, authority: SocketAddr) -> Result<Result<(), AuthorityError>, StepError> {
    let Params { name, wildcard, alias_of, .. } = ctx.params();
    let owner = Owner::new(name.clone(), *wildcard);
    if let Some(target) = alias_of {
        return Ok(wait_until_alias(authority, owner, target, PROPAGATION).await);
    }
    let wanted = own_addresses(ctx).await?;
    Ok(wait_until_all_answered(authority, owner, &wanted, PROPAGATION).await)
}

/// With the internal authority the name is served by HTTPS from the first request on. Others take their time: the job of
/// the certificate does not keep this one.
async fn route(ctx: Ctx) -> Result<(), StepError> {
    let Params { id, name, wildcard, .. } = ctx.params();
    let services = ctx.services();
    let mut tx = ctx.begin().await?;
    names::set_routed(&mut tx, *id, true).await?;
    let is_without = certificates::hold(&mut tx, *id).await?.is_some_and(|held| held.served.is_none());
    if is_without && services.settings.certificates.issuer == Issuer::Internal {
        let signed = async { services.sign_certificate(&mut tx, *id, certified(name, *wildcard)?).await };
        signed.await.map_err(|error| StepError::permanent(error.to_string()).caused_by(error))?;
    }
    tx.commit().await?;
    apply_name(&ctx, *id).await
}

async fn unroute(ctx: Ctx) -> Result<(), StepError> {
    let Params { id, .. } = ctx.params();
    let mut tx = ctx.begin().await?;
    names::set_routed(&mut tx, *id, false).await?;
    tx.commit().await?;
    apply_name(&ctx, *id).await
}

async fn attached(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::set_state(&mut tx, ctx.params().id, NameState::Attached, None).await?;
    if let Some(name) = names::get(&mut tx, ctx.params().id).await? {
        claims::delete_attached(&mut tx, &name.name, name.guest_id).await?;
    }
    Ok(tx.commit().await?)
}

/// Asks the world once more: what made the name ours may be gone since it was seen.
async fn world_answers(ctx: &Ctx, name: &DnsName, wanted: &[IpAddr]) -> Result<(), StepError> {
    let awaited = "the world to answer";
    let seen = ctx.services().world.addresses(name).await.map_err(|error| {
        StepError::transient(format!("{name} is not answered: {error}")).while_waiting_for(awaited).caused_by(error)
    })?;
    if leads_to(&seen, wanted) {
        return Ok(());
    }
    Err(StepError::transient(format!("{name} does not lead to the node any more")).while_waiting_for(awaited))
}

/// Whether a name leads to a node and nowhere else: an address of another host would get some of its visitors.
pub(crate) fn leads_to(seen: &[IpAddr], node: &[IpAddr]) -> bool {
    !seen.is_empty() && seen.iter().all(|address| node.contains(address))
}

async fn own_addresses(ctx: &Ctx) -> Result<Vec<IpAddr>, StepError> {
    addresses(ctx, ctx.params().id, ctx.params().node).await
}

/// Where a name is to lead to: its guest's node, or all nodes of the environment.
pub(super) async fn addresses<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    id: DnsNameId,
    node: NodeId,
) -> Result<Vec<IpAddr>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let found = spread::addresses(&mut conn, id).await?;
    drop(conn);
    let found: Vec<IpAddr> = found.iter().filter_map(|ip| ip.parse().ok()).collect();
    if found.iter().any(IpAddr::is_ipv4) { Ok(found) } else { targets(ctx, node).await }
}

/// Where names of a node's guests point to: one address of each family, as far as the node has them.
async fn targets<P: Send + Sync>(ctx: &StepContext<Services, P>, id: NodeId) -> Result<Vec<IpAddr>, StepError> {
    let node = node(ctx, id).await?;
    let mut found: Vec<IpAddr> = node.public_ip.into_iter().filter_map(|ip| ip.parse().ok()).collect();
    if found.is_empty() {
        return Err(StepError::permanent("the node's public address is not known; initialize it again"));
    }
    let v6: Option<IpAddr> = node.public_ipv6.and_then(|ip| ip.parse().ok());
    found.extend(v6.filter(|_| found.iter().all(IpAddr::is_ipv4)));
    Ok(found)
}

/// The DNS server that holds a zone.
pub(super) fn provider<'a>(services: &'a Services, name: &ProviderName) -> Result<&'a Provider, StepError> {
    services.provider(name).map_err(StepError::permanent)
}

/// A failure of the DNS server as a failure of a step.
pub(super) fn dns_failed(error: DnsError) -> StepError {
    let message = error.to_string();
    if error.is_transient() {
        return StepError::transient(message).while_waiting_for("the DNS server to answer").caused_by(error);
    }
    StepError::permanent(message).caused_by(error)
}
