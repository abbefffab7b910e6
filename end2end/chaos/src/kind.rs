//! The kinds of jobs: where each begins, and how it is asked for.

use anyhow::{Context, Result};
use corpus_controller::jobs::JobFilter;
use corpus_domain::{ChosenLimits, GuestId, JobId, JobKind, SizeProfile};
use corpus_protocol::Source;

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
    let (controller, ops, member) = (&lane.controller, &lane.ops, &lane.member);
    Ok(match kind {
        JobKind::NodeLink => lane.link().await?,
        JobKind::NodeInitialize => controller.initialize_node(ops, lane.node_id().await?).await?,
        JobKind::NodeUnlink => controller.unlink_node(ops, lane.node_id().await?, false).await?,
        JobKind::GuestCreate => lane.request(SIMPLE).await?,
        JobKind::GuestStart => controller.start_guest(member, guest(lane).await?).await?,
        JobKind::GuestStop => controller.stop_guest(member, guest(lane).await?).await?,
        JobKind::GuestRestart => controller.restart_guest(member, guest(lane).await?).await?,
        JobKind::GuestEnlarge => controller.enlarge_guest(member, guest(lane).await?, SizeProfile::Xxsmall).await?,
        JobKind::GuestLimit => {
            let id = guest(lane).await?;
            // Another one than it has, each time.
            let has = controller.guest(member, id).await?.limits.memory;
            let memory = if has == MEMORY.parse()? { "768 MiB" } else { MEMORY }.parse()?;
            controller.limit_guest(member, id, ChosenLimits { memory: Some(memory), ..ChosenLimits::default() }).await?
        }
        JobKind::GuestDestroy => controller.destroy_guest(member, guest(lane).await?).await?,
        JobKind::NameAttach => controller.attach_name(member, guest(lane).await?, lane.dns_name().parse()?).await?,
        JobKind::NameDetach => {
            let names = controller.names(member).await?;
            controller.detach_name(member, names.first().context("no name")?.id).await?
        }
        JobKind::KeysSync => change_keys(lane).await?,
        JobKind::EnvironmentSetUp => {
            let (project, guest) = (lane.project().await?, guest(lane).await?);
            controller.set_up_environment(member, project, ENVIRONMENT, guest).await?
        }
        JobKind::EnvironmentConfigure => {
            controller.set_settings(member, lane.project().await?, ENVIRONMENT, "greeting: hello").await?
        }
        JobKind::EnvironmentRemove => {
            controller.remove_environment(member, lane.project().await?, ENVIRONMENT, true).await?
        }
        JobKind::Deploy => {
            controller.deploy(member, lane.project().await?, ENVIRONMENT, Source::Head, Vec::new()).await?.1
        }
        JobKind::NodeRepair => controller.repair_node(ops, lane.node_id().await?).await?,
    })
}

async fn guest(lane: &Lane) -> Result<GuestId> {
    lane.guest().await?.map(|(id, _)| id).context("no guest")
}

/// A key of the member comes, or the one of the last time goes.
async fn change_keys(lane: &Lane) -> Result<JobId> {
    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q mia@chaos";
    match lane.controller.my_keys(&lane.member).await?.first() {
        Some(key) => lane.controller.remove_key(&lane.member, key.id).await?,
        None => drop(lane.controller.add_key(&lane.member, KEY).await?),
    }
    let filter = JobFilter { kind: Some(JobKind::KeysSync), ..JobFilter::default() };
    let jobs = lane.controller.jobs(&lane.ops, filter, 0).await?;
    jobs.items.first().map(|job| job.id).context("no job for the keys")
}
