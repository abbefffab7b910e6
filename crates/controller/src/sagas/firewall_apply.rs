//! Bringing a change of rules to the firewalls of nodes.
//!
//! The rows are changed with the request already, so whatever else brings a node its plan meanwhile brings the
//! change too. When one of the nodes can't take it, it is taken back on all of them: a rule is in force wherever it
//! should be, or nowhere.

use std::time::Duration;

use corpus_domain::{JobKind, NodeId, RuleState};
use serde::{Deserialize, Serialize};

use super::node_calls::apply;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::firewall::{self, RuleChange};
use crate::store::nodes;

/// How long all nodes together may take, one after the other.
const ALL_NODES: Duration = Duration::from_mins(10);

/// What the job is about: the change stands beside the nodes, where the list of rules looks for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    nodes: Vec<NodeId>,
    #[serde(flatten)]
    change: RuleChange,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::FirewallApply;
}

type Ctx = StepContext<Services, Params>;

/// The job for rows that are changed. Nodes whose guests come to guests of others are the last: the way is there when it is
/// led to, and led to no more when it goes.
pub fn job(title: impl Into<String>, mut nodes: Vec<NodeId>, change: RuleChange) -> NewJob<Params> {
    if change.added.is_empty() && !change.removed.is_empty() {
        nodes.reverse();
    }
    let locks: Vec<Lock> = nodes.iter().map(|node| Lock::node_shared(*node)).collect();
    let one = match nodes.as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    let job = NewJob::new(title, Params { nodes, change }).locks(locks);
    match one {
        Some(node) => job.node(node),
        None => job,
    }
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("rules", "Note the change", rules).undo(put_back))
        .step(
            Step::new("apply", "Bring it to the firewalls", bring)
                .retry(Retry::times(4))
                .limit(ALL_NODES)
                .undo(take_back)
                .undo_retry(Retry::times(20))
                .undo_limit(ALL_NODES),
        )
        .step(Step::new("in_force", "Mark as in force", in_force).not_cancellable())
}

/// The rows are as they were written with the request.
async fn rules(ctx: Ctx) -> Result<(), StepError> {
    let RuleChange { added, removed, .. } = &ctx.params().change;
    let mut tx = ctx.begin().await?;
    firewall::set_state(&mut tx, added, RuleState::Wanted).await?;
    firewall::set_state(&mut tx, removed, RuleState::Removing).await?;
    Ok(tx.commit().await?)
}

async fn put_back(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    firewall::left_by(&mut tx, ctx.params().change.clone()).await?;
    Ok(tx.commit().await?)
}

async fn bring(ctx: Ctx) -> Result<(), StepError> {
    apply_all(&ctx, ctx.params().nodes.iter()).await
}

async fn take_back(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    firewall::left_by(&mut tx, ctx.params().change.clone()).await?;
    tx.commit().await?;
    apply_all(&ctx, ctx.params().nodes.iter().rev()).await
}

/// One after the other: each takes what the rows say when it is its turn. One that was unlinked meanwhile has no rules.
async fn apply_all(ctx: &Ctx, nodes: impl Iterator<Item = &NodeId> + Send) -> Result<(), StepError> {
    for node in nodes {
        let is_linked = nodes::is_linked(&mut *ctx.services().db.acquire().await?, *node).await?;
        if is_linked {
            apply(ctx, *node).await?;
        }
    }
    Ok(())
}

async fn in_force(ctx: Ctx) -> Result<(), StepError> {
    let RuleChange { added, removed, .. } = &ctx.params().change;
    let mut tx = ctx.begin().await?;
    firewall::set_state(&mut tx, added, RuleState::InForce).await?;
    firewall::delete(&mut tx, removed).await?;
    Ok(tx.commit().await?)
}
