//! Starting, stopping and restarting a guest.

use std::time::Duration;

use corpus_domain::{GuestId, GuestName, GuestState, JobKind, NodeId, SshPort};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::balance;
use super::guest_configure;
use super::guest_create::log_in;
use super::node_calls::{SHORT, ask, ask_once, bring_keys};
use crate::jobs::{Job, JobParams, Lock, NewJob, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests;
use crate::store::guests::GuestRow;

/// How long a guest may take to shut down before it is killed.
pub const GRACE_S: u32 = 20;

/// Which guest, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Guest {
    id: GuestId,
    name: GuestName,
    node: NodeId,
    ssh_port: Option<SshPort>,
}

/// One parameter type for each kind, all with the same content.
macro_rules! power {
    ($params:ident, $kind:ident, $job:ident, $title:literal) => {
        #[doc = concat!("What the job \"", $title, "\" is about.")]
        #[derive(Debug, Clone, Serialize, Deserialize)]
        pub struct $params(Guest);

        impl JobParams for $params {
            const KIND: JobKind = JobKind::$kind;
        }

        impl AsRef<Guest> for $params {
            fn as_ref(&self) -> &Guest {
                &self.0
            }
        }

        #[doc = concat!("The job \"", $title, "\" for a guest whose state was set accordingly.")]
        pub fn $job(guest: &GuestRow) -> NewJob<$params> {
            let what = Guest { id: guest.id, name: guest.name.clone(), node: guest.node_id, ssh_port: guest.ssh_port };
            NewJob::new(format!(concat!($title, " {}"), guest.name), $params(what))
                .guest(guest.id)
                .project(guest.project_id)
                .node(guest.node_id)
                .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
        }
    };
}

power!(Start, GuestStart, start, "Start guest");
power!(Stop, GuestStop, stop, "Stop guest");
power!(Restart, GuestRestart, restart, "Restart guest");

/// Starts.
pub fn start_steps() -> Job<Services, Start> {
    Job::new()
        .step(Step::new("start", "Start", run).undo(settle))
        .step(Step::new("sshkeys", "Bring SSH keys", keys))
        .step(Step::new("ping", "Log in over SSH", ping))
        .step(Step::new("ready", "Mark as running", mark_running))
}

/// Stops.
pub fn stop_steps() -> Job<Services, Stop> {
    Job::new().step(Step::new("stop", "Shut down", halt).undo(settle).limit(Duration::from_mins(2))).step(Step::new(
        "stopped",
        "Mark as stopped",
        mark_stopped,
    ))
}

/// Stops and starts.
pub fn restart_steps() -> Job<Services, Restart> {
    Job::new()
        .step(Step::new("stop", "Shut down", halt).undo(settle).limit(Duration::from_mins(2)))
        .step(Step::new("start", "Start", run))
        .step(Step::new("sshkeys", "Bring SSH keys", keys))
        .step(Step::new("ping", "Log in over SSH", ping))
        .step(Step::new("ready", "Mark as running", mark_running))
}

type Ctx<P> = StepContext<Services, P>;

async fn run<P: JobParams + AsRef<Guest>>(ctx: Ctx<P>) -> Result<(), StepError> {
    let guest = ctx.params().as_ref().clone();
    // A guest of before there were limits is held to them from its next start on.
    let mut conn = ctx.services().db.acquire().await?;
    let row = guests::get(&mut conn, guest.id).await?;
    drop(conn);
    if let Some(row) = row {
        ask(&ctx, guest.node, Request::EnsureLimits { name: row.name, limits: row.limits }, SHORT).await?;
        // What operators made of its lines meanwhile.
        guest_configure::bring(&ctx, guest.node, guest.id).await?;
    }
    ask(&ctx, guest.node, Request::EnsureRunning { name: guest.name }, SHORT).await.map(drop)
}

async fn halt<P: JobParams + AsRef<Guest>>(ctx: Ctx<P>) -> Result<(), StepError> {
    let guest = ctx.params().as_ref().clone();
    let reason = if P::KIND == JobKind::GuestRestart { "it is restarted" } else { "it was stopped" };
    balance::go(&ctx, guest.id, reason).await?;
    let request = Request::EnsureStopped { name: guest.name, grace_s: GRACE_S };
    ask(&ctx, guest.node, request, Duration::from_mins(1)).await.map(drop)
}

async fn keys<P: JobParams + AsRef<Guest>>(ctx: Ctx<P>) -> Result<(), StepError> {
    let guest = ctx.params().as_ref();
    bring_keys(&ctx, guest.node, guest.id, &guest.name).await
}

async fn ping<P: JobParams + AsRef<Guest>>(ctx: Ctx<P>) -> Result<(), StepError> {
    let guest = ctx.params().as_ref();
    let port = guest.ssh_port.ok_or_else(|| StepError::permanent("the guest has no SSH port"))?;
    log_in(&ctx, guest.node, guest.id, port).await
}

async fn mark_running<P: JobParams + AsRef<Guest>>(ctx: Ctx<P>) -> Result<(), StepError> {
    mark(&ctx, GuestState::Running).await?;
    balance::come_back(&ctx, ctx.params().as_ref().id).await
}

async fn mark_stopped<P: JobParams + AsRef<Guest>>(ctx: Ctx<P>) -> Result<(), StepError> {
    mark(&ctx, GuestState::Stopped).await
}

/// The undo of power is to say what is: the guest's state is set to what the node reports, or
/// to what it was before when the node does not.
async fn settle<P: JobParams + AsRef<Guest>>(ctx: Ctx<P>) -> Result<(), StepError> {
    let guest = ctx.params().as_ref();
    let found = match ask_once(&ctx, guest.node, Request::Read, SHORT).await {
        Ok(corpus_protocol::Answer::Reading(reading)) => {
            reading.guests.iter().find(|seen| seen.name == guest.name).map(|seen| seen.state)
        }
        _ => None,
    };
    let before = if P::KIND == JobKind::GuestStart { GuestState::Stopped } else { GuestState::Running };
    let state = found.unwrap_or(before);
    mark(&ctx, state).await?;
    if state == GuestState::Running { balance::come_back(&ctx, guest.id).await } else { Ok(()) }
}

async fn mark<P: JobParams + AsRef<Guest>>(ctx: &Ctx<P>, state: GuestState) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let from = [GuestState::Starting, GuestState::Stopping, GuestState::Running, GuestState::Stopped];
    guests::set_state(&mut tx, ctx.params().as_ref().id, &from, state, None).await?;
    Ok(tx.commit().await?)
}
