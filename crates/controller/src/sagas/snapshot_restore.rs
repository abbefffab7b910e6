//! Bringing the files of a snapshot back to its guest.
//!
//! The guest is stopped for it, and what it was is kept on its node until it runs again and was logged in to: whatever
//! fails before is taken back, to the last file. What the guest knew of the outside when the snapshot was taken may be
//! out of date, so it is told again: who may log in, and what its project should know.

use std::time::Duration;

use corpus_domain::{EnvironmentState, GuestId, GuestName, GuestState, JobKind, NodeId, SnapshotId, SshPort};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::guest_calls::{On, bring_plan, bring_salt, read};
use super::guest_create::log_in;
use super::node_calls::{SHORT, ask, bring_keys};
use super::snapshot::LONG;
use super::{balance, guest_power};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::{environments, guests, snapshots};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    snapshot: SnapshotId,
    guest: GuestId,
    name: GuestName,
    node: NodeId,
    ssh_port: Option<SshPort>,
    /// Whether it ran, and is to run again.
    runs: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::SnapshotRestore;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest as it was when it was asked for, and a snapshot that is being restored.
pub fn job(guest: &GuestRow, snapshot: SnapshotId) -> NewJob<Params> {
    let params = Params {
        snapshot,
        guest: guest.id,
        name: guest.name.clone(),
        node: guest.node_id,
        ssh_port: guest.ssh_port,
        runs: guest.state == GuestState::Running,
    };
    NewJob::new(format!("Bring {} back to a snapshot", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("stop", "Shut down", halt).undo(as_it_was).limit(Duration::from_mins(2)))
        .step(Step::new("restore", "Bring its files back", restore).undo(go_back).limit(LONG * 2))
        .step(Step::new("sshkeys", "Bring SSH keys", keys))
        .step(Step::new("start", "Start", start).undo(halt_at_once))
        .step(Step::new("ping", "Log in over SSH", ping))
        .step(Step::new("project", "Tell its project what it missed", project).limit(Duration::from_mins(10)))
        .step(Step::new("ready", "Note what it is", ready).not_cancellable())
        .step(
            Step::new("settle", "Let go of what it was", settle).not_cancellable().retry(Retry::times(20)).limit(LONG),
        )
}

async fn halt(ctx: Ctx) -> Result<(), StepError> {
    if !ctx.params().runs {
        return Ok(());
    }
    balance::go(&ctx, ctx.params().guest, "it is brought back to a snapshot").await?;
    stop(&ctx, guest_power::GRACE_S).await
}

async fn halt_at_once(ctx: Ctx) -> Result<(), StepError> {
    stop(&ctx, 0).await
}

async fn stop(ctx: &Ctx, grace_s: u32) -> Result<(), StepError> {
    let request = Request::EnsureStopped { name: ctx.params().name.clone(), grace_s };
    ask(ctx, ctx.params().node, request, Duration::from_mins(1)).await.map(drop)
}

/// Nothing of it changed: it runs again if it did.
async fn as_it_was(ctx: Ctx) -> Result<(), StepError> {
    run(&ctx).await?;
    note(&ctx).await
}

async fn restore(ctx: Ctx) -> Result<(), StepError> {
    let Params { snapshot, name, node, .. } = ctx.params().clone();
    ask(&ctx, node, Request::EnsureRestored { name, snapshot, job: ctx.job() }, LONG).await.map(drop)
}

async fn go_back(ctx: Ctx) -> Result<(), StepError> {
    let name = ctx.params().name.clone();
    ask(&ctx, ctx.params().node, Request::EnsureReturned { name, job: ctx.job() }, LONG).await.map(drop)
}

/// Before it starts: nobody gets in by a key that was taken away since.
async fn keys(ctx: Ctx) -> Result<(), StepError> {
    bring_keys(&ctx, ctx.params().node, ctx.params().guest, &ctx.params().name).await
}

async fn start(ctx: Ctx) -> Result<(), StepError> {
    run(&ctx).await
}

async fn run(ctx: &Ctx) -> Result<(), StepError> {
    if !ctx.params().runs {
        return Ok(());
    }
    let request = Request::EnsureRunning { name: ctx.params().name.clone() };
    ask(ctx, ctx.params().node, request, SHORT).await.map(drop)
}

async fn ping(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, node, ssh_port, runs, .. } = *ctx.params();
    match ssh_port.filter(|_| runs) {
        Some(port) => log_in(&ctx, node, guest, port).await,
        None => Ok(()),
    }
}

async fn project(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let stands = environments::on_guest(&mut conn, ctx.params().guest).await?;
    drop(conn);
    let stands = stands.filter(|placement| ctx.params().runs && placement.state == EnvironmentState::Ready);
    let Some(on) = stands.as_ref().map(On::from) else { return Ok(()) };
    let salt = bring_salt(&ctx, &on).await?;
    bring_plan(&ctx, &on, salt).await?;
    read(&ctx, &on).await?;
    balance::follow_up(&ctx, &on).await
}

async fn settle(ctx: Ctx) -> Result<(), StepError> {
    let name = ctx.params().name.clone();
    ask(&ctx, ctx.params().node, Request::EnsureSettled { name }, LONG).await.map(drop)
}

async fn ready(ctx: Ctx) -> Result<(), StepError> {
    note(&ctx).await
}

async fn note(ctx: &Ctx) -> Result<(), StepError> {
    let Params { guest, snapshot, runs, .. } = *ctx.params();
    let state = if runs { GuestState::Running } else { GuestState::Stopped };
    let mut tx = ctx.begin().await?;
    guests::set_state(&mut tx, guest, &[GuestState::Starting, GuestState::Running, GuestState::Stopped], state, None)
        .await?;
    snapshots::back(&mut tx, snapshot).await?;
    tx.commit().await?;
    if runs { balance::come_back(ctx, guest).await } else { Ok(()) }
}
