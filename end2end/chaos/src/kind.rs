//! The kinds of jobs: where each begins, and how it is asked for.

use anyhow::{Context, Result};
use corpus_api::backups::{CheckBackups, ListBackups, ProveBackup, RemoveBackup, RestoreBackup, TakeBackup};
use corpus_api::baseline::ApplyNodeBaseline;
use corpus_api::certificates::{GetCertificate, RenewCertificate, SetNameHttps};
use corpus_api::deployments::{Deploy, Phases};
use corpus_api::environments::{GetEnvironmentSettings, RemoveEnvironment, SetEnvironmentSettings, SetUpEnvironment};
use corpus_api::firewall::{AllowToGuest, GetGuestFirewall, RemoveFirewallRule};
use corpus_api::guest_users::{ListGuestUsers, SetGuestUser};
use corpus_api::guests::{
    ApplyGuestStates, DestroyGuest, EnlargeGuest, GetGuest, GetGuestLimits, GetGuestSettings, GetGuestStates,
    RestartGuest, SetGuestLimits, SetGuestSettings, ShrinkGuest, StartGuest, StopGuest, SwitchGuestMode,
};
use corpus_api::images::BringImages;
use corpus_api::images::made::MakeImage;
use corpus_api::jobs::ListJobs;
use corpus_api::keys::{AddKey, ListMyKeys, RemoveKey};
use corpus_api::names::{AttachName, DetachName, ListNames, PointGuest, SwitchName};
use corpus_api::node_service::RebootNode;
use corpus_api::nodes::{Environments, InitializeNode, ListNodes, RepairNode, UnlinkNode};
use corpus_api::projects::DestroyProject;
use corpus_api::snapshots::{ListSnapshots, RemoveSnapshot, RestoreSnapshot, TakeSnapshot};
use corpus_domain::{BackupId, GuestId, JobId, JobKind, Mode, SizeProfile, SnapshotId, Transport};

use crate::bring::{Level, SIMPLE};
use crate::lane::{ENVIRONMENT, Lane};

/// What guests get by a change of their limits, or lose by it.
const MEMORY: &str = "1.5 GiB";

/// In the order in which a lane tries them, so that little has to be rebuilt in between.
pub const KINDS: [JobKind; 41] = [
    JobKind::GuestCreate,
    JobKind::GuestStart,
    JobKind::GuestStop,
    JobKind::GuestRestart,
    JobKind::GuestLimit,
    JobKind::GuestConfigure,
    JobKind::SnapshotTake,
    JobKind::SnapshotRestore,
    JobKind::SnapshotRemove,
    JobKind::BackupTake,
    JobKind::BackupRestore,
    JobKind::BackupCheck,
    JobKind::BackupProve,
    JobKind::BackupRemove,
    JobKind::ImageMake,
    JobKind::KeysSync,
    JobKind::NodeRepair,
    JobKind::NodeImages,
    JobKind::NodeReboot,
    JobKind::NodeBaseline,
    JobKind::NameAttach,
    JobKind::NameConfigure,
    JobKind::CertificateIssue,
    JobKind::GuestPoint,
    JobKind::NameDetach,
    JobKind::NameSwitch,
    JobKind::FirewallApply,
    JobKind::EnvironmentSetUp,
    JobKind::EnvironmentConfigure,
    JobKind::Deploy,
    JobKind::EnvironmentRemove,
    JobKind::GuestUsers,
    // What a guest may go on running then takes from nobody but the next one's destruction.
    JobKind::GuestMode,
    JobKind::GuestStates,
    JobKind::GuestDestroy,
    JobKind::GuestEnlarge,
    JobKind::GuestShrink,
    JobKind::ProjectDestroy,
    JobKind::NodeUnlink,
    JobKind::NodeInitialize,
    JobKind::NodeLink,
];

/// Where a job of this kind begins.
pub fn level(kind: JobKind) -> Level {
    match kind {
        JobKind::NodeLink => Level::Bare,
        JobKind::NodeInitialize => Level::Linked,
        JobKind::NodeUnlink | JobKind::GuestCreate => Level::Ready,
        JobKind::GuestStart => Level::Stopped,
        JobKind::GuestEnlarge | JobKind::GuestShrink => Level::Sized,
        JobKind::NameConfigure
        | JobKind::CertificateIssue
        | JobKind::NameDetach
        | JobKind::NameSwitch
        | JobKind::GuestPoint
        | JobKind::GuestDestroy
        | JobKind::ProjectDestroy => Level::Named,
        JobKind::EnvironmentConfigure | JobKind::Deploy | JobKind::EnvironmentRemove => Level::Environment,
        _ => Level::Running,
    }
}

/// Whether an undone job of this kind leaves its subject to be asked for again: there is no
/// way back from taking something away.
pub fn is_one_way(kind: JobKind) -> bool {
    matches!(
        kind,
        JobKind::NodeUnlink
            | JobKind::GuestDestroy
            | JobKind::NameDetach
            | JobKind::NodeImages
            | JobKind::SnapshotRemove
            | JobKind::BackupRemove
            | JobKind::EnvironmentRemove
            | JobKind::ProjectDestroy
    )
}

/// Asks for a job of this kind.
#[expect(clippy::too_many_lines, reason = "an arm for each kind")]
pub async fn ask(lane: &Lane, kind: JobKind) -> Result<JobId> {
    let (controller, member) = (&lane.controller, &lane.member);
    Ok(match kind {
        JobKind::NodeLink => lane.link().await?,
        JobKind::NodeInitialize => lane.ask(InitializeNode { node: lane.node_id().await? }).await?.job,
        JobKind::NodeUnlink => lane.ask(UnlinkNode { node: lane.node_id().await?, force: false }).await?.job,
        JobKind::GuestCreate => lane.request(SIMPLE).await?,
        JobKind::GuestStart => controller.call(member, StartGuest { guest: guest(lane).await? }, None).await?.job,
        JobKind::GuestStop => controller.call(member, StopGuest { guest: guest(lane).await? }, None).await?.job,
        JobKind::GuestRestart => controller.call(member, RestartGuest { guest: guest(lane).await? }, None).await?.job,
        JobKind::GuestEnlarge => {
            let enlarge = EnlargeGuest { guest: guest(lane).await?, size: SizeProfile::Xxsmall };
            controller.call(member, enlarge, None).await?.job
        }
        JobKind::GuestShrink => shrink(lane).await?,
        JobKind::GuestLimit => {
            let id = guest(lane).await?;
            // Another one than it has, each time.
            let has = controller.call(member, GetGuestLimits { guest: id }, None).await?;
            let memory = if has.memory == MEMORY.parse()? { "768 MiB" } else { MEMORY }.parse()?;
            let (memory, version) = (Some(memory), has.version);
            let set = SetGuestLimits { guest: id, version, memory, cpu: None, processes: None, io_weight: None };
            controller.call(member, set, None).await?.job
        }
        JobKind::GuestConfigure => configure(lane).await?,
        JobKind::GuestMode => switch_mode(lane).await?,
        JobKind::GuestStates => apply_states(lane).await?,
        JobKind::GuestUsers => change_users(lane).await?,
        JobKind::NodeBaseline => apply_baseline(lane).await?,
        JobKind::GuestDestroy => controller.call(member, DestroyGuest { guest: guest(lane).await? }, None).await?.job,
        JobKind::SnapshotTake => take_snapshot(lane, guest(lane).await?).await?,
        JobKind::SnapshotRestore => {
            let (guest, snapshot) = snapshot(lane).await?;
            controller.call(member, RestoreSnapshot { guest, snapshot }, None).await?.job
        }
        JobKind::SnapshotRemove => {
            let (guest, snapshot) = snapshot(lane).await?;
            controller.call(member, RemoveSnapshot { guest, snapshot }, None).await?.job
        }
        JobKind::BackupTake => take_backup(lane, guest(lane).await?).await?,
        JobKind::BackupRestore => {
            let (guest, backup) = backup(lane).await?;
            controller.call(member, RestoreBackup { guest, backup }, None).await?.job
        }
        JobKind::BackupRemove => {
            let (guest, backup) = backup(lane).await?;
            controller.call(member, RemoveBackup { guest, backup }, None).await?.job
        }
        JobKind::BackupCheck => {
            backup(lane).await?;
            let project = lane.project().await?;
            controller.call(member, CheckBackups { project }, None).await?.job
        }
        JobKind::BackupProve => {
            let (guest, backup) = backup(lane).await?;
            controller.call(member, ProveBackup { guest, backup }, None).await?.job
        }
        JobKind::ImageMake => make_image(lane).await?,
        JobKind::NameAttach => {
            let attach = AttachName { guest: guest(lane).await?, name: lane.dns_name().parse()?, wildcard: false };
            controller.call(member, attach, None).await?.job
        }
        JobKind::NameConfigure => configure_name(lane).await?,
        JobKind::NameDetach => {
            let names = controller.call(member, ListNames::default(), None).await?.items;
            controller.call(member, DetachName { name: names.first().context("no name")?.id }, None).await?.job
        }
        JobKind::CertificateIssue => issue_certificate(lane).await?,
        JobKind::NameSwitch => switch_name(lane).await?,
        JobKind::GuestPoint => point(lane).await?,
        JobKind::FirewallApply => change_rules(lane).await?,
        JobKind::KeysSync => change_keys(lane).await?,
        JobKind::EnvironmentSetUp => {
            let (project, guest) = (lane.project().await?, guest(lane).await?);
            let made = SetUpEnvironment { project, environment: Some(ENVIRONMENT), guest };
            controller.call(member, made, None).await?.job
        }
        JobKind::EnvironmentConfigure => {
            let (project, environment) = (lane.project().await?, ENVIRONMENT);
            let now = GetEnvironmentSettings { project: project.clone(), environment };
            let version = controller.call(member, now, None).await?.version;
            let settings = Some("greeting: hello".parse()?);
            controller.call(member, SetEnvironmentSettings { project, environment, settings, version }, None).await?.job
        }
        JobKind::EnvironmentRemove => {
            let project = lane.project().await?;
            let gone = RemoveEnvironment { project, environment: ENVIRONMENT, with_data: true };
            controller.call(member, gone, None).await?.job
        }
        JobKind::Deploy => {
            let (project, only) = (lane.project().await?, Phases::default());
            let head =
                Deploy { project, environment: ENVIRONMENT, commit: None, archive: None, only, plain_archive: false };
            controller.call(member, head, None).await?.job
        }
        JobKind::ProjectDestroy => destroy_project(lane).await?,
        JobKind::NodeRepair => lane.ask(RepairNode { node: lane.node_id().await? }).await?.job,
        JobKind::NodeImages => bring_images(lane).await?,
        // A lane has one node: moving is tried with each of its steps by the controller's own tests on two.
        JobKind::GuestMove | JobKind::GuestEvacuate => anyhow::bail!("a guest can't be moved where there is one node"),
        JobKind::NodeReboot => lane.ask(RebootNode { node: lane.node_id().await? }).await?.job,
    })
}

/// The node has a version of its image that was superseded long ago, which goes.
async fn bring_images(lane: &Lane) -> Result<JobId> {
    let folder = "/var/lib/corpus/images/debian-12-000000000000";
    let made = format!("mkdir -p {folder}/rootfs && printf '%064d\\n' 0 >{folder}/sha256");
    lane.node.attach(&made).await?;
    for statement in [
        "update image_versions set found_at = now() - interval '1 day'",
        "insert into image_versions (name, sha256, bytes, made_at, found_at)
         values ('debian-12', repeat('0', 64), 1, 'epoch', 'epoch') on conflict do nothing",
        "update nodes set reading = jsonb_set(reading, '{images}', reading -> 'images' || '[\"debian-12-000000000000\"]')",
    ] {
        sqlx::query(statement).execute(&lane.db).await?;
    }
    Ok(lane.ask(BringImages { node: lane.node_id().await? }).await?.job)
}

/// Another certificate for the name, of the lane's directory. A project may not ask that often: those before are made older.
async fn issue_certificate(lane: &Lane) -> Result<JobId> {
    let age = "update jobs set created_at = created_at - interval '2 hours' where kind = 'certificate_issue'";
    sqlx::query(age).execute(&lane.db).await?;
    let names = lane.controller.call(&lane.member, ListNames::default(), None).await?.items;
    let renew = RenewCertificate { name: names.first().context("no name")?.id };
    Ok(lane.directory.controller.call(&lane.member, renew, None).await?.job)
}

/// The name of the guest becomes its environment's, or its own again. An environment that leads there is all that a
/// switch needs; the rows of one are made by hand, since nothing is deployed.
async fn switch_name(lane: &Lane) -> Result<JobId> {
    let (project, guest) = (lane.project().await?, guest(lane).await?);
    for statement in [
        "insert into environments (project_id, environment) select project_id, environment from guests where id = $1
         on conflict do nothing",
        "insert into environment_guests (guest_id, project_id, environment, role, state)
         select id, project_id, environment, 'leader', 'ready' from guests where id = $1 on conflict do nothing",
    ] {
        sqlx::query(statement).bind(guest.0).execute(&lane.db).await?;
    }
    // What it is to lead to must answer.
    let serve = format!(
        "lxc-attach -n {} -- sh -c 'systemctl -q is-active site || systemd-run -q --unit site python3 -m http.server 80'",
        lane.guest_name()
    );
    lane.node.attach(&serve).await?;
    let names = lane.controller.call(&lane.member, ListNames { project: Some(project), ..ListNames::default() }, None);
    let name = names.await?.items.into_iter().next().context("no name")?;
    // An address that points to it would keep it.
    if name.pointer.is_some() {
        let pointed = PointGuest { guest, name: None };
        lane.done(lane.controller.call(&lane.member, pointed, None).await?.job).await?;
    }
    let (guest, environment) = if name.environment.is_some() { (Some(guest), None) } else { (None, Some(ENVIRONMENT)) };
    Ok(lane.controller.call(&lane.member, SwitchName { name: name.id, guest, environment }, None).await?.job)
}

/// The address of the guest points to its name, or to none again.
async fn point(lane: &Lane) -> Result<JobId> {
    let names = lane.controller.call(&lane.member, ListNames::default(), None).await?.items;
    let name = names.into_iter().next().context("no name")?;
    let point = PointGuest { guest: name.guest, name: name.pointer.is_none().then_some(name.id) };
    Ok(lane.controller.call(&lane.member, point, None).await?.job)
}

/// It starts at boot if it did not, and the other way round.
async fn configure(lane: &Lane) -> Result<JobId> {
    let id = guest(lane).await?;
    let has = lane.controller.call(&lane.member, GetGuestSettings { guest: id }, None).await?;
    let (autostart, conf, version) = (!has.autostart, has.conf.try_into().unwrap_or_default(), has.version);
    let set = SetGuestSettings { guest: id, autostart, conf, version };
    Ok(lane.controller.call(&lane.member, set, None).await?.job)
}

/// The storage of the guest, which is made large enough before.
async fn shrink(lane: &Lane) -> Result<JobId> {
    const LARGER: SizeProfile = SizeProfile::Small;
    let (controller, member, guest) = (&lane.controller, &lane.member, guest(lane).await?);
    if controller.call(member, GetGuest { guest }, None).await?.line.size != LARGER {
        lane.done(controller.call(member, EnlargeGuest { guest, size: LARGER }, None).await?.job).await?;
    }
    Ok(controller.call(member, ShrinkGuest { guest, size: SizeProfile::Xsmall }, None).await?.job)
}

async fn make_image(lane: &Lane) -> Result<JobId> {
    let (guest, project) = (guest(lane).await?, lane.project().await?);
    let (name, folder, comment) = ("webserver".parse()?, None, None);
    let make = MakeImage { project, name, guest, folder, comment };
    Ok(lane.controller.call(&lane.member, make, None).await?.job)
}

/// Another setting than it has, each time.
async fn configure_name(lane: &Lane) -> Result<JobId> {
    let (controller, member) = (&lane.controller, &lane.member);
    let names = controller.call(member, ListNames::default(), None).await?.items;
    let name = names.first().context("no name")?.id;
    let has = controller.call(member, GetCertificate { name }, None).await?;
    let (redirect, version) = (!has.https_redirect, has.version);
    Ok(controller.call(member, SetNameHttps { name, version, redirect, hsts_s: None }, None).await?.job)
}

/// A snapshot of the guest; of those that earlier cells took, one goes where there are many.
async fn take_snapshot(lane: &Lane, guest: GuestId) -> Result<JobId> {
    let all = lane.controller.call(&lane.member, ListSnapshots { guest }, None).await?.items;
    if let Some(oldest) = all.last().filter(|_| all.len() > 4) {
        let remove = RemoveSnapshot { guest, snapshot: oldest.id };
        lane.done(lane.controller.call(&lane.member, remove, None).await?.job).await?;
    }
    Ok(lane.controller.call(&lane.member, TakeSnapshot { guest, comment: None }, None).await?.job)
}

/// A snapshot of the guest, taken if there is none.
async fn snapshot(lane: &Lane) -> Result<(GuestId, SnapshotId)> {
    let guest = guest(lane).await?;
    let all = async || lane.controller.call(&lane.member, ListSnapshots { guest }, None).await;
    if all().await?.items.is_empty() {
        lane.done(take_snapshot(lane, guest).await?).await?;
    }
    Ok((guest, all().await?.items.first().context("no snapshot")?.id))
}

/// The same with backups.
async fn take_backup(lane: &Lane, guest: GuestId) -> Result<JobId> {
    let all = lane.controller.call(&lane.member, ListBackups { guest }, None).await?.items;
    if let Some(oldest) = all.last().filter(|_| all.len() > 4) {
        let remove = RemoveBackup { guest, backup: oldest.id };
        lane.done(lane.controller.call(&lane.member, remove, None).await?.job).await?;
    }
    Ok(lane.controller.call(&lane.member, TakeBackup { guest, comment: None }, None).await?.job)
}

async fn backup(lane: &Lane) -> Result<(GuestId, BackupId)> {
    let guest = guest(lane).await?;
    let all = async || lane.controller.call(&lane.member, ListBackups { guest }, None).await;
    if all().await?.items.is_empty() {
        lane.done(take_backup(lane, guest).await?).await?;
    }
    Ok((guest, all().await?.items.first().context("no backup")?.id))
}

/// To the mode that it has not, each time.
async fn switch_mode(lane: &Lane) -> Result<JobId> {
    let id = guest(lane).await?;
    let now = lane.controller.call(&lane.member, GetGuestStates { guest: id }, None).await?.mode;
    let mode = if now == Mode::Salt { Mode::Masterless } else { Mode::Salt };
    Ok(lane.controller.call(&lane.member, SwitchGuestMode { guest: id, mode }, None).await?.job)
}

async fn apply_states(lane: &Lane) -> Result<JobId> {
    let apply = ApplyGuestStates { guest: guest(lane).await?, test: false };
    Ok(lane.controller.call(&lane.member, apply, None).await?.job)
}

/// A user comes, or changes what it may.
async fn change_users(lane: &Lane) -> Result<JobId> {
    guest(lane).await?;
    let project = lane.project().await?;
    let now = lane.controller.call(&lane.member, ListGuestUsers { project: project.clone() }, None).await?.items;
    let sudo = now.first().is_none_or(|user| !user.sudo);
    let set = SetGuestUser {
        project,
        user: "deploy".parse()?,
        environments: Environments::default(),
        sudo,
        keys: KEY.parse()?,
    };
    lane.controller.call(&lane.member, set, None).await?;
    lane.controller.do_due_chores().await?;
    newest(lane, JobKind::GuestUsers).await
}

async fn apply_baseline(lane: &Lane) -> Result<JobId> {
    let nodes = lane.controller.call(&lane.ops, ListNodes::default(), None).await?.items;
    let node = nodes.first().context("no node")?.id;
    Ok(lane.controller.call(&lane.ops, ApplyNodeBaseline { node, test: false }, None).await?.job)
}

async fn newest(lane: &Lane, kind: JobKind) -> Result<JobId> {
    let asked = ListJobs { kind: Some(kind), ..ListJobs::default() };
    let jobs = lane.controller.call(&lane.ops, asked, None).await?;
    jobs.items.first().map(|job| job.id).with_context(|| format!("no job of kind {kind}"))
}

async fn guest(lane: &Lane) -> Result<GuestId> {
    lane.guest().await?.map(|(id, _)| id).context("no guest")
}

/// The project of the lane stays, since the other cells are in it: its guest goes over to another one, which is
/// destroyed, or again.
async fn destroy_project(lane: &Lane) -> Result<JobId> {
    for statement in [
        "insert into projects (id, name) values ('0199d3c0-0000-7000-8000-00000000dead', 'going') on conflict do nothing",
        "update guests set project_id = '0199d3c0-0000-7000-8000-00000000dead'",
        "update dns_names set project_id = '0199d3c0-0000-7000-8000-00000000dead'",
    ] {
        sqlx::query(statement).execute(&lane.db).await?;
    }
    Ok(lane.ask(DestroyProject { project: "going".parse()? }).await?.job)
}

/// A rule comes, or the one of the last time goes.
async fn change_rules(lane: &Lane) -> Result<JobId> {
    let (controller, member, guest) = (&lane.controller, &lane.member, guest(lane).await?);
    let rules = controller.call(member, GetGuestFirewall { guest }, None).await?.rules;
    if let Some(rule) = rules.first() {
        return Ok(controller.call(member, RemoveFirewallRule { rule: rule.id }, None).await?.job);
    }
    let (from, protocol, ports) = ("192.0.2.0/24".parse()?, Transport::Tcp, "5432".parse()?);
    Ok(controller.call(member, AllowToGuest { guest, from, protocol, ports, comment: None }, None).await?.job)
}

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q mia@chaos";

/// A key of the member comes, or the one of the last time goes.
async fn change_keys(lane: &Lane) -> Result<JobId> {
    let member = &lane.member;
    match lane.controller.call(member, ListMyKeys::default(), None).await?.items.first() {
        Some(key) => drop(lane.controller.call(member, RemoveKey { key: key.id }, None).await?),
        None => drop(lane.controller.call(member, AddKey { line: KEY.parse()? }, None).await?),
    }
    newest(lane, JobKind::KeysSync).await
}
