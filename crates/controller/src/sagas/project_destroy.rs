//! Destroying a project: everything on its guests' nodes, its names, its rows, itself.
//!
//! The project is marked when the job is submitted, and not written to from then on. The job has the project alone,
//! so it waits in the queue for all jobs of the project before it; a cancel until then leaves everything as it was.
//! With the step `begin` there is no way back: what follows is not cancelled and not undone. A job that fails after
//! it leaves a project that can only be destroyed again, which goes on where this one ended; each step asks what is
//! there still.
//!
//! A node that does not answer holds up its own guests only: the others go, then it is waited for.

use std::collections::BTreeSet;
use std::time::Duration;

use corpus_domain::{JobKind, NodeId, ProjectId, ProjectName};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::guest_point::unpoint;
use super::name_detach::remove_record;
use super::node_calls::{apply, ask};
use crate::dns::Owner;
use crate::jobs::{Job, JobParams, Jobs, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::services::Services;
use crate::store::{names, previews, project_end};

/// How long a guest may take to go.
const GOING: Duration = Duration::from_mins(2);
/// How long one try of a step may take that does something for each guest or name: each of these has its own limit.
const WHOLE: Duration = Duration::from_hours(24);
/// How often it is looked whether other jobs are over.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    project: ProjectId,
    name: ProjectName,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::ProjectDestroy;
}

type Ctx = StepContext<Services, Params>;

/// The job for a project with guests on these nodes.
pub fn job(project: ProjectId, name: &ProjectName, nodes: &[NodeId]) -> NewJob<Params> {
    let nodes = nodes.iter().map(|node| Lock::node_shared(*node));
    NewJob::new(format!("Destroy project {name}"), Params { project, name: name.clone() })
        .project(project)
        .locks(nodes.chain([Lock::project(project)]))
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    let often = || Retry::times(20);
    Job::new()
        .step(Step::new("mark", "Wait until nothing else is done with it", mark).limit(WHOLE).undo(stay))
        .step(Step::new("begin", "Begin: from here there is no way back", begin).retry(often()).not_cancellable())
        .step(
            Step::new("routes", "Remove the routes of its guests", unroute)
                .limit(WHOLE)
                .retry(often())
                .not_cancellable(),
        )
        .step(Step::new("names", "Remove its DNS names", remove_names).limit(WHOLE).retry(often()).not_cancellable())
        .step(Step::new("guests", "Destroy its guests", destroy_guests).limit(WHOLE).retry(often()).not_cancellable())
        .step(
            Step::new("deployments", "Forget its deployments", forget_deployments)
                .limit(WHOLE)
                .retry(often())
                .not_cancellable(),
        )
        .step(
            Step::new("forget", "Forget its members and itself", forget).limit(WHOLE).retry(often()).not_cancellable(),
        )
}

/// The queue has let it begin when no other job of the project was there; its previews go first, by jobs of their own.
/// One that a server of an earlier release
/// submitted does not queue with it, and is waited for here.
async fn mark(ctx: Ctx) -> Result<(), StepError> {
    let mut waiting = None;
    loop {
        let mut tx = ctx.begin().await?;
        project_end::leave(&mut tx, ctx.params().project, ctx.job()).await?;
        let other = project_end::other_job(&mut tx, ctx.params().project, ctx.job()).await?;
        let preview = previews::any(&mut tx, ctx.params().project).await?;
        tx.commit().await?;
        let preview = preview.map(|name| format!("its preview {name} to be gone"));
        let Some(awaited) = other.map(|other| format!("“{other}”")).or(preview) else { return Ok(()) };
        waiting.get_or_insert_with(|| ctx.waiting_for(awaited));
        ctx.or_cancelled(async {
            tokio::time::sleep(ctx.paced(LOOK_AGAIN)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    }
}

async fn stay(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    project_end::stay(&mut tx, ctx.params().project, ctx.job()).await?;
    Ok(tx.commit().await?)
}

async fn begin(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    if !project_end::begin(&mut tx, ctx.params().project, ctx.job()).await? {
        return Err(StepError::cancelled());
    }
    Ok(tx.commit().await?)
}

async fn unroute(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    project_end::close(&mut tx, ctx.params().project).await?;
    let nodes = project_end::nodes(&mut tx, ctx.params().project).await?;
    tx.commit().await?;
    let mut failures = Failures::default();
    for node in nodes {
        if let Err(error) = apply(&ctx, node).await {
            failures.note(&ctx, error);
        }
    }
    failures.outcome()
}

async fn remove_names(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let all = project_end::names(&mut conn, ctx.params().project).await?;
    drop(conn);
    for name in all {
        unpoint(&ctx, name.id).await?;
        remove_record(&ctx, name.held.as_ref(), &Owner::new(name.name, name.wildcard)).await?;
        let mut tx = ctx.begin().await?;
        names::delete(&mut tx, name.id).await?;
        tx.commit().await?;
    }
    Ok(())
}

async fn destroy_guests(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let all = project_end::guests(&mut conn, ctx.params().project).await?;
    drop(conn);
    let (total, mut gone) = (all.len() as u64, 0);
    let (mut away, mut failures) = (BTreeSet::new(), Failures::default());
    for going in all {
        if away.contains(&going.node) {
            continue;
        }
        let absent = Request::EnsureAbsent { name: going.name.clone(), id: Some(going.guest) };
        match ask(&ctx, going.node, absent, GOING).await {
            Ok(_) => {
                let mut tx = ctx.begin().await?;
                project_end::forget_guest(&mut tx, going.guest).await?;
                tx.commit().await?;
                ctx.services().guests.forget(going.guest);
                ctx.log(format!("{} is gone", going.name));
                gone += 1;
                ctx.progress(gone, total);
            }
            Err(error) => {
                if error.waiting_for.is_some() {
                    away.insert(going.node);
                }
                failures.note(&ctx, error);
            }
        }
    }
    failures.outcome()
}

async fn forget_deployments(ctx: Ctx) -> Result<(), StepError> {
    loop {
        let mut tx = ctx.begin().await?;
        let forgotten = project_end::forget_deployments(&mut tx, ctx.params().project).await?;
        tx.commit().await?;
        if forgotten == 0 {
            return Ok(());
        }
    }
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    if let Some(storage) = ctx.services().backup_storage(ctx.params().project) {
        let place = storage.to_string();
        let removed = tokio::task::spawn_blocking(move || storage.remove()).await;
        let removed = removed.map_err(|error| StepError::transient("removing backups was ended").caused_by(error))?;
        removed.map_err(|error| StepError::transient(format!("the backups in {place} can't be removed: {error}")))?;
    }
    let mut tx = ctx.begin().await?;
    Jobs::end_waiting(&mut tx, ctx.params().project, "its project was destroyed").await?;
    project_end::forget(&mut tx, ctx.params().project).await?;
    Ok(tx.commit().await?)
}

/// What could not be done on some of the nodes: the first that may be done on another try, else the first.
#[derive(Default)]
struct Failures(Option<StepError>);

impl Failures {
    fn note(&mut self, ctx: &Ctx, error: StepError) {
        ctx.log(error.to_string());
        let kept = self.0.as_ref().map(|kept| kept.kind);
        if kept.is_none() || (kept == Some(StepErrorKind::Permanent) && error.kind == StepErrorKind::Transient) {
            self.0 = Some(error);
        }
    }

    fn outcome(self) -> Result<(), StepError> {
        self.0.map_or(Ok(()), Err)
    }
}
