//! Repairing a node in service: what drifted is brought back to what the rows say.
//!
//! Nothing is made that was not there before, so nothing is undone; each step can be repeated.
//! What no repair can mend is named with what a person can do: a container that is gone (its
//! guest is marked failed), and one that no guest stands for (it is never touched).

use std::net::Ipv4Addr;
use std::time::Duration;

use corpus_domain::{DriftKind, Driver, GuestState, JobKind, NodeId};
use corpus_protocol::{Answer, Difference, GuestSetup, Request};
use serde::{Deserialize, Serialize};

use super::guest_configure;
use super::node_calls::{SHORT, apply, ask, bring_keys, endpoint, failed, resolv_conf};
use super::node_images::{bring, bring_usual};
use super::node_initialize::LONG;
use crate::drift::{Expected, certain, differences};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::services::Services;
use crate::store::drift::{self, Wanted};
use crate::store::nodes::Node;
use crate::store::{guests, images};

/// How long a guest may take to shut down before it is killed.
const GRACE_S: u32 = 20;
/// How long all guests of a node may take.
const ALL_GUESTS: Duration = Duration::from_mins(10);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NodeRepair;
}

type Ctx = StepContext<Services, Params>;

/// The job for a node in service. It has the node for itself: nothing else changes meanwhile.
pub fn job(node: &Node) -> NewJob<Params> {
    NewJob::new(format!("Repair node {}", node.address), Params { node: node.id })
        .node(node.id)
        .locks([Lock::node(node.id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("look", "Look at what differs", look).retry(Retry::times(4)))
        .step(Step::new("image", "Bring the image if it is missing", image).limit(LONG))
        .step(
            Step::new("apply", "Apply bridge, firewall, proxy and routes", network).limit(LONG).retry(Retry::times(4)),
        )
        .step(Step::new("guests", "Start and stop guests as they should be", power).limit(ALL_GUESTS))
        .step(Step::new("keys", "Bring SSH keys", keys).limit(ALL_GUESTS))
        .step(Step::new("verify", "Look again", verify).retry(Retry::times(3)))
}

async fn look(ctx: Ctx) -> Result<(), StepError> {
    let found = check(&ctx).await?;
    if found.is_empty() {
        ctx.log("nothing differs");
    }
    for one in &found {
        ctx.log(told(one));
    }
    Ok(())
}

async fn image(ctx: Ctx) -> Result<(), StepError> {
    let wanted = expected(&ctx).await?.images;
    let Answer::Images { images } = ask(&ctx, ctx.params().node, Request::ListImages, SHORT).await? else {
        return Err(StepError::permanent("the agent answered something else than its images"));
    };
    for label in wanted.iter().filter(|label| !images.iter().any(|(there, _)| there == *label)) {
        let mut conn = ctx.services().db.acquire().await?;
        let version = images::labelled(&mut conn, label).await?;
        drop(conn);
        match version {
            Some(version) => bring(&ctx, ctx.params().node, &version).await?,
            None => bring_usual(&ctx, ctx.params().node).await?,
        }
    }
    Ok(())
}

/// A node that was set up by an older release may lack a package.
async fn network(ctx: Ctx) -> Result<(), StepError> {
    let driver = ask(&ctx, ctx.params().node, Request::EnsureDriver { driver: Driver::Lxc }, LONG).await;
    match driver {
        // A node without a source of packages can still have everything else repaired.
        Err(error) if error.kind == StepErrorKind::Permanent => ctx.log(format!("the driver stays as it is: {error}")),
        other => drop(other?),
    }
    apply(&ctx, ctx.params().node).await
}

/// Each guest is tried, so that one that does not start leaves no other as it is.
async fn power(ctx: Ctx) -> Result<(), StepError> {
    let node = ctx.params().node;
    let Answer::Reading(reading) = ask(&ctx, node, Request::Read, SHORT).await? else {
        return Err(StepError::permanent("the agent answered something else than a reading"));
    };
    let mut refused = Vec::new();
    for guest in wanted(&ctx).await? {
        let seen = reading.guests.iter().find(|seen| seen.name == guest.name).map(|seen| seen.state);
        if let Err(error) = settle(&ctx, &guest, seen).await {
            if ctx.is_cancelled() {
                return Err(error);
            }
            refused.push(format!("{}: {error}", guest.name));
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(StepError::permanent(refused.join("; "))) }
}

async fn settle(ctx: &Ctx, guest: &Wanted, seen: Option<GuestState>) -> Result<(), StepError> {
    if !matches!(guest.state, GuestState::Running | GuestState::Stopped) {
        return Ok(());
    }
    let (node, name) = (ctx.params().node, guest.name.clone());
    if seen.is_some() {
        ask(ctx, node, Request::EnsureLimits { name: name.clone(), limits: guest.limits }, SHORT).await?;
        guest_configure::bring(ctx, node, guest.id).await?;
    }
    match seen {
        None => mark(ctx, guest, GuestState::Failed, Some(guests::GONE)).await,
        Some(GuestState::Stopped) if guest.should_run => {
            ask(ctx, node, Request::EnsureRunning { name }, SHORT).await?;
            ctx.log(format!("{}: started", guest.name));
            mark(ctx, guest, GuestState::Running, None).await
        }
        Some(GuestState::Running) if !guest.should_run => {
            let request = Request::EnsureStopped { name, grace_s: GRACE_S };
            ask(ctx, node, request, Duration::from_mins(1)).await?;
            ctx.log(format!("{}: stopped", guest.name));
            mark(ctx, guest, GuestState::Stopped, None).await
        }
        Some(_) => Ok(()),
    }
}

async fn mark(ctx: &Ctx, guest: &Wanted, to: GuestState, reason: Option<&str>) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    guests::set_state(&mut tx, guest.id, &[GuestState::Running, GuestState::Stopped], to, reason).await?;
    Ok(tx.commit().await?)
}

/// A stopped guest gets its keys when it is started; one that was made before guests had a resolver
/// gets to know it. Each is tried, so that one whose root spoiled its files leaves no other without.
async fn keys(ctx: Ctx) -> Result<(), StepError> {
    let gateway = super::node_calls::node(&ctx, ctx.params().node).await?.network.gateway();
    let mut refused = Vec::new();
    for guest in wanted(&ctx).await?.iter().filter(|guest| guest.state == GuestState::Running) {
        if let Err(error) = equip(&ctx, guest, gateway).await {
            if ctx.is_cancelled() || error.waiting_for.is_some() {
                return Err(error);
            }
            refused.push(format!("{}: {error}", guest.name));
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(StepError::permanent(refused.join("; "))) }
}

async fn equip(ctx: &Ctx, guest: &Wanted, gateway: Ipv4Addr) -> Result<(), StepError> {
    let node = ctx.params().node;
    bring_keys(ctx, node, guest.id, &guest.name).await?;
    let setup = GuestSetup { files: vec![resolv_conf(gateway, true)], ..GuestSetup::default() };
    let request = Request::SetUpGuest { name: guest.name.clone(), id: Some(guest.id), setup: Box::new(setup) };
    ask(ctx, node, request, SHORT).await.map(drop)
}

async fn verify(ctx: Ctx) -> Result<(), StepError> {
    let found = check(&ctx).await?;
    keep(&ctx, &found).await?;
    for one in found.iter().filter(|one| !one.kind.is_mendable()) {
        ctx.log(format!("{}; {}", told(one), advice(one.kind)));
    }
    let left: Vec<String> = found.iter().filter(|one| one.kind.is_mendable()).map(told).collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(StepError::transient(format!("this still differs: {}", left.join("; "))))
}

/// The page shows at once what is left.
async fn keep(ctx: &Ctx, found: &[Difference]) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let known = drift::known(&mut tx, ctx.params().node).await?;
    let left = certain(&known, found, found, chrono::Utc::now());
    drift::keep(&mut tx, ctx.params().node, &left).await?;
    Ok(tx.commit().await?)
}

fn told(one: &Difference) -> String {
    one.guest.as_ref().map_or_else(|| one.text.clone(), |guest| format!("{guest}: {}", one.text))
}

/// What a person can do about what a repair can't mend.
fn advice(kind: DriftKind) -> &'static str {
    match kind {
        DriftKind::Gone => "the guest is marked failed: destroy it to free its name, then request it again",
        _ => "it was not touched: remove it with lxc-destroy on the node if nobody needs it",
    }
}

async fn expected(ctx: &Ctx) -> Result<Expected, StepError> {
    let expected = Expected::read(ctx.services(), ctx.params().node).await?;
    expected.ok_or_else(|| StepError::permanent("the node is not linked any more"))
}

async fn wanted(ctx: &Ctx) -> Result<Vec<Wanted>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    Ok(drift::wanted(&mut conn, ctx.params().node).await?)
}

async fn check(ctx: &Ctx) -> Result<Vec<Difference>, StepError> {
    let node = ctx.params().node;
    let endpoint = endpoint(ctx, node).await?;
    let mut found = Vec::new();
    for request in expected(ctx).await?.requests() {
        let answer = ask(ctx, node, request, SHORT).await?;
        found.extend(differences(&endpoint, answer).map_err(|error| failed(&endpoint, error))?);
    }
    Ok(found)
}
