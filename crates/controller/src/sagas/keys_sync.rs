//! Bringing the members' keys to all guests of a node, after a key or a role has changed.
//!
//! A guest's root can spoil the files that keys are kept in. So a guest to which they can't be brought holds up
//! no other: each is tried, and the job fails at the end with the names of those that are without.

use corpus_domain::{GuestName, GuestState, JobKind, NodeId};
use serde::{Deserialize, Serialize};

use super::node_calls::bring_keys;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::services::Services;
use crate::store::guests;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::KeysSync;
}

/// The job for a node.
pub fn job(node: NodeId, address: &str) -> NewJob<Params> {
    NewJob::new(format!("Bring SSH keys to the guests on {address}"), Params { node })
        .node(node)
        .locks([Lock::node_shared(node), Lock::exclusive("keys", node)])
}

/// The steps. The keys are read when the step runs, so of several such jobs the last is right.
pub fn steps() -> Job<Services, Params> {
    Job::new().step(Step::new("sync", "Bring the keys to each guest", sync).retry(Retry::times(60)))
}

async fn sync(ctx: StepContext<Services, Params>) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let all = guests::on_node(&mut conn, ctx.params().node).await?;
    drop(conn);
    let mut failed: Vec<(GuestName, StepError)> = Vec::new();
    let there = |state| !matches!(state, GuestState::Creating | GuestState::Destroying | GuestState::Failed);
    for guest in all.into_iter().filter(|guest| there(guest.state)) {
        match bring_keys(&ctx, ctx.params().node, guest.id, &guest.name).await {
            Ok(()) => ctx.log(format!("{}: its keys are up to date", guest.name)),
            Err(error) if is_of_the_guest(&error) => {
                ctx.log(format!("{}: {error}", guest.name));
                failed.push((guest.name, error));
            }
            Err(error) => return Err(error),
        }
    }
    outcome(failed)
}

/// Whether the node answers, and it is this one guest to which no keys can be brought.
fn is_of_the_guest(error: &StepError) -> bool {
    error.kind != StepErrorKind::Cancelled && error.waiting_for.is_none()
}

/// Fails with the guests that have no new keys; again only when trying again may help one of them.
fn outcome(failed: Vec<(GuestName, StepError)>) -> Result<(), StepError> {
    if failed.is_empty() {
        return Ok(());
    }
    let passes = failed.iter().any(|(_, error)| error.kind == StepErrorKind::Transient);
    let told: Vec<String> = failed.into_iter().map(|(name, error)| format!("{name}: {error}")).collect();
    let message = format!("the keys could not be brought to each guest: {}", told.join("; "));
    Err(if passes { StepError::transient(message) } else { StepError::permanent(message) })
}
