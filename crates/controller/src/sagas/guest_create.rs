//! Making a guest: from the row that the request left to a real SSH login through the node's port.

use std::time::Duration;

use corpus_api::guests::RequestGuest;
use corpus_domain::{
    BackupId, Bytes, GuestId, GuestName, GuestState, JobKind, Mode, NodeId, ProjectId, SnapshotId, SshPort,
};
use corpus_protocol::{Account, GuestFile, GuestNet, GuestPlan, GuestSetup, Request, SaltBundle, SshHostKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::backup;
use super::files_across::{Way, carry};
use super::guest_calls::{LAYOUT, bring_salt_inside};
use super::guest_mode::{self, SWITCHES};
use super::guest_states::{self, STATES};
use super::guest_users as users_of_guest;
use super::node_calls::{self, SHORT, apply_with, ask, bring_keys, resolv_conf};
use super::node_images;
use super::node_initialize::LONG;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::nodes::{LoginCheck, NodeError, TreeWhich, check_login};
use crate::services::Services;
use crate::ssh_keys;
use crate::store::guests::GuestRow;
use crate::store::guests::{self, Place};
use crate::store::{far, guest_users, lxc_lines};

/// How long a guest may take from its start to a login.
const BOOT: Duration = Duration::from_secs(30);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    node: NodeId,
    /// Whose files it is to have, and the project whose that is; none: those of its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backup: Option<(BackupId, ProjectId)>,
    /// The same of a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<FromSnapshot>,
    /// What it is promised; an earlier release did not say.
    #[serde(default)]
    storage: Bytes,
    /// What was asked for, without secrets, to ask again when it can't be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Value>,
}

/// The snapshot whose files it is to have, of a guest that stays as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FromSnapshot {
    /// Which.
    pub id: SnapshotId,
    /// Of which guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// The node that has it.
    pub node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestCreate;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest whose row is there, and what was asked for. Where its image is not on the node yet, one at a time
/// brings it. The guest of a snapshot goes on meanwhile, and nobody deletes the snapshot.
pub fn job(guest: &GuestRow, asked: &RequestGuest, snapshot: Option<FromSnapshot>, has_image: bool) -> NewJob<Params> {
    let wanted_backup = asked.backup;
    let asked = serde_json::to_value(RequestGuest { password: None, instead_of: None, ..asked.clone() }).ok();
    let backup = wanted_backup.map(|backup| (backup, guest.project_id));
    let from: Vec<Lock> =
        snapshot.iter().flat_map(|from| [Lock::shared("guest", from.guest), Lock::node_shared(from.node)]).collect();
    let params = Params {
        guest: guest.id,
        name: guest.name.clone(),
        node: guest.node_id,
        backup,
        snapshot,
        storage: guest.storage,
        asked,
    };
    NewJob::new(format!("Create guest {} on {}", guest.name, guest.node_address), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
        .locks((!has_image).then(|| node_images::lock(guest.node_id)))
        .locks(wanted_backup.map(|_| backup::lock_shared(guest.project_id)))
        .locks(from)
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("ids", "Choose ids", ids).undo(forget))
        .step(Step::new("allocate", "Allocate address, MAC and SSH port", allocate))
        .step(Step::new("image", "Bring its image if it is missing", image).limit(LONG).retry(Retry::times(4)))
        .step(Step::new("spawn", "Spawn", spawn).undo(remove).undo_retry(Retry::times(30)))
        .step(
            Step::new("files", "Bring the files of its backup or snapshot", files)
                .retry(Retry::times(2))
                .limit(backup::WHOLE),
        )
        .step(Step::new("hostsfile", "Write hosts file", hosts_file))
        .step(Step::new("sshkeys", "Bring SSH keys", bring_ssh_keys))
        .step(Step::new("initial_setup", "Set up users and passwords", initial_setup))
        .step(Step::new("start", "Start", start).undo(stop))
        .step(Step::new("routes", "Route its SSH port", route).undo(unroute).undo_retry(Retry::times(30)))
        .step(Step::new("ping", "Log in over SSH", ping).limit(BOOT * 2))
        .step(Step::new("users", "Make the users of its project", users).limit(LAYOUT))
        .step(Step::new("mode", "Manage it by Salt", mode).limit(LAYOUT * 2 + SWITCHES))
        .step(Step::new("states", "Apply its states for the first time", states).limit(STATES + LAYOUT))
        .step(Step::new("ready", "Mark as running", ready))
}

async fn guest(ctx: &Ctx) -> Result<GuestRow, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let row = guests::get(&mut conn, ctx.params().guest).await?;
    row.ok_or_else(|| StepError::permanent("the guest's row is gone"))
}

/// The ids were chosen with the request; here they are only confirmed, so that their undo,
/// which frees the name, comes last of all.
async fn ids(ctx: Ctx) -> Result<(), StepError> {
    guest(&ctx).await.map(drop)
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    crate::store::names::delete_of_guest(&mut tx, ctx.params().guest).await?;
    // That of a preview, which waits for its guest.
    crate::store::environments::delete(&mut tx, ctx.params().guest).await?;
    guests::delete(&mut tx, ctx.params().guest).await?;
    Ok(tx.commit().await?)
}

async fn allocate(ctx: Ctx) -> Result<Place, StepError> {
    let network = guest(&ctx).await?.network;
    let mut tx = ctx.begin().await?;
    let chosen = guests::allocate(&mut tx, ctx.params().guest, ctx.params().node, network).await?;
    tx.commit().await?;
    let place = chosen
        .ok_or_else(|| StepError::permanent(format!("no address, SSH port or range of ids is free in {network}")))?;
    let ids = place.ids.map_or("privileged".to_owned(), |ids| format!("ids from {ids}"));
    ctx.log(format!("{}, {}, SSH port {}, {ids}", place.ip, place.mac, place.ssh_port));
    Ok(place)
}

async fn image(ctx: Ctx) -> Result<(), StepError> {
    let label = guest(&ctx).await?.image;
    node_images::ensure(&ctx, ctx.params().node, &label).await
}

async fn spawn(ctx: Ctx) -> Result<(), StepError> {
    let place: Place = ctx.output("allocate")?;
    let row = guest(&ctx).await?;
    let mut conn = ctx.services().db.acquire().await?;
    let lines = lxc_lines::of_guest(&mut conn, row.id).await?;
    drop(conn);
    let net = GuestNet { bridge: row.bridge, network: row.network, ip: place.ip, mac: place.mac };
    let plan = GuestPlan {
        name: row.name,
        id: Some(ctx.params().guest),
        driver: row.driver,
        image: row.image,
        backing: row.backing,
        size: row.size,
        limits: row.limits,
        net,
        autostart: row.autostart,
        lines,
        ids: place.ids,
    };
    ask(&ctx, ctx.params().node, Request::EnsureGuest { plan: Box::new(plan) }, Duration::from_mins(10)).await.map(drop)
}

async fn remove(ctx: Ctx) -> Result<(), StepError> {
    let absent = Request::EnsureAbsent { name: ctx.params().name.clone(), id: Some(ctx.params().guest) };
    ask(&ctx, ctx.params().node, absent, Duration::from_mins(2)).await.map(drop)
}

/// They take the place of those of the image, before the guest has run.
async fn files(ctx: Ctx) -> Result<(), StepError> {
    let Params { name, node, backup, snapshot, storage, .. } = ctx.params().clone();
    match (backup, snapshot) {
        (Some(backup), _) => backup::bring(&ctx, backup, (&name, node)).await?,
        (None, Some(from)) => {
            let which = TreeWhich::Snapshot(from.id);
            let way = Way { from: (&from.name, from.node), which, to: (&name, node), storage, onto: None };
            carry(&ctx, way).await?;
        }
        (None, None) => return Ok(()),
    }
    ask(&ctx, node, Request::EnsureReplaced { name: name.clone(), job: ctx.job() }, backup::LONG).await?;
    ask(&ctx, node, Request::EnsureSettled { name }, backup::LONG).await.map(drop)
}

async fn hosts_file(ctx: Ctx) -> Result<(), StepError> {
    let place: Place = ctx.output("allocate")?;
    let name = &ctx.params().name;
    let short = name.as_str().split('.').next().unwrap_or_default();
    let hosts = format!("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n{}\t{name} {short}\n", place.ip);
    let gateway = guest(&ctx).await?.network.gateway();
    let file = |path: &str, text: String| GuestFile { path: path.to_owned(), text, mode: 0o644, yields: false };
    let files =
        vec![file("/etc/hosts", hosts), file("/etc/hostname", format!("{name}\n")), resolv_conf(gateway, false)];
    set_up(&ctx, GuestSetup { files, ..GuestSetup::default() }).await
}

/// The guest's own host key is made here, so that the controller knows it before the first
/// login; then the keys of those who may enter.
async fn bring_ssh_keys(ctx: Ctx) -> Result<(), StepError> {
    let host_key: SshHostKey = ssh_keys::generate_host_key()
        .map_err(|error| StepError::permanent("no host key could be made").caused_by(error))?;
    let mut tx = ctx.begin().await?;
    guests::set_host_key(&mut tx, ctx.params().guest, &host_key.public).await?;
    tx.commit().await?;
    set_up(&ctx, GuestSetup { host_key: Some(host_key), ..GuestSetup::default() }).await?;
    bring_keys(&ctx, ctx.params().node, ctx.params().guest, &ctx.params().name).await
}

async fn initial_setup(ctx: Ctx) -> Result<(), StepError> {
    let password = ctx.services().guest_password(ctx.params().guest).await?;
    let hash = ssh_keys::unix_hash(&password)
        .map_err(|error| StepError::permanent("the password could not be hashed").caused_by(error))?;
    let account = |name: &str| {
        let user = name.parse().map_err(|error| StepError::permanent("no account name").caused_by(error))?;
        Ok::<_, StepError>(Account { user, password: hash.clone() })
    };
    let accounts = vec![account("root")?, account("sysadmin")?];
    set_up(&ctx, GuestSetup { accounts, ..GuestSetup::default() }).await
}

async fn set_up(ctx: &Ctx, setup: GuestSetup) -> Result<(), StepError> {
    let Params { guest, name, .. } = ctx.params();
    let request = Request::SetUpGuest { name: name.clone(), id: Some(*guest), setup: Box::new(setup) };
    ask(ctx, ctx.params().node, request, SHORT).await.map(drop)
}

async fn start(ctx: Ctx) -> Result<(), StepError> {
    let name = ctx.params().name.clone();
    ask(&ctx, ctx.params().node, Request::EnsureRunning { name }, SHORT).await.map(drop)
}

async fn stop(ctx: Ctx) -> Result<(), StepError> {
    let name = ctx.params().name.clone();
    ask(&ctx, ctx.params().node, Request::EnsureStopped { name, grace_s: 0 }, SHORT).await.map(drop)
}

async fn route(ctx: Ctx) -> Result<(), StepError> {
    set_routed(&ctx, true).await
}

async fn unroute(ctx: Ctx) -> Result<(), StepError> {
    set_routed(&ctx, false).await
}

async fn set_routed(ctx: &Ctx, routed: bool) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    guests::set_routed(&mut tx, ctx.params().guest, routed).await?;
    let others = far::beside(&mut tx, ctx.params().guest).await?;
    tx.commit().await?;
    apply_with(ctx, ctx.params().node, others).await
}

async fn ping(ctx: Ctx) -> Result<(), StepError> {
    let place: Place = ctx.output("allocate")?;
    log_in(&ctx, ctx.params().node, ctx.params().guest, place.ssh_port).await
}

/// A real SSH login through the node's port, against the guest's own host key.
pub(super) async fn log_in<P: JobParams>(
    ctx: &StepContext<Services, P>,
    node: NodeId,
    guest: GuestId,
    port: SshPort,
) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let host_key = guests::host_key(&mut conn, guest).await?.unwrap_or_default();
    drop(conn);
    log_in_as(ctx, node, &host_key, port).await
}

/// The same against this host key.
pub(super) async fn log_in_as<P: JobParams>(
    ctx: &StepContext<Services, P>,
    node: NodeId,
    host_key: &str,
    port: SshPort,
) -> Result<(), StepError> {
    let endpoint = node_calls::endpoint(ctx, node).await?;
    let host_key = host_key
        .parse()
        .map_err(|error| StepError::permanent("the guest's host key can't be read").caused_by(error))?;
    let user = "root".parse().map_err(|error| StepError::permanent("no account name").caused_by(error))?;
    let check = LoginCheck {
        address: endpoint.address,
        port: port.get(),
        user,
        host_key,
        gateway: endpoint.gateway,
        timeout: ctx.paced(BOOT),
    };
    let unanswered = |error: NodeError| {
        StepError::transient(error.to_string()).while_waiting_for("the guest to answer SSH").caused_by(error)
    };
    let login = Box::pin(check_login(&check, &ctx.services().control_key));
    let login = ctx.or_cancelled(async { login.await.map_err(unanswered) }).await?;
    ctx.log(format!("logged in after {} ms", login.elapsed.as_millis()));
    Ok(())
}

/// Most projects want none beside those of the image, and never did. What an image or a backup brought along of others ends
/// here. An account of the image that has the name of one is told, and is no reason to have no guest.
async fn users(ctx: Ctx) -> Result<(), StepError> {
    let guest = ctx.params().guest;
    if !guest_users::may_be_on(&mut *ctx.services().db.acquire().await?, guest).await? {
        return Ok(());
    }
    match users_of_guest::ensure(&ctx, guest).await {
        Err(error) if error.kind == StepErrorKind::Permanent => ctx.log(error.to_string()),
        other => other?,
    }
    Ok(())
}

/// Without a master nothing of Salt goes on running, so there is nothing to do: by far the most guests.
async fn mode(ctx: Ctx) -> Result<Option<SaltBundle>, StepError> {
    let (guest, mode) = (ctx.params().guest, guest(&ctx).await?.mode);
    if mode == Mode::Masterless {
        return Ok(None);
    }
    let salt = bring_salt_inside(&ctx, guest).await?;
    if mode == Mode::Mastersalt {
        guest_mode::be_known(&ctx, guest).await?;
    }
    guest_mode::manage(&ctx, guest, mode, salt.clone()).await?;
    Ok(Some(salt))
}

/// What fails in them is told, and is no reason to have no guest: who asked for it can go in and mend it.
async fn states(ctx: Ctx) -> Result<(), StepError> {
    let (guest, mode) = (ctx.params().guest, guest(&ctx).await?.mode);
    let Some(salt) = ctx.output("mode")? else { return Ok(()) };
    guest_states::apply(&ctx, guest, (mode, false), salt).await.map(drop)
}

async fn ready(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let from = [GuestState::Creating, GuestState::Running];
    if guests::set_state(&mut tx, ctx.params().guest, &from, GuestState::Running, None).await? {
        return Ok(tx.commit().await?);
    }
    Err(StepError::permanent("the guest is in another state than it was left in"))
}
