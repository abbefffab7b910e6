//! Bringing the members' keys to all guests of a node, after a key or a role has changed.

use corpus_domain::{GuestState, JobKind, NodeId};
use serde::{Deserialize, Serialize};

use super::node_calls::bring_keys;
use crate::controller::Services;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
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
    let all = guests::list(&mut conn, guests::Of::Node(ctx.params().node)).await?;
    drop(conn);
    let there = |state| !matches!(state, GuestState::Creating | GuestState::Destroying | GuestState::Failed);
    for guest in all.into_iter().filter(|guest| there(guest.state)) {
        bring_keys(&ctx, ctx.params().node, guest.id, &guest.name).await?;
        ctx.log(format!("{}: its keys are up to date", guest.name));
    }
    Ok(())
}
