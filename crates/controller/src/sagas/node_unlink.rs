//! Unlinking a node: everything of ours leaves the host, then it is forgotten.

use std::time::Duration;

use corpus_domain::{JobKind, NodeId, NodeState};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::node_calls::{ask_once, endpoint, failed, leave_gateway};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::nodes::{Connection, Credential, NodeError, connect, privilege, remove_agent, revoke};
use crate::services::Services;
use crate::store::nodes;
use crate::store::nodes::Node;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    node: NodeId,
    /// Forget it even when it can't be reached.
    force: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NodeUnlink;
}

type Ctx = StepContext<Services, Params>;

/// The job for a node whose state was set to unlinking.
pub fn job(node: &Node, force: bool) -> NewJob<Params> {
    NewJob::new(format!("Unlink node {}", node.address), Params { node: node.id, force })
        .node(node.id)
        .locks([Lock::node(node.id)])
}

/// The steps. There is no way back; a failure leaves the node `failed`, to be unlinked again.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("mark", "Mark as unlinking", mark).undo(mark_failed))
        .step(
            Step::new("clear", "Remove bridge, firewall, proxy and images", clear)
                .limit(Duration::from_mins(2))
                .retry(Retry::times(4)),
        )
        .step(Step::new("agent", "Remove the agent", leave).retry(Retry::times(4)))
        .step(Step::new("key", "Remove the controller's key", lock_out).retry(Retry::times(8)).not_cancellable())
        .step(Step::new("forget", "Forget the node", forget).not_cancellable())
}

async fn mark(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    nodes::set_state(&mut tx, ctx.params().node, NodeState::ALL, NodeState::Unlinking, None).await?;
    Ok(tx.commit().await?)
}

async fn mark_failed(ctx: Ctx) -> Result<(), StepError> {
    let reason = "it was not unlinked completely; unlink it again, or forget it without reaching it";
    let mut tx = ctx.begin().await?;
    nodes::set_state(&mut tx, ctx.params().node, &[NodeState::Unlinking], NodeState::Failed, Some(reason)).await?;
    Ok(tx.commit().await?)
}

async fn clear(ctx: Ctx) -> Result<(), StepError> {
    let cleared = ask_once(&ctx, ctx.params().node, Request::RemoveNode, Duration::from_mins(2)).await.map(drop);
    forgiven(&ctx, cleared)
}

async fn leave(ctx: Ctx) -> Result<(), StepError> {
    ctx.services().nodes.forget(ctx.params().node);
    let left = entered(&ctx, async |connection| {
        let by = privilege(connection).await?;
        remove_agent(connection, by).await
    });
    forgiven(&ctx, left.await)
}

/// The last that is done on the host, in a step of its own: who is not let in any more when it
/// is repeated has done it before.
async fn lock_out(ctx: Ctx) -> Result<(), StepError> {
    let key = ctx.services().control_key.clone();
    match entered(&ctx, async |connection| revoke(connection, &key).await.map(drop)).await {
        Err(error) if is_locked_out(&error) => ctx.log("the host lets the controller in no more"),
        other => forgiven(&ctx, other)?,
    }
    let left = async { leave_gateway(&ctx, &endpoint(&ctx, ctx.params().node).await?).await };
    forgiven(&ctx, left.await)
}

fn is_locked_out(error: &StepError) -> bool {
    let cause = error.source.as_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(NodeError::Auth { .. }))
}

/// Works on the host over a connection of the job's own.
async fn entered(ctx: &Ctx, work: impl AsyncFnOnce(&Connection) -> Result<(), NodeError>) -> Result<(), StepError> {
    let endpoint = endpoint(ctx, ctx.params().node).await?;
    let credential = Credential::Key(ctx.services().control_key.clone());
    let work = Box::pin(async {
        let connection = connect(&endpoint, &credential).await?;
        work(&connection).await
    });
    ctx.or_cancelled(async { work.await.map_err(|error| failed(&endpoint, error)) }).await
}

/// With `force` a failure is only noted.
fn forgiven(ctx: &Ctx, result: Result<(), StepError>) -> Result<(), StepError> {
    match result {
        Err(error) if ctx.params().force => {
            ctx.log(format!("{error}; going on, as asked"));
            Ok(())
        }
        other => other,
    }
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    ctx.services().nodes.forget(ctx.params().node);
    let mut tx = ctx.begin().await?;
    nodes::delete(&mut tx, ctx.params().node).await?;
    Ok(tx.commit().await?)
}
