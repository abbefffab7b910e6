//! Bringing the certificate and the HTTPS of a name to its node, after they were changed: by an upload, by a setting, or
//! because the internal authority signed anew.
//!
//! The rows say what is wanted, and are committed with the job. So nothing is undone: a node that is away is brought to
//! it when it is back, by the repair of what drifted.

use corpus_domain::{DnsNameId, JobKind, NodeId};
use serde::{Deserialize, Serialize};

use super::node_calls::apply_name;
use crate::dns::Owner;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::names::NameRow;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    id: DnsNameId,
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NameConfigure;
}

/// The job for a name whose rows were changed.
pub fn job(name: &NameRow, guest: &GuestRow) -> NewJob<Params> {
    let title = format!("Configure HTTPS of {}", Owner::new(name.name.clone(), name.wildcard));
    NewJob::new(title, Params { id: name.id, node: guest.node_id })
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::shared("guest", guest.id), Lock::node_shared(guest.node_id), Lock::exclusive("name", name.id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new().step(Step::new("routes", "Bring it to the node", routes).retry(Retry::times(8)))
}

async fn routes(ctx: StepContext<Services, Params>) -> Result<(), StepError> {
    apply_name(&ctx, ctx.params().id).await
}
