//! Moving a guest to another node: its files are brought while it runs, it stops for what changed meanwhile, and it goes on
//! there under the same name.
//!
//! The guest has two places for a while, and its row says at which of them it is. What it was stays on the node that it
//! leaves until it runs at the other one and was logged in to: whatever fails before is taken back, and it runs where it
//! did. Visitors who come to the old node are brought to the new one until resolvers have forgotten it.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::{Bytes, GuestId, GuestName, GuestState, ImageName, JobKind, NodeId, SnapshotId};
use corpus_protocol::{Answer, GuestNet, GuestPlan, GuestSetup, JobRef, Request};
use serde::{Deserialize, Serialize};

use super::backup::WHOLE;
use super::guest_create::log_in;
use super::guest_power::GRACE_S;
use super::name_switch::say_where;
use super::node_calls::{SHORT, apply, ask, awaited, bring_keys, endpoint, node, resolv_conf, tell};
use super::snapshot::LONG;
use super::{backup, balance, files_back, node_images};
use crate::guest_backups::{Across, Program};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::nodes::{TreeWhich, TreeWords};
use crate::services::Services;
use crate::store::guests::{self, GuestRow, Place};
use crate::store::nodes::Node;
use crate::store::{far, links, moves, names};

/// How often it is tried to remove it where it was.
const REMOVALS: usize = 3;
/// What the clock of a node may be off by at once, in seconds, and how long it takes to be off by one more: a clock that is
/// corrected gently runs wrong by half of that at most.
const OFF_S: i64 = 2;
const OFF_EACH_S: i64 = 1_000;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    from: NodeId,
    to: NodeId,
    /// What it is promised.
    storage: Bytes,
    /// Whether it runs, and is to run there.
    runs: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestMove;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest of which was noted where it goes. No other job that needs the guest is accepted meanwhile: it would
/// look for it where it was.
pub fn job(guest: &GuestRow, to: &Node, has_image: bool) -> NewJob<Params> {
    let params = Params {
        guest: guest.id,
        name: guest.name.clone(),
        from: guest.node_id,
        to: to.id,
        storage: guest.storage,
        runs: guest.state == GuestState::Running,
    };
    let closed = format!("{} is being moved to {}; ask again when it is there", guest.name, to.address);
    NewJob::new(format!("Move guest {} to {}", guest.name, to.address), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .closing(Lock::guest(guest.id), closed)
        .locks([Lock::node_shared(guest.node_id), Lock::node_shared(to.id)])
        .locks((!has_image).then(|| node_images::lock(to.id)))
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("place", "Choose address, MAC and SSH port there", place).undo(forget))
        .step(Step::new("image", "Bring its image if it is missing", image).limit(super::node_initialize::LONG))
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
        .step(Step::new("address", "Tell it its address", readdress))
        .step(Step::new("sshkeys", "Bring SSH keys", keys))
        .step(Step::new("start", "Start", start).undo(stop_there).undo_retry(Retry::times(20)))
        .step(Step::new("ping", "Log in over SSH", ping))
        .step(Step::new("project", "Tell its project where it is", project).limit(Duration::from_mins(10)))
        .step(Step::new("names", "Have its names say so", say).undo(say_back).undo_retry(Retry::times(20)))
        .step(Step::new("ready", "Note what it is", ready).not_cancellable())
        .step(Step::new("leave", "Remove it where it was", leave).not_cancellable().retry(Retry::times(20)).limit(LONG))
}

async fn guest(ctx: &Ctx) -> Result<GuestRow, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let row = guests::get(&mut conn, ctx.params().guest).await?;
    row.ok_or_else(|| StepError::permanent("the guest's row is gone"))
}

async fn place(ctx: Ctx) -> Result<Place, StepError> {
    let Params { guest, to, .. } = *ctx.params();
    let network = node(&ctx, to).await?.network;
    let mut tx = ctx.begin().await?;
    let chosen = moves::choose(&mut tx, guest, (to, network)).await?;
    tx.commit().await?;
    let place = chosen
        .ok_or_else(|| StepError::permanent(format!("no address, SSH port or range of ids is free in {network}")))?;
    ctx.log(format!("{}, {}, SSH port {}", place.ip, place.mac, place.ssh_port));
    Ok(place)
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    moves::settle(&mut tx, ctx.params().guest).await?;
    Ok(tx.commit().await?)
}

async fn image(ctx: Ctx) -> Result<ImageName, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let image = moves::image(&mut conn, ctx.params().guest).await?;
    drop(conn);
    let image = image.ok_or_else(|| StepError::permanent("it is not said where the guest goes"))?;
    node_images::ensure(&ctx, ctx.params().to, &image).await?;
    Ok(image)
}

async fn spawn(ctx: Ctx) -> Result<(), StepError> {
    make_there(&ctx, false).await
}

/// It is there, and starts with its node or not.
async fn make_there(ctx: &Ctx, autostart: bool) -> Result<(), StepError> {
    let (place, image): (Place, ImageName) = (ctx.output("place")?, ctx.output("image")?);
    let row = guest(ctx).await?;
    make(ctx, ctx.params().to, (row, image, place), autostart).await
}

/// Where it was it starts with its node or not: a node that boots while nobody looks starts no second one of it.
async fn make_here(ctx: &Ctx, autostart: bool) -> Result<(), StepError> {
    let row = guest(ctx).await?;
    let mut conn = ctx.services().db.acquire().await?;
    let place = guests::place(&mut conn, row.id).await?;
    drop(conn);
    let place = place.ok_or_else(|| StepError::permanent("the guest has no address where it is"))?;
    let image = row.image.clone();
    make(ctx, ctx.params().from, (row, image, place), autostart).await
}

async fn make(
    ctx: &Ctx,
    on: NodeId,
    (row, image, place): (GuestRow, ImageName, Place),
    autostart: bool,
) -> Result<(), StepError> {
    let at = node(ctx, on).await?;
    let net = GuestNet { bridge: at.bridge, network: at.network, ip: place.ip, mac: place.mac };
    let plan = GuestPlan {
        name: row.name,
        id: Some(row.id),
        driver: row.driver,
        image,
        backing: row.backing,
        size: row.size,
        limits: row.limits,
        net,
        autostart: autostart && row.autostart,
        ids: place.ids,
    };
    ask(ctx, on, Request::EnsureGuest { plan: Box::new(plan) }, Duration::from_mins(10)).await.map(drop)
}

async fn remove(ctx: Ctx) -> Result<(), StepError> {
    absent(&ctx, ctx.params().to).await
}

async fn absent(ctx: &Ctx, node: NodeId) -> Result<(), StepError> {
    let absent = Request::EnsureAbsent { name: ctx.params().name.clone(), id: Some(ctx.params().guest) };
    ask(ctx, node, absent, Duration::from_mins(5)).await.map(drop)
}

/// The snapshot that is read has the job's id.
fn read_from(ctx: &Ctx) -> SnapshotId {
    SnapshotId(ctx.job().0)
}

async fn snapshot(ctx: Ctx) -> Result<(), StepError> {
    let Params { name, from, .. } = ctx.params().clone();
    ask(&ctx, from, Request::EnsureSnapshot { name, snapshot: read_from(&ctx) }, LONG).await.map(drop)
}

async fn drop_snapshot(ctx: Ctx) -> Result<(), StepError> {
    let Params { name, from, .. } = ctx.params().clone();
    ask(&ctx, from, Request::EnsureNoSnapshot { name, snapshot: read_from(&ctx) }, LONG).await.map(drop)
}

/// All of them, as they were when the snapshot was taken.
async fn files(ctx: Ctx) -> Result<(), StepError> {
    let which = TreeWhich::Snapshot(read_from(&ctx));
    bring(&ctx, which, None).await
}

/// What was written since, now that nothing is written any more. Where the clock by which files say when they were changed
/// was set meanwhile, and where bringing it was cut before, all is brought again.
async fn changes(ctx: Ctx) -> Result<(), StepError> {
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

/// Brings files to the node that it goes to: from the beginning, or onto what was brought before.
async fn bring(ctx: &Ctx, which: TreeWhich, onto: Option<i64>) -> Result<(), StepError> {
    let Params { name: guest, from, to, storage, .. } = ctx.params().clone();
    let (from, to) = (endpoint(ctx, from).await?, endpoint(ctx, to).await?);
    let JobRef { id: job, generation, .. } = ctx.next_request();
    let nodes = &ctx.services().nodes;
    let read = |node, which| Program { nodes, node, words: TreeWords::Read { guest: guest.clone(), which } };
    let written = onto.map(|since| (read(&to, TreeWhich::Written(ctx.job())), since));
    let words = TreeWords::Write { guest: guest.clone(), job, generation, bytes: storage.0, onto: onto.is_some() };
    let across = Across {
        from: read(&from, which),
        before: written,
        to: Program { nodes, node: &to, words },
        limits: backup::most(storage),
    };
    let brought = across.bring(|gone, of| ctx.progress(gone, of), ctx.cancelled()).await;
    let brought = brought.map_err(|error| backup::failed(awaited(&to), error))?;
    let sent = Bytes(brought.bytes.saturating_sub(brought.kept_bytes));
    ctx.log(format!("{} files, {}, of which {} were brought", brought.files, Bytes(brought.bytes).gb(), sent.gb()));
    Ok(())
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
    match ask(ctx, ctx.params().from, Request::ReadBoot, SHORT).await? {
        Answer::Boot { id: boot, now_s, up_s } => Ok(Clock { boot, now_s, up_s }),
        _ => Err(StepError::permanent("the agent answered something else than its boot")),
    }
}

/// Tells when it stopped to answer.
async fn halt(ctx: Ctx) -> Result<DateTime<Utc>, StepError> {
    let Params { guest, from, runs, .. } = *ctx.params();
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

async fn stop(ctx: &Ctx, node: NodeId, grace_s: u32) -> Result<(), StepError> {
    let name = ctx.params().name.clone();
    ask(ctx, node, Request::EnsureStopped { name, grace_s }, Duration::from_mins(1)).await.map(drop)
}

async fn run(ctx: &Ctx, node: NodeId) -> Result<(), StepError> {
    if !ctx.params().runs {
        return Ok(());
    }
    let name = ctx.params().name.clone();
    ask(ctx, node, Request::EnsureRunning { name }, SHORT).await.map(drop)
}

/// Where it was it is as it was, and runs again if it did.
async fn as_it_was(ctx: Ctx) -> Result<(), StepError> {
    make_here(&ctx, true).await?;
    run(&ctx, ctx.params().from).await?;
    files_back::note_state(&ctx, ctx.params().guest, ctx.params().runs).await
}

async fn put(ctx: Ctx) -> Result<(), StepError> {
    let Params { name, to, .. } = ctx.params().clone();
    ask(&ctx, to, Request::EnsureReplaced { name, job: ctx.job() }, LONG).await.map(drop)
}

async fn settle(ctx: Ctx) -> Result<(), StepError> {
    let Params { name, to, .. } = ctx.params().clone();
    ask(&ctx, to, Request::EnsureSettled { name }, LONG).await.map(drop)
}

async fn switch(ctx: Ctx) -> Result<(), StepError> {
    lead(&ctx, ctx.params().to).await
}

async fn switch_back(ctx: Ctx) -> Result<(), StepError> {
    lead(&ctx, ctx.params().from).await
}

/// The guest is at this node; both are told, and whoever brings it visitors or is brought some by it.
async fn lead(ctx: &Ctx, node: NodeId) -> Result<(), StepError> {
    let Params { guest, from, to, .. } = *ctx.params();
    let mut tx = ctx.begin().await?;
    moves::lead(&mut tx, guest, node).await?;
    let mut others: BTreeSet<NodeId> = far::beside(&mut tx, guest).await?;
    let beside = links::beside(&mut tx, &[guest]).await?;
    tx.commit().await?;
    others.extend(beside.own.into_iter().chain(beside.others));
    // The one that it comes to is ready for it before the other one brings visitors there.
    let mut ends = [from, to];
    ends.sort_by_key(|one| *one != node);
    for end in ends {
        apply(ctx, end).await?;
        others.remove(&end);
    }
    for node in others {
        tell(ctx, node).await?;
    }
    Ok(())
}

/// What its files say of where it is.
async fn readdress(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, name, to, .. } = ctx.params().clone();
    let mut conn = ctx.services().db.acquire().await?;
    let had = moves::place(&mut conn, guest).await?;
    drop(conn);
    let has: Place = ctx.output("place")?;
    let gateway = node(&ctx, to).await?.network.gateway();
    let readdressed = had.filter(|had| had.ip != has.ip).map(|had| (had.ip, has.ip));
    let setup = GuestSetup { readdressed, files: vec![resolv_conf(gateway, true)], ..GuestSetup::default() };
    let request = Request::SetUpGuest { name, id: Some(guest), setup: Box::new(setup) };
    ask(&ctx, to, request, SHORT).await.map(drop)
}

/// Before it starts: nobody gets in by a key that was taken away since.
async fn keys(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, name, to, .. } = ctx.params();
    bring_keys(&ctx, *to, *guest, name).await
}

async fn start(ctx: Ctx) -> Result<(), StepError> {
    make_there(&ctx, true).await?;
    run(&ctx, ctx.params().to).await
}

async fn stop_there(ctx: Ctx) -> Result<(), StepError> {
    make_there(&ctx, false).await?;
    stop(&ctx, ctx.params().to, 0).await
}

async fn ping(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, to, runs, .. } = *ctx.params();
    let place: Place = ctx.output("place")?;
    let since: DateTime<Utc> = ctx.output("stop")?;
    if runs {
        log_in(&ctx, to, guest, place.ssh_port).await?;
        let away = (Utc::now() - since).to_std().unwrap_or_default();
        ctx.log(format!("it was away for {:.1} s", away.as_secs_f64()));
    }
    Ok(())
}

async fn project(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, runs, .. } = *ctx.params();
    if runs { files_back::tell_project(&ctx, guest).await } else { Ok(()) }
}

async fn say(ctx: Ctx) -> Result<(), StepError> {
    say_names(&ctx, ctx.params().to).await
}

/// The records say where the names lead to: so it goes back first, and they are not written again by who compares the two.
async fn say_back(ctx: Ctx) -> Result<(), StepError> {
    lead(&ctx, ctx.params().from).await?;
    say_names(&ctx, ctx.params().from).await
}

async fn say_names(ctx: &Ctx, node: NodeId) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let all = moves::names(&mut conn, ctx.params().guest).await?;
    drop(conn);
    for id in all {
        let mut conn = ctx.services().db.acquire().await?;
        let row = names::get(&mut conn, id).await?;
        drop(conn);
        let Some((row, held)) = row.and_then(|row| row.held.clone().map(|held| (row, held))) else { continue };
        say_where(ctx, &row, held, node).await?;
    }
    Ok(())
}

async fn ready(ctx: Ctx) -> Result<(), StepError> {
    files_back::note_state(&ctx, ctx.params().guest, ctx.params().runs).await
}

/// There is no way back any more, whatever the node that it left says: what can't be removed there does not start by itself,
/// and is told of as drift. Snapshots of it were on that node.
async fn leave(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, from, .. } = *ctx.params();
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
