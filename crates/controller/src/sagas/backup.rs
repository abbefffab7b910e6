//! Taking and deleting backups of guests.
//!
//! A backup is of one moment, so the guest's node takes a snapshot first, which is read and then removed. Before that, what
//! is live in the guest dumps what of its data is no good as files of one moment; where that fails the backup says so, and is
//! taken all the same. The row is there
//! before the files and goes after them. Each backup has its id as a tag in the repository: a job that was cut between
//! saving and noting finds what it saved.
//!
//! Saving and reading share a repository; what deletes from it has it alone.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use corpus_api::backups::BackupDump;
use corpus_backup::{About, BackupError, Repository, Saved, Snapshot};
use corpus_domain::{
    BackupId, Bytes, GuestId, GuestName, GuestState, JobKind, NodeId, ProjectId, SnapshotId, plain_line,
};
use corpus_protocol::{Answer, JobRef, Request, TreeDigest, TreeSums};
use serde::{Deserialize, Serialize};

use super::node_calls::{Asked, ask, awaited, call, endpoint, failed_at, is_away, patiently};
pub(super) use super::snapshot::LONG;
use crate::guest_backups::{self, CarryError, Limits, Program};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::nodes::{TreeWhat, TreeWhich, TreeWords};
use crate::services::Services;
use crate::store::backups::{self, Taken};
use crate::store::guests::GuestRow;
use crate::store::{backup_repositories, environments};

/// How long what a project dumps may take; its guest ends it a little before.
const DUMPS: Duration = Duration::from_mins(121);
/// What is kept of why that failed, in characters.
const LONGEST_PROBLEM: usize = 1_000;
/// How long all files of a guest may take from or to its node.
pub(super) const WHOLE: Duration = Duration::from_hours(12);
/// A guest may have so many times what it is promised in its files: sparse ones are longer than they take.
const SPARSE: u64 = 4;
/// What it may have besides, in bytes: its image.
const BESIDES: u64 = 4 << 30;

/// What the job that takes one is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Take {
    id: BackupId,
    guest: GuestId,
    name: GuestName,
    node: NodeId,
    project: ProjectId,
    /// What the guest is promised.
    storage: Bytes,
}

impl JobParams for Take {
    const KIND: JobKind = JobKind::BackupTake;
}

/// What the job that deletes some of a project is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Remove {
    ids: Vec<BackupId>,
    project: ProjectId,
}

impl JobParams for Remove {
    const KIND: JobKind = JobKind::BackupRemove;
}

/// What locks of repositories are called.
pub(super) const REPOSITORY: &str = "backups";

/// The repository of a project, for who changes nothing that is in it.
pub(super) fn lock_shared(project: ProjectId) -> Lock {
    Lock::shared(REPOSITORY, project)
}

/// The job for a backup that was noted.
pub fn take(guest: &GuestRow, id: BackupId) -> NewJob<Take> {
    let params = Take {
        id,
        guest: guest.id,
        name: guest.name.clone(),
        node: guest.node_id,
        project: guest.project_id,
        storage: guest.storage,
    };
    NewJob::new(format!("Take a backup of {}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id), lock_shared(guest.project_id)])
}

/// The job for backups that are being deleted, of a guest or of several of a project.
pub fn remove(project: ProjectId, guest: Option<&GuestRow>, ids: Vec<BackupId>) -> NewJob<Remove> {
    let title = match (guest, ids.len()) {
        (Some(guest), 1) => format!("Delete a backup of {}", guest.name),
        (_, count) => format!("Delete {count} backups that are kept no longer"),
    };
    let job =
        NewJob::new(title, Remove { ids, project }).project(project).locks([Lock::exclusive(REPOSITORY, project)]);
    match guest {
        Some(guest) => job.guest(guest.id),
        None => job,
    }
}

/// Takes one.
pub fn take_steps() -> Job<Services, Take> {
    Job::new()
        .step(Step::new("note", "Note that it is taken", noted).undo(forget_it))
        .step(Step::new("dump", "Have its project dump its data", dump).retry(Retry::times(2)).limit(DUMPS * 2))
        .step(
            Step::new("snapshot", "Keep its files as they are", snapshot)
                .undo(drop_snapshot)
                .undo_retry(Retry::times(20))
                .undo_limit(LONG)
                .limit(LONG * 2),
        )
        .step(
            Step::new("save", "Bring them to the repository", save)
                .undo(take_out)
                .undo_limit(LONG)
                .retry(Retry::times(2))
                .limit(WHOLE),
        )
        .step(Step::new("clear", "Let go of the snapshot", drop_snapshot).retry(Retry::times(20)).limit(LONG))
        .step(Step::new("done", "Note what it is", done).not_cancellable())
}

/// Deletes some. There is no way back; a failure leaves them to be deleted again.
pub fn remove_steps() -> Job<Services, Remove> {
    Job::new()
        .step(Step::new("remove", "Delete what only they held", delete).undo(leave).retry(Retry::times(4)).limit(WHOLE))
}

type Ctx = StepContext<Services, Take>;

/// The row is there since it was asked for; its undo comes last of all.
async fn noted(_: Ctx) -> Result<(), StepError> {
    Ok(())
}

async fn forget_it(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    backups::delete(&mut tx, &[ctx.params().id]).await?;
    Ok(tx.commit().await?)
}

/// Nothing where no project is live in it, that project dumps nothing, or the guest rests: then all is at rest.
async fn dump(ctx: Ctx) -> Result<Option<BackupDump>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let placement = environments::on_guest(&mut conn, ctx.params().guest).await?;
    drop(conn);
    let live = placement.filter(|on| on.live.is_some() && on.guest_state == GuestState::Running);
    let Some((project, guest)) = live.and_then(|on| Some((on.name.clone(), on.endpoint()?))) else { return Ok(None) };
    note_dumping(&ctx, true).await?;
    let asked = patiently(&ctx, is_away, async || {
        let request = Request::DumpProject { project: project.clone() };
        let answer = call(&ctx, &ctx.services().guests, &guest, request, DUMPS).await;
        Ok(Asked { awaited: "the guest to answer".to_owned(), answer })
    });
    let asked = asked.await;
    note_dumping(&ctx, false).await?;
    let Asked { awaited, answer } = asked?;
    let (size, problem) = match answer.map_err(|error| failed_at(awaited, error)) {
        Ok(Answer::Dumps { dumped: None }) => return Ok(None),
        Ok(Answer::Dumps { dumped: Some(dumped) }) => (dumped.bytes, dumped.failed),
        Ok(_) => (Bytes(0), Some("the guest told something else than what it dumped".to_owned())),
        Err(error) if error.kind == StepErrorKind::Cancelled => return Err(error),
        Err(error) => (Bytes(0), Some(error.message)),
    };
    // The guest's root may say nothing at all.
    let problem = problem.map(|problem| match plain_line(&problem, LONGEST_PROBLEM) {
        said if said.is_empty() => "the guest does not say why".to_owned(),
        said => said,
    });
    ctx.log(match &problem {
        None => format!("{} were dumped", size.gb()),
        Some(problem) => format!("nothing was dumped, and the backup is taken without: {problem}"),
    });
    Ok(Some(BackupDump { bytes: size, problem }))
}

async fn note_dumping(ctx: &Ctx, dumping: bool) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    backups::set_dumping(&mut tx, ctx.params().id, dumping).await?;
    Ok(tx.commit().await?)
}

/// The snapshot that is read has the backup's id.
fn read_from(id: BackupId) -> SnapshotId {
    SnapshotId(id.0)
}

/// Tells the moment that it is of: what was written later is not in it.
async fn snapshot(ctx: Ctx) -> Result<DateTime<Utc>, StepError> {
    let Take { id, name, node, .. } = ctx.params().clone();
    let now = Utc::now();
    ask(&ctx, node, Request::EnsureSnapshot { name, snapshot: read_from(id) }, LONG).await?;
    Ok(now)
}

async fn drop_snapshot(ctx: Ctx) -> Result<(), StepError> {
    let Take { id, name, node, .. } = ctx.params().clone();
    ask(&ctx, node, Request::EnsureNoSnapshot { name, snapshot: read_from(id) }, LONG).await.map(drop)
}

/// What was saved, as the step says it to the last one.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Said {
    snapshot: String,
    bytes: u64,
    files: u64,
    added_bytes: u64,
    took_ms: u64,
}

/// How much a guest that is promised so much storage may have in its files.
pub(super) const fn most(storage: Bytes) -> Limits {
    Limits { bytes: storage.0.saturating_mul(SPARSE).saturating_add(BESIDES) }
}

async fn save(ctx: Ctx) -> Result<Said, StepError> {
    let Take { id, guest, name, node, project, storage } = ctx.params().clone();
    let began = Instant::now();
    let repository = repository(&ctx, project).await?;
    room(&ctx).await?;
    let saved = if let Some(snapshot) = tagged(&repository, id).await? {
        Saved { snapshot, added_bytes: 0 }
    } else {
        let node = endpoint(&ctx, node).await?;
        let about = About { label: guest.0.to_string(), host: name.to_string(), tag: id.0.to_string() };
        let words = words(&ctx, &name, TreeWhat::Read(TreeWhich::Snapshot(read_from(id))));
        let limits = most(storage);
        let program = Program { nodes: &ctx.services().nodes, node: &node, words };
        let progress = |come, of| ctx.progress(come, of);
        let saved = guest_backups::save(&program, repository, about, limits, progress, ctx.cancelled()).await;
        saved.map_err(|error| failed(awaited(&node), error))?
    };
    let one = saved.snapshot;
    ctx.log(format!(
        "{} files, {}, of which {} were new",
        one.files,
        Bytes(one.bytes).gb(),
        Bytes(saved.added_bytes).gb()
    ));
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Said { snapshot: one.id, bytes: one.bytes, files: one.files, added_bytes: saved.added_bytes, took_ms })
}

/// A place that is full makes no half backups, and keeps what is needed to delete some.
async fn room(ctx: &Ctx) -> Result<(), StepError> {
    let Some(storage) = ctx.services().settings.guest_backups.clone() else { return Ok(()) };
    let looked = tokio::task::spawn_blocking(move || guest_backups::is_full(&storage)).await;
    let looked = looked.map_err(|error| StepError::transient("the look for room was ended").caused_by(error))?;
    match looked {
        Ok(None) => Ok(()),
        Ok(Some(full)) => Err(StepError::permanent(full)),
        Err(error) => Err(StepError::transient(format!("the place of backups can't be looked at: {error}"))),
    }
}

/// What was saved and is not wanted after all.
async fn take_out(ctx: Ctx) -> Result<(), StepError> {
    let repository = repository(&ctx, ctx.params().project).await?;
    if let Some(found) = tagged(&repository, ctx.params().id).await? {
        in_thread(move || repository.remove(&[found.id])).await?;
    }
    Ok(())
}

async fn done(ctx: Ctx) -> Result<(), StepError> {
    let Said { snapshot, bytes, files, added_bytes, took_ms } = ctx.output("save")?;
    // A job that an earlier release began says none.
    let at = ctx.output("snapshot").unwrap_or_else(|_| Utc::now());
    let dump = ctx.output_if_done("dump")?.flatten();
    let taken = Taken { at, snapshot, bytes, files, added_bytes, took: Duration::from_millis(took_ms), dump };
    let project = ctx.params().project;
    let size = counted(&ctx, project).await?;
    let mut tx = ctx.begin().await?;
    backups::taken(&mut tx, ctx.params().id, &taken).await?;
    backup_repositories::counted(&mut tx, project, size).await?;
    Ok(tx.commit().await?)
}

async fn delete(ctx: StepContext<Services, Remove>) -> Result<(), StepError> {
    let Remove { ids, project } = ctx.params().clone();
    let mut conn = ctx.services().db.acquire().await?;
    let snapshots = backups::snapshots(&mut conn, &ids).await?;
    drop(conn);
    let repository = repository(&ctx, project).await?;
    in_thread(move || match repository.remove(&snapshots).and_then(|()| repository.prune()) {
        // Somebody removed it as a whole.
        Err(BackupError::NoRepository(_)) => Ok(()),
        done => done,
    })
    .await?;
    let size = counted(&ctx, project).await?;
    let mut tx = ctx.begin().await?;
    backups::delete(&mut tx, &ids).await?;
    backup_repositories::counted(&mut tx, project, size).await?;
    Ok(tx.commit().await?)
}

/// What the repository of a project takes now.
pub(super) async fn counted<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    project: ProjectId,
) -> Result<Bytes, StepError> {
    let repository = repository(ctx, project).await?;
    in_thread(move || repository.size()).await.map(Bytes)
}

async fn leave(ctx: StepContext<Services, Remove>) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    backups::back(&mut tx, &ctx.params().ids).await?;
    Ok(tx.commit().await?)
}

/// The repository of a project.
pub(super) async fn repository<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    project: ProjectId,
) -> Result<Repository, StepError> {
    let opened = ctx.services().backup_repository(project).await;
    opened.map_err(|error| StepError::permanent(error.to_string()).caused_by(error))
}

async fn tagged(repository: &Repository, id: BackupId) -> Result<Option<Snapshot>, StepError> {
    let repository = repository.clone();
    in_thread(move || match repository.tagged(&id.0.to_string()) {
        // The first one makes it.
        Err(BackupError::NoRepository(_)) => Ok(None),
        found => found,
    })
    .await
}

/// Works on a repository, as one that nobody waits for.
pub(super) async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, StepError> {
    let ended = guest_backups::aside(work).await;
    let ended = ended.map_err(|error| StepError::transient("the work on the repository was ended").caused_by(error))?;
    ended.map_err(|error| StepError::transient(whole(&error)).caused_by(error))
}

/// Brings the files of a backup to a guest's node, where they are to become the guest's.
pub(super) async fn bring<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    backup: (BackupId, ProjectId),
    to: (&GuestName, NodeId),
) -> Result<(), StepError> {
    bring_with(ctx, backup, to, None).await.map(drop)
}

/// The same; with a digest, tells what they come to.
pub(super) async fn bring_with<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    (id, project): (BackupId, ProjectId),
    (guest, node): (&GuestName, NodeId),
    digest: Option<TreeDigest>,
) -> Result<TreeSums, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let found = backups::snapshot(&mut conn, id).await?;
    drop(conn);
    let (snapshot, bytes) = found.ok_or_else(|| StepError::permanent("the backup is gone"))?;
    let repository = repository(ctx, project).await?;
    let node = endpoint(ctx, node).await?;
    let words = words(ctx, guest, TreeWhat::Write { bytes: bytes.0, onto: false });
    let program = Program { nodes: &ctx.services().nodes, node: &node, words };
    let progress = |gone| ctx.progress(gone, bytes.0);
    let brought = guest_backups::bring(&program, (repository, snapshot), digest, progress, ctx.cancelled()).await;
    brought.map_err(|error| failed(awaited(&node), error))
}

/// What is asked of an agent for this job's run.
pub(super) fn words<P: Send + Sync>(ctx: &StepContext<Services, P>, guest: &GuestName, what: TreeWhat) -> TreeWords {
    let JobRef { id: job, generation, .. } = ctx.next_request();
    TreeWords { guest: guest.clone(), job, generation, what }
}

/// What it means for a step that files could not be carried.
pub(super) fn failed(awaited: String, error: CarryError) -> StepError {
    match error {
        CarryError::Cancelled => StepError::cancelled(),
        CarryError::Node(error) => failed_at(awaited, error),
        error @ CarryError::Told(_) => StepError::permanent(error.to_string()),
        error => StepError::transient(whole(&error)).caused_by(error),
    }
}

/// An error with what caused it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
