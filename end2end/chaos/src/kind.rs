//! The kinds of jobs: where each begins, and how it is asked for.

use anyhow::{Context, Result};
use corpus_api::deployments::{Deploy, Phases};
use corpus_api::environments::{GetEnvironmentSettings, RemoveEnvironment, SetEnvironmentSettings, SetUpEnvironment};
use corpus_api::guests::{
    DestroyGuest, EnlargeGuest, GetGuestLimits, RestartGuest, SetGuestLimits, StartGuest, StopGuest,
};
use corpus_api::jobs::ListJobs;
use corpus_api::keys::{AddKey, ListMyKeys, RemoveKey};
use corpus_api::names::{AttachName, DetachName, ListNames};
use corpus_api::nodes::{InitializeNode, RepairNode, UnlinkNode};
use corpus_domain::{GuestId, JobId, JobKind, SizeProfile};

use crate::bring::{Level, SIMPLE};
use crate::lane::{ENVIRONMENT, Lane};

/// What guests get by a change of their limits, or lose by it.
const MEMORY: &str = "1.5 GiB";

/// In the order in which a lane tries them, so that little has to be rebuilt in between.
pub const KINDS: [JobKind; 18] = [
    JobKind::GuestCreate,
    JobKind::GuestStart,
    JobKind::GuestStop,
    JobKind::GuestRestart,
    JobKind::GuestLimit,
    JobKind::KeysSync,
    JobKind::NodeRepair,
    JobKind::NameAttach,
    JobKind::NameDetach,
    JobKind::EnvironmentSetUp,
    JobKind::EnvironmentConfigure,
    JobKind::Deploy,
    JobKind::EnvironmentRemove,
    JobKind::GuestDestroy,
    JobKind::GuestEnlarge,
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
        JobKind::GuestEnlarge => Level::Sized,
        JobKind::NameDetach | JobKind::GuestDestroy => Level::Named,
        JobKind::EnvironmentConfigure | JobKind::Deploy | JobKind::EnvironmentRemove => Level::Environment,
        _ => Level::Running,
    }
}

/// Whether an undone job of this kind leaves its subject to be asked for again: there is no
/// way back from taking something away.
pub fn is_one_way(kind: JobKind) -> bool {
    matches!(kind, JobKind::NodeUnlink | JobKind::GuestDestroy | JobKind::NameDetach | JobKind::EnvironmentRemove)
}

/// Asks for a job of this kind.
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
        JobKind::GuestLimit => {
            let id = guest(lane).await?;
            // Another one than it has, each time.
            let has = controller.call(member, GetGuestLimits { guest: id }, None).await?;
            let memory = if has.memory == MEMORY.parse()? { "768 MiB" } else { MEMORY }.parse()?;
            let (memory, version) = (Some(memory), has.version);
            let set = SetGuestLimits { guest: id, version, memory, cpu: None, processes: None, io_weight: None };
            controller.call(member, set, None).await?.job
        }
        JobKind::GuestDestroy => controller.call(member, DestroyGuest { guest: guest(lane).await? }, None).await?.job,
        JobKind::NameAttach => {
            let attach = AttachName { guest: guest(lane).await?, name: lane.dns_name().parse()? };
            controller.call(member, attach, None).await?.job
        }
        JobKind::NameDetach => {
            let names = controller.call(member, ListNames::default(), None).await?.items;
            controller.call(member, DetachName { name: names.first().context("no name")?.id }, None).await?.job
        }
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
            let head = Deploy { project, environment: ENVIRONMENT, commit: None, archive: None, only };
            controller.call(member, head, None).await?.job
        }
        JobKind::NodeRepair => lane.ask(RepairNode { node: lane.node_id().await? }).await?.job,
    })
}

async fn guest(lane: &Lane) -> Result<GuestId> {
    lane.guest().await?.map(|(id, _)| id).context("no guest")
}

/// A key of the member comes, or the one of the last time goes.
async fn change_keys(lane: &Lane) -> Result<JobId> {
    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q mia@chaos";
    let member = &lane.member;
    match lane.controller.call(member, ListMyKeys::default(), None).await?.items.first() {
        Some(key) => drop(lane.controller.call(member, RemoveKey { key: key.id }, None).await?),
        None => drop(lane.controller.call(member, AddKey { line: KEY.parse()? }, None).await?),
    }
    let asked = ListJobs { kind: Some(JobKind::KeysSync), ..ListJobs::default() };
    let jobs = lane.controller.call(&lane.ops, asked, None).await?;
    jobs.items.first().map(|job| job.id).context("no job for the keys")
}
