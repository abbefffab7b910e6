//! Initializing a node: driver, bridge, firewall, proxy, image, room for guests.
//!
//! It can be repeated on a node that takes guests already: everything is brought to what it
//! should be, and an undo then leaves the node as it was, in service.

use std::time::Duration;

use corpus_domain::{Driver, JobKind, NodeId, NodeState};
use corpus_protocol::{Answer, Request};
use serde::{Deserialize, Serialize};

use super::node_calls::{SHORT, apply, ask, node};
use super::node_images::bring_usual;
use super::node_link::read_facts;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::nodes;
use crate::store::nodes::Node;

/// How many guests a node takes at most, however small they are.
const MAX_GUESTS: u32 = 4096;

/// How long packages or an image may take.
pub(super) const LONG: Duration = Duration::from_mins(20);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    node: NodeId,
    /// Whether the node takes guests already: then nothing is taken down by an undo.
    in_service: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NodeInitialize;
}

type Ctx = StepContext<Services, Params>;

/// The job for a node whose state was set to initializing; `node` is as it was before.
pub fn job(node: &Node) -> NewJob<Params> {
    let in_service = node.state == NodeState::Ready || node.guests > 0;
    NewJob::new(format!("Initialize node {}", node.address), Params { node: node.id, in_service })
        .node(node.id)
        .locks([Lock::node(node.id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("mark", "Mark as initializing", mark).undo(unmark))
        .step(Step::new("facts", "Check access and facts", facts).retry(Retry::times(6)))
        .step(
            Step::new("driver", "Install the lxc driver", driver)
                .limit(LONG)
                .undo(take_down)
                .undo_retry(Retry::times(20)),
        )
        .step(
            Step::new("network", "Set up bridge, firewall and proxy", network)
                .undo(take_down)
                .undo_retry(Retry::times(20)),
        )
        .step(Step::new("image", "Bring the image", image).limit(LONG))
        .step(Step::new("slots", "Count slots", slots))
        .step(Step::new("ready", "Mark as ready", ready))
}

async fn mark(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    nodes::set_state(&mut tx, ctx.params().node, NodeState::ALL, NodeState::Initializing, None).await?;
    Ok(tx.commit().await?)
}

async fn unmark(ctx: Ctx) -> Result<(), StepError> {
    let before = if ctx.params().in_service { NodeState::Ready } else { NodeState::Linked };
    let during = [NodeState::Initializing, NodeState::Ready];
    let mut tx = ctx.begin().await?;
    nodes::set_state(&mut tx, ctx.params().node, &during, before, None).await?;
    Ok(tx.commit().await?)
}

async fn facts(ctx: Ctx) -> Result<(), StepError> {
    read_facts(&ctx, ctx.params().node).await
}

async fn driver(ctx: Ctx) -> Result<(), StepError> {
    ask(&ctx, ctx.params().node, Request::EnsureDriver { driver: Driver::Lxc }, LONG).await.map(drop)
}

async fn network(ctx: Ctx) -> Result<(), StepError> {
    apply(&ctx, ctx.params().node).await
}

async fn take_down(ctx: Ctx) -> Result<(), StepError> {
    if ctx.params().in_service {
        return Ok(());
    }
    ask(&ctx, ctx.params().node, Request::RemoveNode, Duration::from_mins(2)).await.map(drop)
}

async fn image(ctx: Ctx) -> Result<(), StepError> {
    bring_usual(&ctx, ctx.params().node).await
}

async fn slots(ctx: Ctx) -> Result<(), StepError> {
    let Answer::Reading(reading) = ask(&ctx, ctx.params().node, Request::Read, SHORT).await? else {
        return Err(StepError::permanent("the agent answered something else than a reading"));
    };
    let mut tx = ctx.begin().await?;
    nodes::set_reading(&mut tx, ctx.params().node, &reading).await?;
    nodes::set_slots(&mut tx, ctx.params().node, MAX_GUESTS).await?;
    tx.commit().await?;
    let node = node(&ctx, ctx.params().node).await?;
    if let Some(free) = node.free() {
        ctx.log(format!(
            "{free} can be promised: {} more guests of size small",
            node.slots.saturating_sub(node.guests)
        ));
    }
    Ok(())
}

async fn ready(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let from = [NodeState::Initializing, NodeState::Ready];
    nodes::set_state(&mut tx, ctx.params().node, &from, NodeState::Ready, None).await?;
    tx.commit().await?;
    // The others learn now that it is there, and it is told once more before it has a guest.
    ctx.services().surroundings_changed.notify_one();
    Ok(())
}
