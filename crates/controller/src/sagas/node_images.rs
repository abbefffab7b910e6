//! Bringing images to a node: the newest version of each that it should have, and none that nobody needs any more.
//!
//! Guests stay on the version that they are clones of, so nothing has to be undone: an image more on a node does no harm,
//! and one that is missing is brought with the next guest that needs it.

use std::path::Path;

use corpus_domain::{ImageName, Invalid, JobKind, NodeId};
use corpus_protocol::{Answer, ImageSource, Request};
use serde::{Deserialize, Serialize};

use super::node_calls::{SHORT, ask, endpoint, failed};
use super::node_initialize::LONG;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::nodes::UploadName;
use crate::services::Services;
use crate::store::images::{self, Version};
use crate::store::nodes::{self, Node};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    node: NodeId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NodeImages;
}

type Ctx = StepContext<Services, Params>;

/// The job for a node in service. Its guests go on meanwhile, and more are made.
pub fn job(node: &Node) -> NewJob<Params> {
    NewJob::new(format!("Bring images to {}", node.address), Params { node: node.id })
        .node(node.id)
        .locks([Lock::node_shared(node.id), lock(node.id)])
}

/// The images of a node, alone: two that bring the same would write the same file.
pub(super) fn lock(node: NodeId) -> Lock {
    Lock::exclusive("images", node)
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("bring", "Bring new versions", bring_all).limit(LONG).retry(Retry::times(4)))
        .step(Step::new("prune", "Remove old ones", prune).retry(Retry::times(4)))
        .step(Step::new("read", "Read the node again", read).retry(Retry::times(4)))
}

async fn bring_all(ctx: Ctx) -> Result<(), StepError> {
    let services = ctx.services();
    services.look_for_images().await?;
    let mut conn = services.db.acquire().await?;
    let lacking = images::lacking(&mut conn, ctx.params().node, &services.settings.images.usual()).await?;
    drop(conn);
    if lacking.is_empty() {
        ctx.log("it has the newest of each");
    }
    for version in &lacking {
        bring(&ctx, ctx.params().node, version).await?;
    }
    Ok(())
}

async fn prune(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let needless = images::needless(&mut conn, ctx.params().node).await?;
    drop(conn);
    for name in needless {
        ctx.log(format!("removing {name}: no guest here is a clone of it"));
        ask(&ctx, ctx.params().node, Request::EnsureNoImage { name }, LONG).await?;
    }
    Ok(())
}

async fn read(ctx: Ctx) -> Result<(), StepError> {
    keep_reading(&ctx, ctx.params().node).await
}

/// The newest version of what guests are clones of unless they ask for another; the node makes the image itself where
/// the controller has no archive of it.
pub(super) async fn bring_usual<P: JobParams>(ctx: &StepContext<Services, P>, node: NodeId) -> Result<(), StepError> {
    let services = ctx.services();
    services.look_for_images().await?;
    let name = services.settings.images.usual();
    let mut conn = services.db.acquire().await?;
    let newest = images::newest(&mut conn, &name).await?;
    drop(conn);
    match newest {
        Some(version) => bring(ctx, node, &version).await,
        None => build(ctx, node, name).await,
    }
}

/// What a guest is to be a clone of is on its node. In most cases nothing is asked of the node.
pub(super) async fn ensure<P: JobParams>(
    ctx: &StepContext<Services, P>,
    node: NodeId,
    label: &ImageName,
) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let is_there = images::is_on(&mut conn, node, label).await?;
    let version = images::labelled(&mut conn, label).await?;
    drop(conn);
    match version {
        Some(version) if !is_there => {
            bring(ctx, node, &version).await?;
            keep_reading(ctx, node).await
        }
        _ => Ok(()),
    }
}

/// What lies there is the archive of the version.
async fn is_there(services: &Services, version: &Version, path: &Path) -> Result<(), StepError> {
    let Version { name, label, sha256, made } = version;
    let unreadable = |error| StepError::transient(format!("{} can't be read", path.display())).caused_by(error);
    if made.is_some() {
        // Its node looks whether it is what its name says.
        let there = tokio::fs::try_exists(path).await.map_err(unreadable)?;
        let missing = || StepError::transient(format!("there is no {} at this server", path.display()));
        return there.then_some(()).ok_or_else(missing);
    }
    let archive = services.archive(name).await.map_err(unreadable)?;
    if archive.is_none_or(|archive| archive.sha256.to_string() != *sha256) {
        return Err(StepError::transient(format!("{} is not {label} any more", path.display())));
    }
    Ok(())
}

/// The version is on the node, from the archive in the controller's folder.
pub(super) async fn bring<P: JobParams>(
    ctx: &StepContext<Services, P>,
    node: NodeId,
    version: &Version,
) -> Result<(), StepError> {
    let (services, Version { label, sha256, .. }) = (ctx.services(), version);
    let path = services.version_path(version);
    is_there(services, version, &path).await?;
    let endpoint = endpoint(ctx, node).await?;
    let upload: UploadName = format!("{label}.tar.zst")
        .parse()
        .map_err(|error: Invalid| StepError::permanent("no name for an upload").caused_by(error))?;
    ctx.log(format!("bringing {label}"));
    let sent = services.nodes.upload(&endpoint, &path, &upload, |done, total| ctx.progress(done, total));
    let sent = ctx.or_cancelled(async { sent.await.map_err(|error| failed(&endpoint, error)) }).await?;
    let source = ImageSource::Archive { path: sent.path, sha256: sha256.clone(), unpacked: version.made };
    ask(ctx, node, Request::EnsureImage { name: label.clone(), source }, LONG).await.map(drop)
}

async fn build<P: JobParams>(ctx: &StepContext<Services, P>, node: NodeId, name: ImageName) -> Result<(), StepError> {
    let path = ctx.services().archive_path(&name);
    ctx.log(format!("{} is not there; the node builds the image itself", path.display()));
    let source = ImageSource::Debootstrap { suite: "bookworm".to_owned(), mirror: None };
    ask(ctx, node, Request::EnsureImage { name, source }, LONG).await.map(drop)
}

/// Which images it has is known at once, not with the next reading.
async fn keep_reading<P: JobParams>(ctx: &StepContext<Services, P>, node: NodeId) -> Result<(), StepError> {
    let Answer::Reading(reading) = ask(ctx, node, Request::Read, SHORT).await? else {
        return Err(StepError::permanent("the agent answered something else than a reading"));
    };
    let mut tx = ctx.begin().await?;
    nodes::set_reading(&mut tx, node, &reading).await?;
    Ok(tx.commit().await?)
}
