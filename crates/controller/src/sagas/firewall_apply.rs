//! Bringing a change of rules to the firewalls of nodes.
//!
//! The rows are changed with the request already, so whatever else brings a node its plan meanwhile brings the
//! change too. When one of the nodes can't take it, it is taken back on all of them: a rule is in force wherever it
//! should be, or nowhere. Only of what goes are nodes whose guests came to guests of others told as far as they answer: it is
//! closed where it led to, and a node that was taken over keeps nothing open by failing.

use std::time::Duration;

use corpus_domain::{JobKind, NodeId, RuleState};
use serde::{Deserialize, Serialize};

use super::node_calls::{apply, tell};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::firewall::{self, RuleChange, RuleNodes};
use crate::store::nodes;

/// How long all nodes together may take, one after the other.
const ALL_NODES: Duration = Duration::from_mins(10);

/// What the job is about: the change stands beside the nodes, where the list of rules looks for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    #[serde(flatten)]
    at: RuleNodes,
    #[serde(flatten)]
    change: RuleChange,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::FirewallApply;
}

type Ctx = StepContext<Services, Params>;

/// The job for rows that are changed.
pub fn job(title: impl Into<String>, at: impl Into<RuleNodes>, change: RuleChange) -> NewJob<Params> {
    let at = at.into();
    let all: Vec<NodeId> = at.nodes.iter().chain(&at.coming).copied().collect();
    let job = NewJob::new(title, Params { at, change }).locks(all.iter().map(|node| Lock::node_shared(*node)));
    match all.as_slice() {
        [one] => job.node(*one),
        _ => job,
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
    let goes = ctx.params().change.added.is_empty() && !ctx.params().change.removed.is_empty();
    apply_all(&ctx, goes).await
}

async fn take_back(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    firewall::left_by(&mut tx, ctx.params().change.clone()).await?;
    tx.commit().await?;
    apply_all(&ctx, true).await
}

/// One after the other: each takes what the rows say when it is its turn; where something only `goes`, those whose guests
/// came as far as they answer. One that was unlinked meanwhile has no rules.
async fn apply_all(ctx: &Ctx, goes: bool) -> Result<(), StepError> {
    let RuleNodes { nodes, coming } = &ctx.params().at;
    for node in linked(ctx, nodes).await? {
        apply(ctx, node).await?;
    }
    for node in linked(ctx, coming).await? {
        if goes {
            tell(ctx, node).await?;
        } else {
            apply(ctx, node).await?;
        }
    }
    Ok(())
}

async fn linked(ctx: &Ctx, nodes: &[NodeId]) -> Result<Vec<NodeId>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let mut linked = Vec::new();
    for node in nodes {
        if nodes::is_linked(&mut conn, *node).await? {
            linked.push(*node);
        }
    }
    Ok(linked)
}

async fn in_force(ctx: Ctx) -> Result<(), StepError> {
    let RuleChange { added, removed, .. } = &ctx.params().change;
    let mut tx = ctx.begin().await?;
    firewall::set_state(&mut tx, added, RuleState::InForce).await?;
    firewall::delete(&mut tx, removed).await?;
    Ok(tx.commit().await?)
}
