//! Changing what of a guest is changed later: whether its node starts it at boot, and the lines of its configuration.
//!
//! A setting that is in the database alone would come to be at some start that nobody thinks of, and one that is on the
//! node alone would be lost with the next move. So the row has it from the request on, which is what every start, repair
//! and move goes by, and the job makes the node's configuration say so at once. What runs goes on as it is.

use std::time::Duration;

use corpus_domain::{GuestId, GuestName, JobKind, NodeId};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::node_calls::ask;
use crate::jobs::{Job, JobParams, Lock, NewJob, Step, StepContext, StepError, StepErrorKind};
use crate::services::Services;
use crate::store::guests;
use crate::store::guests::GuestRow;
use crate::store::lxc_lines::{self, Settings};

const LIMIT: Duration = Duration::from_secs(30);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    node: NodeId,
    from: Settings,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestConfigure;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest whose settings were these until now.
pub fn job(guest: &GuestRow, from: Settings) -> NewJob<Params> {
    let params = Params { guest: guest.id, name: guest.name.clone(), node: guest.node_id, from };
    NewJob::new(format!("Configure guest {}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::shared("guest", guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new().step(Step::new("configure", "Write its configuration", configure).undo(give_back))
}

async fn configure(ctx: Ctx) -> Result<(), StepError> {
    bring(&ctx, ctx.params().node, ctx.params().guest).await
}

/// Its start writes what the row says, so a node that refuses now keeps nothing that stays.
async fn give_back(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, node, from, .. } = ctx.params().clone();
    let mut tx = ctx.begin().await?;
    lxc_lines::set_settings(&mut tx, guest, &from).await?;
    tx.commit().await?;
    match bring(&ctx, node, guest).await {
        Err(error) if error.kind == StepErrorKind::Permanent => {
            ctx.log(format!("its configuration is written again when it starts: {error}"));
            Ok(())
        }
        other => other,
    }
}

/// The configuration of the guest on its node says what its row does.
pub(super) async fn bring<P: JobParams>(
    ctx: &StepContext<Services, P>,
    node: NodeId,
    guest: GuestId,
) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let row = guests::get(&mut conn, guest).await?;
    let row = row.ok_or_else(|| StepError::permanent("the guest's row is gone"))?;
    let lines = lxc_lines::of_guest(&mut conn, guest).await?;
    drop(conn);
    let request = Request::EnsureSettings { name: row.name, id: guest, autostart: row.autostart, lines };
    ask(ctx, node, request, LIMIT).await.map(drop)
}
