//! Bringing a guest of a lost node elsewhere: it is made at another node of its latest backup, and goes on there under the
//! same name.
//!
//! Nothing is asked of the node that it was on. What lies there is noted: should that node come back, the guest is stopped
//! there before anything else, and its files wait for somebody who looks whether they are needed. If it does not come up at
//! the [other place](super::other_place), its row says again that it is on the lost node.

use std::time::Duration;

use corpus_api::leaving::LatestBackup;
use corpus_domain::{BackupId, GuestState, JobKind, ProjectId};
use serde::{Deserialize, Serialize};

use super::backup::{self, WHOLE};
use super::other_place::{
    self, Led, Moved, Moving, Target, enter, forget, former_address, image, keys, lead, place, project, put, readdress,
    remove, say, say_names, settle, spawn, start, stop_there,
};
use super::snapshot::LONG;
use super::{files_back, node_initialize};
use crate::jobs::{Job, JobParams, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::{self, GuestRow};
use crate::store::{backups, leaving, moves};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    #[serde(flatten)]
    moved: Moved,
    backup: BackupId,
    project: ProjectId,
    /// The moment that the backup is of.
    of: chrono::DateTime<chrono::Utc>,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestEvacuate;
}

impl Moving for Params {
    fn moved(&self) -> &Moved {
        &self.moved
    }
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest of which was noted where it goes, with its latest backup. Nobody deletes backups of its project
/// meanwhile.
pub fn job(guest: &GuestRow, target: &Target, backup: LatestBackup, project: ProjectId) -> NewJob<Params> {
    let (to, of) = (&target.node, backup.taken_at);
    let title = format!("Bring {} to {} from its backup of {}", guest.name, to.address, of.format("%F %R UTC"));
    let params = Params { moved: Moved::new(guest, to.id), backup: backup.id, project, of };
    other_place::job(title, guest, target, params).node(to.id).locks([backup::lock_shared(project)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("place", "Choose address, MAC and SSH port there", place).undo(forget))
        .step(Step::new("image", "Bring its image if it is missing", image).limit(node_initialize::LONG))
        .step(Step::new("spawn", "Spawn it there", spawn).undo(remove).undo_retry(Retry::times(30)))
        .step(Step::new("files", "Bring the backup's files", files).retry(Retry::times(2)).limit(WHOLE))
        .step(Step::new("put", "Make them its files", put).limit(LONG))
        .step(Step::new("settle", "Let go of what it was made with", settle).retry(Retry::times(20)).limit(LONG))
        .step(Step::new("switch", "Lead to it there", switch).undo(switch_back).undo_retry(Retry::times(20)))
        .step(Step::new("address", "Tell it its address", address))
        .step(Step::new("sshkeys", "Bring SSH keys", keys))
        .step(Step::new("start", "Start", start).undo(stop_there).undo_retry(Retry::times(20)))
        .step(Step::new("ping", "Log in over SSH", ping))
        .step(Step::new("project", "Tell its project where it is", project).limit(Duration::from_mins(10)))
        .step(Step::new("names", "Have its names say so", say).undo(say_back).undo_retry(Retry::times(20)))
        .step(Step::new("ready", "Note what it is", ready).not_cancellable().retry(Retry::times(20)))
}

async fn files(ctx: Ctx) -> Result<(), StepError> {
    let Params { moved, backup, project, .. } = ctx.params();
    backup::bring(&ctx, (*backup, *project), (&moved.name, moved.to)).await
}

/// From here on what lies on the lost node is not the guest any more.
async fn switch(ctx: Ctx) -> Result<(), StepError> {
    let Params { moved: Moved { guest, name, from, to, .. }, of, .. } = ctx.params().clone();
    let mut tx = ctx.begin().await?;
    guests::set_state(&mut tx, guest, &[GuestState::Running], GuestState::Starting, None).await?;
    leaving::leave_behind(&mut tx, from, (guest, &name), of).await?;
    tx.commit().await?;
    lead(&ctx, Led { node: to, told: &[to] }).await
}

/// The lost node has it again. It is told nothing, and gives it no requests.
async fn switch_back(ctx: Ctx) -> Result<(), StepError> {
    let Moved { guest, from, to, runs, .. } = *ctx.params().moved();
    lead(&ctx, Led { node: from, told: &[to] }).await?;
    let mut tx = ctx.begin().await?;
    leaving::forget(&mut tx, from, guest).await?;
    if runs {
        guests::set_state(&mut tx, guest, &[GuestState::Starting], GuestState::Running, None).await?;
    }
    Ok(tx.commit().await?)
}

/// It may have moved since the backup was taken.
async fn address(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let said = backups::address(&mut conn, ctx.params().backup).await?;
    drop(conn);
    let said = match said {
        Some(said) => Some(said),
        None => former_address(&ctx).await?,
    };
    readdress(&ctx, said).await
}

async fn ping(ctx: Ctx) -> Result<(), StepError> {
    enter(&ctx).await
}

async fn say_back(ctx: Ctx) -> Result<(), StepError> {
    switch_back(ctx.clone()).await?;
    say_names(&ctx, ctx.params().moved.from).await
}

/// Snapshots of it were on the lost node. Nobody is brought from there: the node is told with what else it missed when it is
/// back.
async fn ready(ctx: Ctx) -> Result<(), StepError> {
    let Moved { guest, from, runs, .. } = *ctx.params().moved();
    files_back::note_state(&ctx, guest, runs).await?;
    let mut tx = ctx.begin().await?;
    moves::forget_snapshots(&mut tx, guest, from).await?;
    moves::left(&mut tx, guest, 0.0).await?;
    Ok(tx.commit().await?)
}
