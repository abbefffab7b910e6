//! Switching a DNS name to another guest or environment in one step, whatever nodes these are on: what it is to lead to is
//! asked first, then one change of routes moves the name.
//!
//! Where more than one node takes part, the nodes of both ends are told of both before: each takes visitors of the name, and
//! brings them to what it leads to, by the ways between nodes. So the name moves at all nodes with the same change, and
//! nobody is lost who comes to a node that is none of its own yet, or none any more. Where nodes have no way to each other,
//! the former ones go on to serve what they did. Then the record changes; the former nodes take visitors until resolvers
//! have forgotten them, which is awaited in the background: the name can be led back at once meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::Utc;
use corpus_api::names::AliasTarget;
use corpus_domain::{DnsName, DnsNameId, Environment, GuestId, GuestName, JobKind, NodeId};
use corpus_protocol::{Answer, AskedSite, Request};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::name_attach::{PROPAGATION, addresses, dns_failed, provider};
use super::node_calls::{SHORT, apply_beside, apply_name, ask, ask_once};
use crate::dns::authority::{AuthorityError, wait_until_all_answered};
use crate::dns::{Content, Owner, Record};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::balance::{self, Proof};
use crate::store::guests::GuestRow;
use crate::store::names::{self, Held, NameRow};
use crate::store::{links, name_switches, pointers, spread};

/// A name moves to other nodes where resolvers may keep its record for no longer: so long the former ones take its visitors.
pub const LONGEST_TTL_S: u32 = 300;
/// How long the switch before may take to end: that, and what the nodes need.
const EARLIER_LIMIT: Duration = Duration::from_mins(7);
/// How long nodes may take to find their ways to each other.
const WAYS_LIMIT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(300);

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
    /// Whether what it leads to, or is to, is on several nodes.
    #[serde(default)]
    spread: bool,
    /// Whether the nodes are others then; none: the job is of an earlier release, and only between single nodes they are.
    #[serde(default)]
    moves: Option<bool>,
}

/// Where the ends of a switch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Whether one of them is on several nodes.
    pub spread: bool,
    /// Whether they are on different nodes.
    pub moves: bool,
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
    Extent { spread, moves }: Extent,
    title: String,
) -> NewJob<Params> {
    let mut locks = vec![Lock::exclusive("name", name.id), Lock::shared("guest", to.guest), Lock::node_shared(to.node)];
    if from.node != to.node {
        locks.push(Lock::node_shared(from.node));
    }
    locks.extend(aliases.iter().map(|alias| Lock::exclusive("name", alias.id)));
    let params = Params { id: name.id, name: name.name.clone(), from, to, spread, moves: Some(moves) };
    NewJob::new(title, params).guest(guest.id).project(guest.project_id).node(guest.node_id).locks(locks)
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("proven", "Ask what it is to lead to", proven))
        .step(
            Step::new("ways", "Open the ways between its nodes", ways)
                .undo(ways_back)
                .undo_retry(Retry::times(20))
                .limit(EARLIER_LIMIT),
        )
        .step(Step::new("switch", "Route it there", switch).undo(back).undo_retry(Retry::times(20)))
        .step(
            Step::new("record", "Write the record", record)
                .undo(record_back)
                .undo_retry(Retry::times(20))
                .retry(Retry::times(8)),
        )
        .step(Step::new("answered", "Wait for the authoritative server", answered).limit(PROPAGATION * 2))
        .step(Step::new("settled", "Let its former nodes go", settled).not_cancellable().retry(Retry::times(20)))
}

impl Params {
    /// Whether more than one node takes part.
    fn is_wide(&self) -> bool {
        self.spread || self.from.node != self.to.node
    }

    /// Whether the record changes.
    fn moves(&self) -> bool {
        self.moves.unwrap_or(self.from.node != self.to.node && !self.spread)
    }

    /// The node of the guest that it leads to now.
    fn node(&self, row: &NameRow) -> NodeId {
        if row.guest_id == self.to.guest { self.to.node } else { self.from.node }
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

/// The nodes of both ends take its visitors from now on, and reach what it leads to, and is to.
async fn ways(ctx: Ctx) -> Result<(), StepError> {
    earlier_is_over(&ctx).await?;
    if !ctx.params().is_wide() {
        return Ok(());
    }
    let Params { id, to, .. } = ctx.params();
    let mut tx = ctx.begin().await?;
    let row = names::get(&mut tx, *id).await?.ok_or_else(|| StepError::permanent("the name is gone"))?;
    if (row.guest_id, row.environment) != (to.guest, to.environment) {
        name_switches::prepare(&mut tx, *id, (to.guest, to.environment)).await?;
    }
    tx.commit().await?;
    apply_name(&ctx, *id).await?;
    reached(&ctx).await
}

/// Who comes to the nodes of an earlier switch is served until nobody does; then it may go elsewhere. To lead it back
/// where it came from it takes no waiting.
async fn earlier_is_over(ctx: &Ctx) -> Result<(), StepError> {
    let Params { id, to, .. } = ctx.params();
    let mut conn = ctx.services().db.acquire().await?;
    let former = name_switches::former(&mut conn, *id).await?;
    drop(conn);
    let Some(former) = former.filter(|one| (one.guest, one.environment) != (to.guest, to.environment)) else {
        return Ok(());
    };
    let left = former.until.and_then(|until| (until - Utc::now()).to_std().ok()).unwrap_or_default();
    if !left.is_zero() {
        let _waiting = ctx.waiting_for("resolvers to forget its switch before");
        ctx.or_cancelled(async {
            sleep(ctx.paced(left)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    }
    end(ctx).await
}

/// The name has one end; all nodes of both are told.
async fn end(ctx: &Ctx) -> Result<(), StepError> {
    let id = ctx.params().id;
    let mut tx = ctx.begin().await?;
    let beside = links::of_name(&mut tx, id).await?;
    name_switches::settle(&mut tx, id).await?;
    tx.commit().await?;
    apply_beside(ctx, &beside).await.map(drop)
}

/// Waits until the other nodes reach the guests that the name is to lead to. Where one does not, it will serve what is
/// there.
async fn reached(ctx: &Ctx) -> Result<(), StepError> {
    let Params { id, to, .. } = ctx.params();
    let mut conn = ctx.services().db.acquire().await?;
    let nodes = links::of_name(&mut conn, *id).await?;
    let proof = balance::proof(&mut conn, to.guest, to.environment).await?;
    drop(conn);
    let there: BTreeSet<NodeId> = proof.guests.iter().map(|(node, ..)| *node).collect();
    let guests: BTreeSet<GuestName> = proof.guests.into_iter().map(|(_, guest, _)| guest).collect();
    let until = Instant::now() + ctx.paced(WAYS_LIMIT);
    for node in nodes.own.union(&nodes.others).filter(|node| !there.contains(node)) {
        while let Some(lacks) = unreached(ctx, *node, &guests).await {
            if Instant::now() >= until {
                ctx.log(format!("from a node that it is switched away from {lacks}: there it is served as before, until nobody comes"));
                break;
            }
            ctx.or_cancelled(async {
                sleep(ctx.paced(POLL_INTERVAL)).await;
                Ok::<(), StepError>(())
            })
            .await?;
        }
    }
    Ok(())
}

/// Which of the guests a node has no way to, in words.
async fn unreached(ctx: &Ctx, node: NodeId, guests: &BTreeSet<GuestName>) -> Option<String> {
    let reading = match ask_once(ctx, node, Request::Read, SHORT).await {
        Ok(Answer::Reading(reading)) => reading,
        Ok(_) => return Some("nothing is told".to_owned()),
        Err(error) => return Some(format!("nothing is told ({})", error.message)),
    };
    let takes = |guest: &&GuestName| reading.members.iter().any(|member| member.guest == **guest && member.takes);
    let guest = guests.iter().find(|guest| !takes(guest))?;
    let seen = reading.members.iter().find(|member| member.guest == *guest).map(|member| member.seen.as_str());
    Some(format!("{guest} is not reached ({})", seen.unwrap_or("there is no way")))
}

/// Its nodes go on to take those who were told of them meanwhile.
async fn ways_back(ctx: Ctx) -> Result<(), StepError> {
    if ctx.params().is_wide() { last(&ctx).await } else { Ok(()) }
}

async fn switch(ctx: Ctx) -> Result<(), StepError> {
    let Params { id, from, to, .. } = ctx.params();
    lead(&ctx, *id, from, to).await?;
    apply_name(&ctx, *id).await
}

async fn back(ctx: Ctx) -> Result<(), StepError> {
    lead_back(&ctx).await
}

async fn lead_back(ctx: &Ctx) -> Result<(), StepError> {
    let Params { id, from, to, .. } = ctx.params();
    lead(ctx, *id, to, from).await?;
    apply_name(ctx, *id).await
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
    let is_wide = ctx.params().is_wide();
    if !name_switches::switch(&mut tx, id, from.guest, (to.guest, to.environment), is_wide).await? {
        return Err(StepError::permanent(format!("{} leads to {} by now", row.name, row.guest)));
    }
    Ok(tx.commit().await?)
}

async fn record(ctx: Ctx) -> Result<(), StepError> {
    write_record(&ctx).await
}

/// The record says where the name leads to: so it leads back first, and is not written again by who compares the two.
async fn record_back(ctx: Ctx) -> Result<(), StepError> {
    lead_back(&ctx).await?;
    write_record(&ctx).await
}

async fn write_record(ctx: &Ctx) -> Result<(), StepError> {
    let Some((row, held)) = moved(ctx).await? else { return Ok(()) };
    say_where(ctx, &row, held, ctx.params().node(&row)).await
}

/// The record of a name says where it leads to: to its guest's node, or to all nodes of its environment.
pub(super) async fn say_where<P: JobParams>(
    ctx: &StepContext<Services, P>,
    row: &NameRow,
    held: Held,
    node: NodeId,
) -> Result<(), StepError> {
    let addresses = addresses(ctx, row.id, node).await?;
    let said: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let (owner, content) = (Owner::new(row.name.clone(), row.wildcard), Content::Addresses(addresses));
    let record = Record { zone: held.zone, owner, content, ttl_s: held.ttl_s };
    ctx.still_ours().await?;
    provider(ctx.services(), &held.provider)?.dns.ensure_record(&record).await.map_err(dns_failed)?;
    ctx.log(format!("{} is {}", row.name, said.join(" and ")));
    let mut tx = ctx.begin().await?;
    let said = spread::addresses(&mut tx, row.id).await?;
    spread::spread(&mut tx, row.id, &said).await?;
    Ok(tx.commit().await?)
}

/// The name, and who holds the record that changes; none where it stays on its nodes. The handler lets no name move there
/// whose zone is not ours.
async fn moved(ctx: &Ctx) -> Result<Option<(NameRow, Held)>, StepError> {
    if !ctx.params().moves() {
        return Ok(None);
    }
    let mut conn = ctx.services().db.acquire().await?;
    let row = names::get(&mut conn, ctx.params().id).await?;
    let row = row.ok_or_else(|| StepError::permanent("the name is gone"))?;
    let held = row.held.clone().ok_or_else(|| StepError::permanent("its zone is not ours any more"))?;
    Ok(Some((row, held)))
}

async fn answered(ctx: Ctx) -> Result<(), StepError> {
    let Some((row, held)) = moved(&ctx).await? else { return Ok(()) };
    let wanted = addresses(&ctx, row.id, ctx.params().node(&row)).await?;
    let authority = provider(ctx.services(), &held.provider)?.authority;
    let all_answered = wait_until_all_answered(authority, &row.name, &wanted, PROPAGATION);
    let unanswered = |error: AuthorityError| {
        StepError::transient(error.to_string()).while_waiting_for("the authoritative server to answer").caused_by(error)
    };
    ctx.or_cancelled(async { all_answered.await.map_err(unanswered) }).await?;
    let mut tx = ctx.begin().await?;
    names::answered(&mut tx, ctx.params().id).await?;
    Ok(tx.commit().await?)
}

async fn settled(ctx: Ctx) -> Result<(), StepError> {
    if ctx.params().is_wide() { last(&ctx).await } else { Ok(()) }
}

/// Resolvers keep the former addresses for as long as their record said; where they are the same, nobody has to be awaited.
async fn last(ctx: &Ctx) -> Result<(), StepError> {
    let Params { id, .. } = ctx.params();
    if !ctx.params().moves() {
        return end(ctx).await;
    }
    let mut tx = ctx.begin().await?;
    let held = names::get(&mut tx, *id).await?.and_then(|row| row.held);
    let kept_s = held.map_or(LONGEST_TTL_S, |held| held.ttl_s.min(LONGEST_TTL_S));
    let left = ctx.paced(Duration::from_secs(kept_s.into()));
    name_switches::settle_at(&mut tx, *id, left.as_secs_f64()).await?;
    Ok(tx.commit().await?)
}
