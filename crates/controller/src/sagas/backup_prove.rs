//! Trying whether a guest could be had back from a backup: nobody should find out when it is needed.
//!
//! A guest of the same kind is made of the backup, on a node that has room for it. What lies there is summed up by the node and
//! compared with what the repository gave; then it is started, entered by SSH, and the checks of what its project had live are
//! made in it. Whatever came of it, nothing of it is left.
//!
//! It is a copy of one that serves, with all that this sends and fetches by itself: so it has no row among guests and no name,
//! none of its members may enter it, and its node lets nothing out of it and nothing in but SSH. It is isolated before it
//! starts, by the same plan that tells the node of its port.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use corpus_domain::{
    Backing, BackupId, Bytes, Driver, GuestId, ImageName, JobKind, Limits, NodeId, ProjectId, SizeProfile, plain_line,
};
use corpus_protocol::{Answer, GuestNet, GuestPlan, Proof, Request, TreeDigest, TreeSums, differing};
use serde::{Deserialize, Serialize};

use super::backup::{self, WHOLE};
use super::guest_create::log_in_as;
use super::node_calls::{SHORT, apply, ask, awaited, call, endpoint, failed_at, node};
use super::snapshot::LONG;
use super::{node_images, node_initialize};
use crate::drift::authorized_keys;
use crate::guest_backups::{self, Program};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::nodes::{GuestEndpoint, TreeWhat, TreeWhich};
use crate::services::Services;
use crate::store::backup_proofs;
use crate::store::environments;
use crate::store::guests::{self, GuestRow, Place};
use crate::store::nodes::Node;

/// How long its project's checks may take together.
const CHECKS: Duration = Duration::from_mins(10);
/// So many of them are kept, and so much of what each says, in characters.
const KEPT: (usize, usize) = (40, 90);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    backup: BackupId,
    project: ProjectId,
    /// The guest that the backup is of.
    of: GuestId,
    /// What the guest that is made of it is called by on its node.
    id: GuestId,
    node: NodeId,
    driver: Driver,
    backing: Backing,
    size: SizeProfile,
    limits: Limits,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::BackupProve;
}

type Ctx = StepContext<Services, Params>;

/// The job for a backup of a guest that was noted to be tried on a node.
pub fn job(
    guest: &GuestRow,
    (backup, taken_at): (BackupId, Option<DateTime<Utc>>),
    id: GuestId,
    (node, has_image): (&Node, bool),
) -> NewJob<Params> {
    let of = taken_at.map_or_else(String::new, |at| format!(" of {}", at.format("%F %R UTC")));
    let params = Params {
        backup,
        project: guest.project_id,
        of: guest.id,
        id,
        node: node.id,
        driver: guest.driver,
        backing: guest.backing,
        size: guest.size,
        limits: guest.limits,
    };
    NewJob::new(format!("Try the backup{of} of {}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(node.id)
        .locks([Lock::node_shared(node.id), backup::lock_shared(guest.project_id)])
        .locks((!has_image).then(|| node_images::lock(node.id)))
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("place", "Choose address, MAC and SSH port", place).undo(give_up))
        .step(Step::new("image", "Bring its image if it is missing", image).limit(node_initialize::LONG))
        .step(Step::new("spawn", "Spawn it", spawn).undo(remove).undo_retry(Retry::times(30)))
        .step(Step::new("files", "Bring the backup's files", files).retry(Retry::times(2)).limit(WHOLE))
        .step(Step::new("put", "Make them its files", put).limit(LONG))
        .step(Step::new("compare", "Compare what lies there", compare).retry(Retry::times(2)).limit(WHOLE))
        .step(Step::new("sshkeys", "Let nobody else in", keys))
        .step(Step::new("isolate", "Keep it from everything", isolate).undo(unroute).undo_retry(Retry::times(30)))
        .step(Step::new("start", "Start", start).undo(stop).undo_retry(Retry::times(20)))
        .step(Step::new("ping", "Log in over SSH", ping).limit(Duration::from_mins(2)))
        .step(Step::new("checks", "Make its project's checks", checks).retry(Retry::times(2)).limit(CHECKS * 2))
        .step(Step::new("clear", "Remove it", clear).not_cancellable().retry(Retry::times(30)).limit(LONG))
        .step(Step::new("done", "Note what was seen", done).not_cancellable().retry(Retry::times(20)))
}

async fn place(ctx: Ctx) -> Result<Place, StepError> {
    let Params { id, node: on, .. } = *ctx.params();
    let network = node(&ctx, on).await?.network;
    let mut tx = ctx.begin().await?;
    let chosen = backup_proofs::choose(&mut tx, id, (on, network)).await?;
    tx.commit().await?;
    chosen.ok_or_else(|| StepError::permanent(format!("no address, SSH port or range of ids is free in {network}")))
}

/// It comes last of all: nothing of the guest is there any more.
async fn give_up(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    backup_proofs::end(&mut tx, ctx.params().id, false).await?;
    Ok(tx.commit().await?)
}

async fn image(ctx: Ctx) -> Result<ImageName, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let image = backup_proofs::image(&mut conn, ctx.params().id).await?;
    drop(conn);
    let image = image.ok_or_else(|| StepError::permanent("it is not said what the guest is made of"))?;
    node_images::ensure(&ctx, ctx.params().node, &image).await?;
    Ok(image)
}

fn name(ctx: &Ctx) -> Result<corpus_domain::GuestName, StepError> {
    backup_proofs::name(ctx.params().id).map_err(|error| StepError::permanent("no guest's name").caused_by(error))
}

async fn spawn(ctx: Ctx) -> Result<(), StepError> {
    let (place, image): (Place, ImageName) = (ctx.output("place")?, ctx.output("image")?);
    let Params { id, node: on, driver, backing, size, limits, .. } = *ctx.params();
    let at = node(&ctx, on).await?;
    let net = GuestNet { bridge: at.bridge, network: at.network, ip: place.ip, mac: place.mac };
    let (name, ids) = (name(&ctx)?, place.ids);
    let (autostart, lines) = (false, Vec::new());
    let plan = GuestPlan { name, id: Some(id), driver, image, backing, size, limits, net, autostart, lines, ids };
    ask(&ctx, on, Request::EnsureGuest { plan: Box::new(plan) }, Duration::from_mins(10)).await.map(drop)
}

async fn remove(ctx: Ctx) -> Result<(), StepError> {
    let absent = Request::EnsureAbsent { name: name(&ctx)?, id: Some(ctx.params().id) };
    ask(&ctx, ctx.params().node, absent, Duration::from_mins(5)).await.map(drop)
}

/// Brings them, and tells what they come to as they leave the repository, and how long they took.
async fn files(ctx: Ctx) -> Result<(TreeSums, u64), StepError> {
    let Params { backup, project, node, .. } = *ctx.params();
    let began = Instant::now();
    let digest = Some(TreeDigest::default());
    let sums = backup::bring_with(&ctx, (backup, project), (&name(&ctx)?, node), digest).await?;
    Ok((sums, began.elapsed().as_secs()))
}

async fn put(ctx: Ctx) -> Result<(), StepError> {
    let (name, node) = (name(&ctx)?, ctx.params().node);
    ask(&ctx, node, Request::EnsureReplaced { name: name.clone(), job: ctx.job() }, LONG).await?;
    ask(&ctx, node, Request::EnsureSettled { name }, LONG).await.map(drop)
}

async fn compare(ctx: Ctx) -> Result<String, StepError> {
    let (brought, took): (TreeSums, u64) = ctx.output("files")?;
    let at = endpoint(&ctx, ctx.params().node).await?;
    let words = backup::words(&ctx, &name(&ctx)?, TreeWhat::Sum(TreeWhich::Own));
    let program = Program { nodes: &ctx.services().nodes, node: &at, words };
    let there = guest_backups::sums(&program, ctx.cancelled()).await;
    let there = there.map_err(|error| backup::failed(awaited(&at), error))?;
    let differ = differing(&brought, &there);
    if !differ.is_empty() {
        let folders = plain_line(&differ.join(", "), 500);
        return Err(failed(&ctx, format!("files differ from what was saved, in {folders}")).await);
    }
    let count = |of: fn(&corpus_protocol::FolderSum) -> u64| brought.values().map(of).sum::<u64>();
    let (files, bytes) = (count(|sum| sum.files), Bytes(count(|sum| sum.bytes)));
    let said = format!("{files} files, {}, brought in {took} s, are as they were saved", bytes.gb());
    ctx.log(&said);
    Ok(said)
}

/// What was seen until now, and what failed, is kept beside the backup.
async fn failed(ctx: &Ctx, why: String) -> StepError {
    match tell(ctx, Some(&why)).await {
        Ok(()) => StepError::permanent(why),
        Err(error) => error,
    }
}

async fn tell(ctx: &Ctx, last: Option<&str>) -> Result<(), StepError> {
    let mut lines = Vec::new();
    for step in ["compare", "ping", "checks"] {
        lines.extend(ctx.output_if_done::<String>(step)?);
    }
    lines.extend(last.map(str::to_owned));
    let mut tx = ctx.begin().await?;
    backup_proofs::tell(&mut tx, ctx.params().id, &lines.join("\n")).await?;
    Ok(tx.commit().await?)
}

/// The controller alone gets in, whoever could enter the guest when it was saved.
async fn keys(ctx: Ctx) -> Result<(), StepError> {
    let keys = authorized_keys(&ctx.services().control_public_line, &[], Vec::new());
    let Params { id, node, .. } = *ctx.params();
    ask(&ctx, node, Request::EnsureKeys { name: name(&ctx)?, id: Some(id), keys }, SHORT).await.map(drop)
}

async fn isolate(ctx: Ctx) -> Result<(), StepError> {
    set_routed(&ctx, true).await
}

async fn unroute(ctx: Ctx) -> Result<(), StepError> {
    set_routed(&ctx, false).await
}

async fn set_routed(ctx: &Ctx, routed: bool) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    backup_proofs::set_routed(&mut tx, ctx.params().id, routed).await?;
    tx.commit().await?;
    apply(ctx, ctx.params().node).await
}

async fn start(ctx: Ctx) -> Result<(), StepError> {
    ask(&ctx, ctx.params().node, Request::EnsureRunning { name: name(&ctx)? }, SHORT).await.map(drop)
}

async fn stop(ctx: Ctx) -> Result<(), StepError> {
    let name = name(&ctx)?;
    ask(&ctx, ctx.params().node, Request::EnsureStopped { name, grace_s: 0 }, SHORT).await.map(drop)
}

/// By the host key that the guest has: it is in the backup.
async fn ping(ctx: Ctx) -> Result<String, StepError> {
    let place: Place = ctx.output("place")?;
    let began = Instant::now();
    match log_in_as(&ctx, ctx.params().node, &host_key(&ctx).await?, place.ssh_port).await {
        Ok(()) => Ok(format!("it boots, and was entered by SSH after {:.1} s", began.elapsed().as_secs_f64())),
        // It is tried again as often as any step is, and the last word stays.
        Err(error) => {
            tell(&ctx, Some(&format!("it can't be entered by SSH: {}", error.message))).await?;
            Err(error)
        }
    }
}

async fn host_key(ctx: &Ctx) -> Result<String, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let key = guests::host_key(&mut conn, ctx.params().of).await?;
    key.ok_or_else(|| StepError::permanent("the guest that the backup is of is gone"))
}

async fn checks(ctx: Ctx) -> Result<String, StepError> {
    let Params { id, of, node, .. } = *ctx.params();
    let mut conn = ctx.services().db.acquire().await?;
    let placement = environments::on_guest(&mut conn, of).await?;
    drop(conn);
    let Some(placement) = placement else { return Ok("no project is on it".to_owned()) };
    let (at, place): (_, Place) = (endpoint(&ctx, node).await?, ctx.output("place")?);
    let pinned_host_key = host_key(&ctx).await?;
    let pinned_host_key = pinned_host_key
        .parse()
        .map_err(|error| StepError::permanent("the guest's host key can't be read").caused_by(error))?;
    let user = "root".parse().map_err(|error| StepError::permanent("no account name").caused_by(error))?;
    let guest = GuestEndpoint {
        id,
        address: at.address,
        port: place.ssh_port.get(),
        user,
        pinned_host_key,
        gateway: at.gateway,
    };
    let request = Request::ProveProject { project: placement.name };
    let answer = call(&ctx, &ctx.services().guests, &guest, request, CHECKS).await;
    let answer = answer.map_err(|error| failed_at("the guest to answer".to_owned(), error))?;
    let Answer::Proofs { proofs } = answer else {
        return Err(StepError::permanent("the guest told something else than what was checked"));
    };
    if proofs.is_empty() {
        return Ok("no checks were live in it".to_owned());
    }
    let (most, _) = KEPT;
    let said = proofs.iter().take(most).map(said).collect::<Vec<_>>().join("\n");
    match proofs.iter().find(|proof| !proof.passed) {
        None => Ok(said),
        Some(wrong) => {
            ctx.log(&said);
            Err(failed(&ctx, format!("a check fails: {}", self::said(wrong))).await)
        }
    }
}

/// What the guest says of a check; its root may say anything.
fn said(proof: &Proof) -> String {
    let (_, longest) = KEPT;
    format!("{}: {}", plain_line(&proof.check, longest), plain_line(&proof.seen, longest))
}

async fn clear(ctx: Ctx) -> Result<(), StepError> {
    unroute(ctx.clone()).await?;
    remove(ctx).await
}

async fn done(ctx: Ctx) -> Result<(), StepError> {
    tell(&ctx, None).await?;
    let mut tx = ctx.begin().await?;
    backup_proofs::end(&mut tx, ctx.params().id, true).await?;
    Ok(tx.commit().await?)
}
