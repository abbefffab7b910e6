//! Rebooting a node in good order: no guest comes to it meanwhile, those that run leave their balance and are shut down,
//! the node boots, and they are back when each was entered.
//!
//! What is written down is how things should be, and that does not change: a guest that should run should run before,
//! during and after. So a job that is cut anywhere goes on, and one that is given up starts what it stopped.

use std::time::Duration;

use corpus_domain::{GuestState, JobKind, NodeId, NodeState};
use corpus_protocol::{Answer, Request};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::balance;
use super::guest_create::log_in;
use super::guest_power::GRACE_S;
use super::node_calls::{SHORT, apply, ask, ask_once};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::drift::{self, Wanted};
use crate::store::guests;
use crate::store::nodes::{self, Node};

/// How long the guests of a node may take to stop, or to come up, one after the other.
const ALL_GUESTS: Duration = Duration::from_mins(30);
/// How long a node may take until it answers again.
const BOOT: Duration = Duration::from_mins(20);
/// Between two looks whether it does.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    node: NodeId,
    /// Whether the node takes guests, and so is to take some again.
    takes_guests: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NodeReboot;
}

type Ctx = StepContext<Services, Params>;

/// The job for a node in service, as it was before. It has the node for itself.
pub fn job(node: &Node) -> NewJob<Params> {
    let takes_guests = node.state == NodeState::Ready;
    NewJob::new(format!("Reboot node {}", node.address), Params { node: node.id, takes_guests })
        .node(node.id)
        .locks([Lock::node(node.id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("mark", "Let it take no more guests", mark).undo(unmark))
        .step(Step::new("boot", "See since when it runs", since))
        .step(
            Step::new("stop", "Shut its guests down", stop)
                .limit(ALL_GUESTS)
                .undo(start_again)
                .undo_limit(ALL_GUESTS)
                .undo_retry(Retry::times(20)),
        )
        .step(Step::new("reboot", "Reboot", reboot).retry(Retry::times(4)))
        .step(Step::new("back", "Wait until it answers again", back).limit(BOOT * 2))
        .step(Step::new("apply", "Apply bridge, firewall, proxy and routes", network).retry(Retry::times(8)))
        .step(Step::new("start", "Start its guests", start).limit(ALL_GUESTS).retry(Retry::times(4)))
        .step(Step::new("ping", "Log in to each over SSH", prove).limit(ALL_GUESTS))
        .step(Step::new("ready", "Let it take guests again", unmark))
}

async fn mark(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    nodes::set_state(&mut tx, ctx.params().node, &[NodeState::Ready], NodeState::Draining, None).await?;
    Ok(tx.commit().await?)
}

async fn unmark(ctx: Ctx) -> Result<(), StepError> {
    if !ctx.params().takes_guests {
        return Ok(());
    }
    let mut tx = ctx.begin().await?;
    nodes::set_state(&mut tx, ctx.params().node, &[NodeState::Draining], NodeState::Ready, None).await?;
    Ok(tx.commit().await?)
}

/// Which of its boots this is.
async fn since(ctx: Ctx) -> Result<String, StepError> {
    match ask(&ctx, ctx.params().node, Request::ReadBoot, SHORT).await? {
        Answer::Boot { id, .. } => Ok(id),
        _ => Err(StepError::permanent("the agent answered something else than its boot")),
    }
}

/// Its guests, but for those that failed and wait for somebody, in the order in which they come up.
async fn settled(ctx: &Ctx) -> Result<Vec<Wanted>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let mut all = drift::wanted(&mut conn, ctx.params().node).await?;
    drop(conn);
    all.retain(|guest| matches!(guest.state, GuestState::Running | GuestState::Stopped));
    all.sort_by_key(|guest| std::cmp::Reverse(guest.environment));
    Ok(all)
}

/// Those of them that should run.
async fn running(ctx: &Ctx) -> Result<Vec<Wanted>, StepError> {
    let mut all = settled(ctx).await?;
    all.retain(|guest| guest.should_run);
    Ok(all)
}

/// Prod goes last and comes first.
async fn stop(ctx: Ctx) -> Result<(), StepError> {
    let guests = running(&ctx).await?;
    let (total, mut done) = (guests.len() as u64, 0);
    for guest in guests.iter().rev() {
        balance::go(&ctx, guest.id, "its node is rebooted").await?;
        let request = Request::EnsureStopped { name: guest.name.clone(), grace_s: GRACE_S };
        ask(&ctx, ctx.params().node, request, Duration::from_mins(1)).await?;
        done += 1;
        ctx.progress(done, total);
    }
    ctx.log(format!("{total} guests are down"));
    Ok(())
}

/// One that does not start is told of, and keeps no other from it.
async fn start_again(ctx: Ctx) -> Result<(), StepError> {
    for guest in running(&ctx).await? {
        let request = Request::EnsureRunning { name: guest.name.clone() };
        match ask(&ctx, ctx.params().node, request, SHORT).await {
            Ok(_) => balance::come_back(&ctx, guest.id).await?,
            Err(error) if error.waiting_for.is_some() => return Err(error),
            Err(error) => ctx.log(format!("{} does not start: {error}", guest.name)),
        }
    }
    Ok(())
}

/// Asked again when it has booted since, it does nothing.
async fn reboot(ctx: Ctx) -> Result<(), StepError> {
    let boot: String = ctx.output("boot")?;
    ask(&ctx, ctx.params().node, Request::Reboot { boot }, SHORT).await.map(drop)
}

async fn back(ctx: Ctx) -> Result<(), StepError> {
    let before: String = ctx.output("boot")?;
    let until = Instant::now() + ctx.paced(BOOT);
    let _waiting = ctx.waiting_for("the node to boot");
    loop {
        if let Ok(Answer::Boot { id, .. }) = ask_once(&ctx, ctx.params().node, Request::ReadBoot, SHORT).await
            && id != before
        {
            ctx.log("it is back");
            return Ok(());
        }
        if Instant::now() > until {
            let minutes = BOOT.as_secs() / 60;
            return Err(StepError::permanent(format!("the node did not come back within {minutes} minutes")));
        }
        ctx.or_cancelled(async {
            sleep(ctx.paced(LOOK_AGAIN)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    }
}

async fn network(ctx: Ctx) -> Result<(), StepError> {
    apply(&ctx, ctx.params().node).await
}

/// Each is tried, so that one that does not start leaves no other as it is. One that rested, and that its node starts at
/// each boot, rests on.
async fn start(ctx: Ctx) -> Result<(), StepError> {
    let mut refused = Vec::new();
    for guest in settled(&ctx).await? {
        let name = guest.name.clone();
        let (request, limit) = if guest.should_run {
            (Request::EnsureRunning { name }, SHORT)
        } else {
            (Request::EnsureStopped { name, grace_s: GRACE_S }, Duration::from_mins(1))
        };
        if let Err(error) = ask(&ctx, ctx.params().node, request, limit).await {
            if ctx.is_cancelled() || error.waiting_for.is_some() {
                return Err(error);
            }
            refused.push(format!("{}: {error}", guest.name));
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(StepError::transient(refused.join("; "))) }
}

async fn prove(ctx: Ctx) -> Result<(), StepError> {
    let mut silent = Vec::new();
    for guest in running(&ctx).await? {
        match enter(&ctx, &guest).await {
            Ok(()) => balance::come_back(&ctx, guest.id).await?,
            Err(error) if ctx.is_cancelled() => return Err(error),
            Err(error) => silent.push(format!("{}: {error}", guest.name)),
        }
    }
    if silent.is_empty() { Ok(()) } else { Err(StepError::permanent(silent.join("; "))) }
}

async fn enter(ctx: &Ctx, guest: &Wanted) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let port = guests::get(&mut conn, guest.id).await?.and_then(|row| row.ssh_port);
    drop(conn);
    match port {
        Some(port) => log_in(ctx, ctx.params().node, guest.id, port).await,
        None => Ok(()),
    }
}
