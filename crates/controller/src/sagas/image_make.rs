//! Making an image of a guest, for new guests of its project.
//!
//! The files are of one moment, so the guest's node takes a snapshot first, which is read and then removed; the guest goes
//! on. The archive is written at the controller, under a name of the job until it is whole. New guests are made from it when
//! its row is there, which is the last step, so who asks for one meanwhile gets what there was before.

use std::path::{Path, PathBuf};

use corpus_api::words::Label;
use corpus_domain::{Bytes, FilePath, GuestId, GuestName, ImageName, JobKind, NodeId, ProjectId, SnapshotId, UserId};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::backup::{LONG, WHOLE, failed, most, words};
use super::node_calls::{ask, awaited, endpoint};
use crate::guest_backups::{self, Program, What};
use crate::images::{is_full, problem};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::nodes::{Sha256, TreeWhat, TreeWhich};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::made_images::{self, Made};
use crate::uploads::MOST;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    /// The image, whose row is there.
    image: Uuid,
    name: ImageName,
    guest: GuestId,
    of: GuestName,
    node: NodeId,
    project: ProjectId,
    /// What the guest is promised.
    storage: Bytes,
    folder: Option<FilePath>,
    comment: Option<Label>,
    by: Option<UserId>,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::ImageMake;
}

/// What is asked for.
#[derive(Debug)]
pub struct Asked {
    /// The image, whose row is there.
    pub image: Uuid,
    /// What it is called.
    pub name: ImageName,
    /// A folder in the guest.
    pub folder: Option<FilePath>,
    /// What is in it.
    pub comment: Option<Label>,
    /// Who wants it.
    pub by: Option<UserId>,
}

/// The job for an image that was noted.
pub fn job(guest: &GuestRow, asked: Asked) -> NewJob<Params> {
    let Asked { image, name, folder, comment, by } = asked;
    let title = format!("Make the image {name} of {}", guest.name);
    let params = Params {
        image,
        name,
        guest: guest.id,
        of: guest.name.clone(),
        node: guest.node_id,
        project: guest.project_id,
        storage: guest.storage,
        folder,
        comment,
        by,
    };
    NewJob::new(title, params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("note", "Note that it is made", noted).undo(settle))
        .step(
            Step::new("snapshot", "Keep the guest's files as they are", snapshot)
                .undo(drop_snapshot)
                .undo_retry(Retry::times(20))
                .undo_limit(LONG)
                .limit(LONG * 2),
        )
        .step(
            Step::new("pack", "Write them into an archive", pack)
                .undo(remove_archive)
                .retry(Retry::times(2))
                .limit(WHOLE),
        )
        .step(Step::new("clear", "Let go of the snapshot", drop_snapshot).retry(Retry::times(20)).limit(LONG))
        .step(Step::new("keep", "Have new guests made from it", keep).not_cancellable())
}

type Ctx = StepContext<Services, Params>;

/// The row is there since it was asked for; its undo comes last of all.
async fn noted(_: Ctx) -> Result<(), StepError> {
    Ok(())
}

async fn settle(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    made_images::settle(&mut tx, ctx.params().image).await?;
    Ok(tx.commit().await?)
}

/// The snapshot that is read has the job's id.
fn read_from(ctx: &Ctx) -> SnapshotId {
    SnapshotId(ctx.job().0)
}

async fn snapshot(ctx: Ctx) -> Result<(), StepError> {
    let (name, node) = (ctx.params().of.clone(), ctx.params().node);
    ask(&ctx, node, Request::EnsureSnapshot { name, snapshot: read_from(&ctx) }, LONG).await.map(drop)
}

async fn drop_snapshot(ctx: Ctx) -> Result<(), StepError> {
    let (name, node) = (ctx.params().of.clone(), ctx.params().node);
    ask(&ctx, node, Request::EnsureNoSnapshot { name, snapshot: read_from(&ctx) }, LONG).await.map(drop)
}

/// What was written, as the step says it to the last one.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Said {
    sha256: String,
    bytes: u64,
    unpacked: u64,
}

/// Where the archive is before it is whole.
fn unfinished(ctx: &Ctx) -> PathBuf {
    ctx.services().settings.made_images.join(format!(".{}", ctx.job()))
}

async fn pack(ctx: Ctx) -> Result<Said, StepError> {
    let (folder, to) = (ctx.services().settings.made_images.clone(), unfinished(&ctx));
    let unwritable = |error: std::io::Error| {
        StepError::transient(format!("{} can't be written to", folder.display())).caused_by(error)
    };
    tokio::fs::create_dir_all(&folder).await.map_err(unwritable)?;
    if let Some(full) = is_full(&folder).map_err(unwritable)? {
        return Err(StepError::permanent(full));
    }
    let Params { of, node, storage, folder: inside, image, .. } = ctx.params().clone();
    let node = endpoint(&ctx, node).await?;
    let words = words(&ctx, &of, TreeWhat::Read(TreeWhich::Snapshot(read_from(&ctx))));
    let program = Program { nodes: &ctx.services().nodes, node: &node, words };
    let inside = inside.iter().flat_map(FilePath::names).map(|name| name.as_bytes().to_vec()).collect();
    let what = What { folder: inside, mark: image.to_string(), most: MOST.min(storage.0.max(1 << 30)) };
    let packed = guest_backups::pack(
        &program,
        (what, to.clone()),
        most(storage),
        |come, of| ctx.progress(come, of),
        ctx.cancelled(),
    );
    let written = match packed.await.map_err(|error| failed(awaited(&node), error)) {
        Ok(packed) => whole(&to, &folder).await.map(|(sha256, bytes)| (packed, sha256, bytes)),
        Err(error) => Err(error),
    };
    if written.is_err() {
        // A second try begins anew.
        let _ = tokio::fs::remove_file(&to).await;
    }
    let (packed, sha256, bytes) = written?;
    let (inside, long) = (Bytes(packed.unpacked), Bytes(bytes));
    ctx.log(format!("{} files, {}, in an archive of {}", packed.files, inside.gb(), long.gb()));
    Ok(Said { sha256: sha256.to_string(), bytes, unpacked: packed.unpacked })
}

/// What was written is a system that guests can be made of, and is called by what is in it.
async fn whole(written: &Path, folder: &Path) -> Result<(Sha256, u64), StepError> {
    let unreadable = |error| StepError::transient(format!("{} can't be read", written.display())).caused_by(error);
    let path = written.to_owned();
    let looked = tokio::task::spawn_blocking(move || problem(&path)).await;
    if let Some(problem) = looked.map_err(|error| StepError::transient("the look was ended").caused_by(error))? {
        return Err(StepError::permanent(format!("no guest can be made of it: {problem}")));
    }
    let sha256 = Sha256::of_file(written).await.map_err(unreadable)?;
    let bytes = tokio::fs::metadata(written).await.map_err(unreadable)?.len();
    tokio::fs::rename(written, folder.join(format!("{sha256}.tar.zst"))).await.map_err(unreadable)?;
    Ok((sha256, bytes))
}

/// What was written and is no version after all.
async fn remove_archive(ctx: Ctx) -> Result<(), StepError> {
    let mut paths = vec![unfinished(&ctx)];
    if let Some(Said { sha256, .. }) = ctx.output_if_done("pack")? {
        let mut conn = ctx.services().db.acquire().await?;
        if !made_images::is_kept(&mut conn, &sha256).await? {
            paths.push(ctx.services().made_archive(&sha256));
        }
    }
    for path in paths {
        match tokio::fs::remove_file(&path).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StepError::transient(format!("{} can't be removed", path.display())).caused_by(error));
            }
            _ => {}
        }
    }
    Ok(())
}

async fn keep(ctx: Ctx) -> Result<(), StepError> {
    let Said { sha256, bytes, unpacked } = ctx.output("pack")?;
    let Params { image, of, folder, comment, by, .. } = ctx.params().clone();
    // Where its node was away for a day before it let go of the snapshot, nobody knew that it is needed.
    let archive = ctx.services().made_archive(&sha256);
    if !tokio::fs::try_exists(&archive).await.unwrap_or(false) {
        return Err(StepError::permanent(format!("{} is gone", archive.display())));
    }
    let made = Made {
        image,
        sha256: &sha256,
        bytes: Bytes(bytes),
        unpacked: Bytes(unpacked),
        guest: Some(&of),
        folder: folder.as_ref(),
        comment: comment.as_ref(),
        by,
    };
    let mut tx = ctx.begin().await?;
    made_images::keep(&mut tx, &made).await?;
    made_images::settle(&mut tx, image).await?;
    Ok(tx.commit().await?)
}
