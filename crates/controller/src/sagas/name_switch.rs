//! Switching a DNS name to another guest or environment in one step: what it is to lead to is asked first, then one plan
//! moves the name. On another node the record changes besides, and both nodes route the name until nobody is sent to
//! the former one any more.

use std::time::Duration;

use corpus_api::names::AliasTarget;
use corpus_domain::{DnsName, DnsNameId, Environment, GuestId, JobKind, NodeId};
use corpus_protocol::{Answer, AskedSite, Request};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::name_attach::{PROPAGATION, dns_failed, provider, targets};
use super::node_calls::{SHORT, apply, apply_name, ask};
use crate::dns::authority::{AuthorityError, wait_until_all_answered};
use crate::dns::{Content, Owner, Record};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::balance::{self, Proof};
use crate::store::guests::GuestRow;
use crate::store::names::{self, Held, NameRow};
use crate::store::pointers;

/// A name moves to another node where resolvers may keep its record for no longer: the job waits for that, and holds its
/// guest meanwhile.
pub const LONGEST_TTL_S: u32 = 300;
/// How long its former route may take to end: that, and what the node needs.
const SETTLED_LIMIT: Duration = Duration::from_mins(7);

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The guest; of an environment its leader.
    pub guest: GuestId,
    /// The environment.
    pub environment: Option<Environment>,
    /// The guest's node.
    pub node: NodeId,
}

impl End {
    /// A guest, or the environment that it leads.
    pub fn of(guest: &GuestRow, environment: Option<Environment>) -> Self {
        Self { guest: guest.id, environment, node: guest.node_id }
    }
}

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    id: DnsNameId,
    name: DnsName,
    from: End,
    to: End,
    /// Whether it leads to several nodes, and goes on to.
    #[serde(default)]
    spread: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NameSwitch;
}

type Ctx = StepContext<Services, Params>;

/// The job; `title` says what the name is to lead to. Its aliases lead there along with it.
pub fn job(
    (name, aliases): (&NameRow, &[AliasTarget]),
    from: End,
    (to, guest): (End, &GuestRow),
    spread: bool,
    title: String,
) -> NewJob<Params> {
    let mut locks = vec![Lock::exclusive("name", name.id), Lock::shared("guest", to.guest), Lock::node_shared(to.node)];
    if from.node != to.node {
        locks.push(Lock::node_shared(from.node));
    }
    locks.extend(aliases.iter().map(|alias| Lock::exclusive("name", alias.id)));
    let params = Params { id: name.id, name: name.name.clone(), from, to, spread };
    NewJob::new(title, params).guest(guest.id).project(guest.project_id).node(guest.node_id).locks(locks)
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("proven", "Ask what it is to lead to", proven))
        .step(Step::new("switch", "Route it there", switch).undo(back).undo_retry(Retry::times(20)))
        .step(
            Step::new("record", "Write the record", record)
                .undo(record_back)
                .undo_retry(Retry::times(20))
                .retry(Retry::times(8)),
        )
        .step(Step::new("answered", "Wait for the authoritative server", answered).limit(PROPAGATION * 2))
        .step(
            Step::new("settled", "End its former route", settled)
                .not_cancellable()
                .limit(SETTLED_LIMIT)
                .retry(Retry::times(20)),
        )
}

impl Params {
    /// Environments on several nodes, the same ones, may have their leaders on different ones: then the record stays.
    fn moves(&self) -> bool {
        self.from.node != self.to.node && !self.spread
    }
}

/// Each guest that will be given its requests serves the page.
async fn proven(ctx: Ctx) -> Result<(), StepError> {
    let Params { name, to, .. } = ctx.params();
    let mut conn = ctx.services().db.acquire().await?;
    let Proof { guests, path, status } = balance::proof(&mut conn, to.guest, to.environment).await?;
    drop(conn);
    if guests.is_empty() {
        return Err(StepError::permanent("nothing of it takes requests now"));
    }
    for (node, guest, ip) in guests {
        let asked = AskedSite { name: name.clone(), guest: guest.clone(), at: Some(ip), path: path.clone() };
        let answer = ask(&ctx, node, Request::ProbeSites { sites: vec![asked] }, SHORT).await?;
        let Answer::Sites { sites } = answer else {
            return Err(StepError::permanent("the node told something else than what it was asked"));
        };
        let site = sites.into_iter().next();
        let page = path.as_ref().map_or("/", |path| path.as_str());
        match site.as_ref().and_then(|site| site.status) {
            Some(seen) if seen == status => ctx.log(format!("{guest} answers {seen} for http://{name}{page}")),
            Some(seen) => {
                let why =
                    format!("{guest} answers {seen} for http://{name}{page}, not {status}; the name stays where it is");
                return Err(StepError::permanent(why));
            }
            None => {
                let problem = site.and_then(|site| site.problem).unwrap_or_else(|| "it was not asked".to_owned());
                return Err(StepError::transient(format!(
                    "{guest} does not answer for http://{name}{page}: {problem}"
                )));
            }
        }
    }
    Ok(())
}

async fn switch(ctx: Ctx) -> Result<(), StepError> {
    let Params { id, from, to, .. } = ctx.params();
    lead(&ctx, *id, from, to).await?;
    apply_name(&ctx, *id).await
}

async fn back(ctx: Ctx) -> Result<(), StepError> {
    let Params { id, from, to, .. } = ctx.params();
    lead(&ctx, *id, to, from).await?;
    let mut tx = ctx.begin().await?;
    names::settle_switch(&mut tx, *id).await?;
    tx.commit().await?;
    apply_name(&ctx, *id).await?;
    if ctx.params().moves() { apply(&ctx, to.node).await } else { Ok(()) }
}

/// Has the name lead from one to the other; one that leads there already stays.
async fn lead(ctx: &Ctx, id: DnsNameId, from: &End, to: &End) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    names::hold(&mut tx, id).await?;
    let row = names::get(&mut tx, id).await?.ok_or_else(|| StepError::permanent("the name is gone"))?;
    if (row.guest_id, row.environment) == (to.guest, to.environment) {
        return Ok(());
    }
    if pointers::of_name(&mut tx, id).await?.is_some() {
        return Err(StepError::permanent(format!("the address of {} points back to {}", row.guest, row.name)));
    }
    if !names::switch(&mut tx, id, from.guest, (to.guest, to.environment)).await? {
        return Err(StepError::permanent(format!("{} leads to {} by now", row.name, row.guest)));
    }
    Ok(tx.commit().await?)
}

async fn record(ctx: Ctx) -> Result<(), StepError> {
    write_record(&ctx, ctx.params().to.node).await
}

async fn record_back(ctx: Ctx) -> Result<(), StepError> {
    write_record(&ctx, ctx.params().from.node).await
}

async fn write_record(ctx: &Ctx, to: NodeId) -> Result<(), StepError> {
    let Some(held) = moved(ctx).await? else { return Ok(()) };
    let name = &ctx.params().name;
    let addresses = targets(ctx, to).await?;
    let said = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let (owner, content) = (Owner::from(name), Content::Addresses(addresses));
    let record = Record { zone: held.zone, owner, content, ttl_s: held.ttl_s };
    ctx.still_ours().await?;
    provider(ctx.services(), &held.provider)?.dns.ensure_record(&record).await.map_err(dns_failed)?;
    ctx.log(format!("{name} is {said}"));
    Ok(())
}

/// Who holds the record that changes; none where the name stays on its node. The handler lets no name move there whose
/// zone is not ours.
async fn moved(ctx: &Ctx) -> Result<Option<Held>, StepError> {
    if !ctx.params().moves() {
        return Ok(None);
    }
    let mut conn = ctx.services().db.acquire().await?;
    let row = names::get(&mut conn, ctx.params().id).await?;
    row.map(|row| row.held).ok_or_else(|| StepError::permanent("the name is gone"))
}

async fn answered(ctx: Ctx) -> Result<(), StepError> {
    let Some(held) = moved(&ctx).await? else { return Ok(()) };
    let wanted = targets(&ctx, ctx.params().to.node).await?;
    let authority = provider(ctx.services(), &held.provider)?.authority;
    let all_answered = wait_until_all_answered(authority, &ctx.params().name, &wanted, PROPAGATION);
    let unanswered = |error: AuthorityError| {
        StepError::transient(error.to_string()).while_waiting_for("the authoritative server to answer").caused_by(error)
    };
    ctx.or_cancelled(async { all_answered.await.map_err(unanswered) }).await?;
    let mut tx = ctx.begin().await?;
    names::answered(&mut tx, ctx.params().id).await?;
    Ok(tx.commit().await?)
}

/// Resolvers keep the former address for as long as its record said.
async fn settled(ctx: Ctx) -> Result<(), StepError> {
    if let Some(held) = moved(&ctx).await? {
        sleep(ctx.paced(Duration::from_secs(held.ttl_s.min(LONGEST_TTL_S).into()))).await;
    }
    let mut tx = ctx.begin().await?;
    names::settle_switch(&mut tx, ctx.params().id).await?;
    tx.commit().await?;
    if ctx.params().moves() { apply(&ctx, ctx.params().from.node).await } else { Ok(()) }
}
