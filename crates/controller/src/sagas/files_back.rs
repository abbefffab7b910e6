//! Giving a guest other files: what restoring a snapshot and bringing back a backup have in common.
//!
//! The guest is stopped for it, and what it was is kept on its node until it runs again and was logged in to: whatever
//! fails before is taken back, to the last file. What the guest knew of the outside when its files were written may be
//! out of date, so it is told again: who may log in, and what its project should know.

use std::time::Duration;

use corpus_domain::{EnvironmentState, GuestId, GuestName, GuestState, NodeId, SshPort};
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
use crate::store::{Transaction, chores, environments, guests};

/// The guest as it was when it was asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Guest {
    #[serde(rename = "guest")]
    pub id: GuestId,
    pub name: GuestName,
    pub node: NodeId,
    ssh_port: Option<SshPort>,
    /// Whether it ran, and is to run again.
    runs: bool,
}

impl From<&GuestRow> for Guest {
    fn from(guest: &GuestRow) -> Self {
        Self {
            id: guest.id,
            name: guest.name.clone(),
            node: guest.node_id,
            ssh_port: guest.ssh_port,
            runs: guest.state == GuestState::Running,
        }
    }
}

/// Where its files are to come from.
pub(super) trait Source: JobParams + Clone {
    /// Why the guest answers nothing meanwhile, for its visitors' operators.
    const WHY: &'static str;
    /// The guest.
    fn guest(&self) -> &Guest;
    /// What its node is asked for once the guest stands still.
    fn request(ctx: &StepContext<Services, Self>) -> Request;
    /// Has the files say where the guest is, where they may say something else.
    fn readdress(_: &StepContext<Services, Self>) -> impl Future<Output = Result<(), StepError>> + Send {
        async { Ok(()) }
    }
    /// What the files came from is as it was before, whatever became of it.
    fn over(&self, tx: &mut Transaction) -> impl Future<Output = sqlx::Result<()>> + Send;
}

/// A job that gives a guest other files.
pub(super) fn job<P: Source>(title: String, guest: &GuestRow, params: P) -> NewJob<P> {
    NewJob::new(title, params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps, from where the files are at hand on the node.
pub(super) fn steps<P: Source>(job: Job<Services, P>) -> Job<Services, P> {
    job.step(Step::new("stop", "Shut down", halt).undo(as_it_was).limit(Duration::from_mins(2)))
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

async fn halt<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    let Guest { id, runs, .. } = *ctx.params().guest();
    if !runs {
        return Ok(());
    }
    // Until now it may have run as ever.
    let mut tx = ctx.begin().await?;
    guests::set_state(&mut tx, id, &[GuestState::Running], GuestState::Starting, None).await?;
    tx.commit().await?;
    balance::go(&ctx, id, P::WHY).await?;
    stop(&ctx, guest_power::GRACE_S).await
}

async fn halt_at_once<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    stop(&ctx, 0).await
}

async fn stop<P: Source>(ctx: &StepContext<Services, P>, grace_s: u32) -> Result<(), StepError> {
    let Guest { name, node, .. } = ctx.params().guest().clone();
    ask(ctx, node, Request::EnsureStopped { name, grace_s }, Duration::from_mins(1)).await.map(drop)
}

/// Nothing of it changed: it runs again if it did.
async fn as_it_was<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    run(&ctx).await?;
    note(&ctx).await
}

async fn restore<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    ask(&ctx, ctx.params().guest().node, P::request(&ctx), LONG).await.map(drop)
}

async fn go_back<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    let Guest { name, node, .. } = ctx.params().guest().clone();
    ask(&ctx, node, Request::EnsureReturned { name, job: ctx.job() }, LONG).await.map(drop)
}

/// Before it starts: nobody gets in by a key that was taken away since.
async fn keys<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    let Guest { id, name, node, .. } = ctx.params().guest();
    P::readdress(&ctx).await?;
    bring_keys(&ctx, *node, *id, name).await
}

async fn start<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    run(&ctx).await
}

async fn run<P: Source>(ctx: &StepContext<Services, P>) -> Result<(), StepError> {
    let Guest { name, node, runs, .. } = ctx.params().guest().clone();
    if !runs {
        return Ok(());
    }
    ask(ctx, node, Request::EnsureRunning { name }, SHORT).await.map(drop)
}

async fn ping<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    let Guest { id, node, ssh_port, runs, .. } = *ctx.params().guest();
    match ssh_port.filter(|_| runs) {
        Some(port) => log_in(&ctx, node, id, port).await,
        None => Ok(()),
    }
}

async fn project<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    let Guest { id, runs, .. } = *ctx.params().guest();
    if runs { tell_project(&ctx, id).await } else { Ok(()) }
}

/// A guest that runs again is told what its project should know, and read again.
pub(super) async fn tell_project<P: JobParams>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let stands = environments::on_guest(&mut conn, guest).await?;
    drop(conn);
    let stands = stands.filter(|placement| placement.state == EnvironmentState::Ready);
    let Some(on) = stands.as_ref().map(On::from) else { return Ok(()) };
    let salt = bring_salt(ctx, &on).await?;
    bring_plan(ctx, &on, salt).await?;
    read(ctx, &on).await?;
    balance::follow_up(ctx, &on).await
}

async fn settle<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    let Guest { name, node, .. } = ctx.params().guest().clone();
    ask(&ctx, node, Request::EnsureSettled { name }, LONG).await.map(drop)
}

async fn ready<P: Source>(ctx: StepContext<Services, P>) -> Result<(), StepError> {
    note(&ctx).await
}

async fn note<P: Source>(ctx: &StepContext<Services, P>) -> Result<(), StepError> {
    let Guest { id, runs, .. } = *ctx.params().guest();
    let mut tx = ctx.begin().await?;
    ctx.params().over(&mut tx).await?;
    // Accounts are those of the time of its files.
    chores::ask_users_of(&mut tx, id).await?;
    tx.commit().await?;
    note_state(ctx, id, runs).await
}

/// The guest is again what it was, and has its share of requests if it runs.
pub(super) async fn note_state<P: JobParams>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
    runs: bool,
) -> Result<(), StepError> {
    let state = if runs { GuestState::Running } else { GuestState::Stopped };
    let from = [GuestState::Starting, GuestState::Running, GuestState::Stopped];
    let mut tx = ctx.begin().await?;
    guests::set_state(&mut tx, guest, &from, state, None).await?;
    tx.commit().await?;
    if runs { balance::come_back(ctx, guest).await } else { Ok(()) }
}
