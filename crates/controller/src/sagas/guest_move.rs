//! Moving a guest to another node: its files are brought while it runs, it stops for what changed meanwhile, and it goes on
//! there under the same name.
//!
//! What it was stays on the node that it leaves until it runs at the [other one](super::other_place) and was logged in to:
//! whatever fails before is taken back, and it runs where it did. Visitors who come to the old node are brought to the new
//! one until resolvers have forgotten it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::{Bytes, GuestState, JobKind, SnapshotId};
use corpus_protocol::{Answer, Request};
use serde::{Deserialize, Serialize};

use super::backup::WHOLE;
use super::files_across::{Way, carry};
use super::guest_power::GRACE_S;
use super::node_calls::{SHORT, ask};
use super::other_place::{
    self, Led, Moved, Moving, Target, absent, enter, forget, former_address, image, keys, lead, make_here, place,
    project, put, readdress, ready, remove, run, say, say_names, settle, spawn, start, stop, stop_there,
};
use super::snapshot::LONG;
use super::{balance, files_back, node_initialize};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::nodes::TreeWhich;
use crate::services::Services;
use crate::store::guests::{self, GuestRow};
use crate::store::{move_times, moves};

/// How often it is tried to remove it where it was.
const REMOVALS: usize = 3;
/// What the clock of a node may be off by at once, in seconds, and how long it takes to be off by one more: a clock that is
/// corrected gently runs wrong by half of that at most.
const OFF_S: i64 = 2;
const OFF_EACH_S: i64 = 1_000;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    #[serde(flatten)]
    moved: Moved,
    /// What it is promised.
    storage: Bytes,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestMove;
}

impl Moving for Params {
    fn moved(&self) -> &Moved {
        &self.moved
    }
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest of which was noted where it goes.
pub fn job(guest: &GuestRow, target: &Target) -> NewJob<Params> {
    let title = format!("Move guest {} to {}", guest.name, target.node.address);
    let params = Params { moved: Moved::new(guest, target.node.id), storage: guest.storage };
    other_place::job(title, guest, target, params).node(guest.node_id).locks([Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("place", "Choose address, MAC and SSH port there", place).undo(forget))
        .step(Step::new("image", "Bring its image if it is missing", image).limit(node_initialize::LONG))
        .step(Step::new("spawn", "Spawn it there", spawn).undo(remove).undo_retry(Retry::times(30)))
        .step(Step::new("clock", "See what its node's clock says", |ctx: Ctx| async move { clock(&ctx).await }))
        .step(
            Step::new("snapshot", "Keep its files as they are", snapshot)
                .undo(drop_snapshot)
                .undo_retry(Retry::times(20))
                .undo_limit(LONG)
                .limit(LONG * 2),
        )
        .step(Step::new("files", "Bring its files", files).retry(Retry::times(2)).limit(WHOLE))
        .step(Step::new("clear", "Let go of the snapshot", drop_snapshot).retry(Retry::times(20)).limit(LONG))
        .step(Step::new("stop", "Shut down", halt).undo(as_it_was).undo_retry(Retry::times(20)).limit(LONG))
        .step(Step::new("changes", "Bring what changed since", changes).retry(Retry::times(2)).limit(WHOLE))
        .step(Step::new("put", "Make them its files", put).limit(LONG))
        .step(Step::new("settle", "Let go of what it was made with", settle).retry(Retry::times(20)).limit(LONG))
        .step(Step::new("switch", "Lead to it there", switch).undo(switch_back).undo_retry(Retry::times(20)))
        .step(Step::new("address", "Tell it its address", address))
        .step(Step::new("sshkeys", "Bring SSH keys", keys))
        .step(Step::new("start", "Start", start).undo(stop_there).undo_retry(Retry::times(20)))
        .step(Step::new("ping", "Log in over SSH", ping))
        .step(Step::new("project", "Tell its project where it is", project).limit(Duration::from_mins(10)))
        .step(Step::new("names", "Have its names say so", say).undo(say_back).undo_retry(Retry::times(20)))
        .step(Step::new("ready", "Note what it is", ready).not_cancellable())
        .step(Step::new("leave", "Remove it where it was", leave).not_cancellable().retry(Retry::times(20)).limit(LONG))
}

/// The snapshot that is read has the job's id.
fn read_from(ctx: &Ctx) -> SnapshotId {
    SnapshotId(ctx.job().0)
}

async fn snapshot(ctx: Ctx) -> Result<(), StepError> {
    let Moved { name, from, .. } = ctx.params().moved.clone();
    ask(&ctx, from, Request::EnsureSnapshot { name, snapshot: read_from(&ctx) }, LONG).await.map(drop)
}

async fn drop_snapshot(ctx: Ctx) -> Result<(), StepError> {
    let Moved { name, from, .. } = ctx.params().moved.clone();
    ask(&ctx, from, Request::EnsureNoSnapshot { name, snapshot: read_from(&ctx) }, LONG).await.map(drop)
}

/// All of them, as they were when the snapshot was taken.
async fn files(ctx: Ctx) -> Result<(), StepError> {
    let which = TreeWhich::Snapshot(read_from(&ctx));
    bring(&ctx, which, None).await.map(drop)
}

/// What was written since, now that nothing is written any more. Where the clock by which files say when they were changed
/// was set meanwhile, and where bringing it was cut before, all is brought again. Tells how much that was.
async fn changes(ctx: Ctx) -> Result<Bytes, StepError> {
    let (before, now): (Clock, Clock) = (ctx.output("clock")?, clock(&ctx).await?);
    let brought = match before.since(&now) {
        Some(since) => bring(&ctx, TreeWhich::Own, Some(since)).await,
        None => Err(StepError::transient("the clock of its node was set meanwhile")),
    };
    match brought {
        Err(error) if error.kind != StepErrorKind::Cancelled => {
            ctx.log(format!("all its files are brought again: {error}"));
            bring(&ctx, TreeWhich::Own, None).await
        }
        brought => brought,
    }
}

/// Brings files to the node that it goes to: from the beginning, or onto what was brought before. Tells how much was sent.
async fn bring(ctx: &Ctx, which: TreeWhich, onto: Option<i64>) -> Result<Bytes, StepError> {
    let Params { moved: Moved { name: guest, from, to, .. }, storage } = ctx.params().clone();
    carry(ctx, Way { from: (&guest, from), which, to: (&guest, to), storage, onto }).await
}

/// What the node that it leaves says of the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Clock {
    boot: String,
    now_s: i64,
    up_s: u64,
}

impl Clock {
    /// What was changed at this second or later may not have been seen at the first look; none where the clock was set.
    fn since(&self, later: &Self) -> Option<i64> {
        let ran = i64::try_from(later.up_s.checked_sub(self.up_s)?).ok()?;
        let told = later.now_s.checked_sub(self.now_s)?;
        let off = OFF_S + ran / OFF_EACH_S;
        let is_even = self.boot == later.boot && told.abs_diff(ran) <= off.unsigned_abs();
        // So shortly before the first look it may have been changed after it.
        is_even.then_some(self.now_s - off - 1)
    }
}

async fn clock(ctx: &Ctx) -> Result<Clock, StepError> {
    match ask(ctx, ctx.params().moved.from, Request::ReadBoot, SHORT).await? {
        Answer::Boot { id: boot, now_s, up_s } => Ok(Clock { boot, now_s, up_s }),
        _ => Err(StepError::permanent("the agent answered something else than its boot")),
    }
}

/// Tells when it stopped to answer.
async fn halt(ctx: Ctx) -> Result<DateTime<Utc>, StepError> {
    let Moved { guest, from, runs, .. } = *ctx.params().moved();
    let now = Utc::now();
    if runs {
        let mut tx = ctx.begin().await?;
        guests::set_state(&mut tx, guest, &[GuestState::Running], GuestState::Starting, None).await?;
        tx.commit().await?;
        balance::go(&ctx, guest, "it is moved to another node").await?;
    }
    make_here(&ctx, false).await?;
    if runs {
        stop(&ctx, from, GRACE_S).await?;
    }
    Ok(now)
}

/// Where it was it is as it was, and runs again if it did.
async fn as_it_was(ctx: Ctx) -> Result<(), StepError> {
    make_here(&ctx, true).await?;
    let Moved { guest, from, runs, .. } = *ctx.params().moved();
    run(&ctx, from).await?;
    files_back::note_state(&ctx, guest, runs).await
}

async fn switch(ctx: Ctx) -> Result<(), StepError> {
    let Moved { from, to, .. } = *ctx.params().moved();
    lead(&ctx, Led { node: to, told: &[from, to] }).await
}

async fn switch_back(ctx: Ctx) -> Result<(), StepError> {
    let Moved { from, to, .. } = *ctx.params().moved();
    lead(&ctx, Led { node: from, told: &[from, to] }).await
}

async fn address(ctx: Ctx) -> Result<(), StepError> {
    readdress(&ctx, former_address(&ctx).await?).await
}

/// Tells for how long it answered nothing, in milliseconds; none where it was stopped before.
async fn ping(ctx: Ctx) -> Result<Option<u64>, StepError> {
    let since: DateTime<Utc> = ctx.output("stop")?;
    enter(&ctx).await?;
    if !ctx.params().moved.runs {
        return Ok(None);
    }
    let away = (Utc::now() - since).to_std().unwrap_or_default();
    ctx.log(format!("it answered nothing for {:.1} s", away.as_secs_f64()));
    Ok(u64::try_from(away.as_millis()).ok())
}

/// The records say where the names lead to: so it goes back first, and they are not written again by who compares the two.
async fn say_back(ctx: Ctx) -> Result<(), StepError> {
    switch_back(ctx.clone()).await?;
    say_names(&ctx, ctx.params().moved.from).await
}

/// There is no way back any more, whatever the node that it left says: what can't be removed there does not start by itself,
/// and is told of as drift. Snapshots of it were on that node.
async fn leave(ctx: Ctx) -> Result<(), StepError> {
    let Moved { guest, from, .. } = *ctx.params().moved();
    let mut removed = absent(&ctx, from).await;
    for _ in 1..REMOVALS {
        if removed.is_err() {
            removed = absent(&ctx, from).await;
        }
    }
    if let Err(error) = removed {
        // Our own database is to blame, or this server, which has lost the job.
        if !error.counts || error.kind == StepErrorKind::Cancelled {
            return Err(error);
        }
        ctx.log(format!("where it was its files stay, to be removed by hand: {error}"));
    }
    let mut tx = ctx.begin().await?;
    moves::forget_snapshots(&mut tx, guest, from).await?;
    let kept = Duration::from_secs(moves::kept_s(&mut tx, guest).await?.into());
    moves::left(&mut tx, guest, ctx.paced(kept).as_secs_f64()).await?;
    // A job of an earlier release says neither.
    let (downtime, bytes): (Option<Option<u64>>, Option<Option<Bytes>>) =
        (ctx.output_if_done("ping")?, ctx.output_if_done("changes")?);
    if let Some(downtime_ms) = downtime.flatten() {
        let bytes = bytes.flatten().unwrap_or_default();
        move_times::note(&mut tx, ctx.job(), move_times::Moved { guest, from, bytes, downtime_ms }).await?;
    }
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_says_nothing() {
        let at = |boot: &str, now_s, up_s| Clock { boot: boot.to_owned(), now_s, up_s };
        let first = at("a", 10_000, 50);
        assert_eq!(first.since(&at("a", 10_600, 650)), Some(9_997));
        assert_eq!(first.since(&at("a", 10_602, 650)), Some(9_997), "what a clock is slewed by");
        assert_eq!(first.since(&at("a", 20_005, 10_050)), Some(9_987), "the longer, the more");
        for later in [
            at("a", 10_603, 650),
            at("b", 10_600, 650),
            at("a", 10_700, 650),
            at("a", 10_500, 650),
            at("a", 9_000, 650),
            at("a", 10_600, 9),
        ] {
            assert_eq!(first.since(&later), None, "{later:?}");
        }
    }
}
