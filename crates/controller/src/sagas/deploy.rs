//! Seeing a deployment to its end: ordering it unless it came by git, following it, keeping what
//! became of it.
//!
//! The guest decides: it runs the whole pipeline, proves it or puts everything back, whether or
//! not anybody watches. So nothing is lost when this job is cut anywhere; it goes on at the byte
//! of the guest's journal where it was. A job whose deployment did not go live fails at `follow`
//! with the reason; its undo has nothing to do then, since the guest has put everything back. A drill that
//! was put back did what it is for: its job is done.
//! Only of a job that is cancelled (or fails) before that the undo ends the deployment.
//!
//! Where the environment has followers, this is a two-phase commit: the leader waits when it is
//! prepared, and the job has the followers prepare, one after the other ([`two_phase`]).

mod belief;
mod follow;
mod journal;
mod preview;
mod room;
mod two_phase;

use std::fmt::Write as _;
use std::time::Duration;

use corpus_domain::{DeploymentId, DeploymentState, JobKind, SnapshotId, Trigger};
use corpus_protocol::{Answer, DeployOrder, ErrorKind, Request, RequestError};
use serde::{Deserialize, Serialize};

use self::follow::{Ending, Patience, Until, follow};
use super::balance;
use super::guest_calls::{On, SHORT, ask, ask_patiently, find_placement, placement, read};
use crate::events;
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::nodes::NodeError;
use crate::services::Services;
use crate::store::beside;
use crate::store::deployments::{self, DeploymentProgress};
use crate::store::environments::Placement;
use crate::store::snapshots;

/// Longer than any deployment: each of its phases has a limit of its own on the guest.
const FOLLOW_LIMIT: Duration = Duration::from_hours(24);
/// How long putting everything back may take, with what the rollback recipe does.
const ROLLBACK_LIMIT: Duration = Duration::from_hours(1);

/// A deployment on one guest, which is what a job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Part {
    deployment: DeploymentId,
    on: On,
    /// The snapshots that are wanted before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<SnapshotId>,
}

impl Part {
    /// One that is part of a deployment that has begun.
    const fn unkept(deployment: DeploymentId, on: On) -> Self {
        Self { deployment, on, kept: Vec::new() }
    }
}

impl JobParams for Part {
    const KIND: JobKind = JobKind::Deploy;
}

type Ctx = StepContext<Services, Part>;

/// The job for a deployment whose row is there; `followers` are the guests that it may come to besides. It does not begin
/// without the snapshots of `kept`, which the jobs before it take.
pub fn job(
    deployment: DeploymentId,
    number: i64,
    placement: &Placement,
    followers: &[Placement],
    kept: Vec<SnapshotId>,
) -> NewJob<Part> {
    let on = On::from(placement);
    let followers = followers.iter().map(|follower| Lock::shared("guest", follower.guest));
    let mut title = format!("Deploy {} #{number} to {}", placement.name, placement.environment);
    if !placement.is_leader() {
        let _ = write!(title, " on {}", placement.guest_name);
    }
    NewJob::new(title, Part { deployment, on: on.clone(), kept })
        .guest(on.guest)
        .project(on.project)
        .node(on.node)
        .locks(on.shared().into_iter().chain(followers))
}

/// The steps. Their names are kept with jobs, so two are called as they were at first: `others`
/// prepares the followers, `live` commits.
pub fn steps() -> Job<Services, Part> {
    let often = || Retry::times(1000);
    Job::new()
        .step(
            Step::new("row", "Note the deployment", row)
                .undo(|ctx: Ctx| async move {
                    settle(&ctx, ctx.params()).await?;
                    balance::come_back_from_job(&ctx).await
                })
                .undo_limit(ROLLBACK_LIMIT + ROLLBACK_LIMIT),
        )
        .step(
            Step::new("order", "Order it", |ctx: Ctx| async move { Box::pin(order(&ctx, ctx.params())).await })
                .limit(ROLLBACK_LIMIT),
        )
        .step(Step::new("follow", "Follow it until it can go live", until_prepared).limit(FOLLOW_LIMIT).retry(often()))
        .step(
            Step::new("others", "Deploy on the followers", two_phase::prepare)
                .limit(FOLLOW_LIMIT)
                .retry(often())
                .undo(two_phase::settle_followers)
                .undo_limit(ROLLBACK_LIMIT + ROLLBACK_LIMIT),
        )
        .step(
            Step::new("live", "Go live on all guests", two_phase::commit)
                .limit(FOLLOW_LIMIT)
                .retry(often())
                .not_cancellable(),
        )
        .step(Step::new("record", "Note what is live", record))
}

/// What is known of a deployment now.
async fn progress(ctx: &Ctx, id: DeploymentId) -> Result<DeploymentProgress, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let found = deployments::hold(&mut conn, id).await?;
    found.ok_or_else(|| StepError::permanent("the deployment's row is gone"))
}

async fn row(ctx: Ctx) -> Result<(), StepError> {
    progress(&ctx, ctx.params().deployment).await?;
    placement(&ctx, &ctx.params().on).await?;
    let kept = &ctx.params().kept;
    let mut conn = ctx.services().db.acquire().await?;
    let taken = snapshots::count_taken(&mut conn, kept).await?;
    if usize::try_from(taken).is_ok_and(|taken| taken == kept.len()) {
        return Ok(());
    }
    drop(conn);
    never_began(&ctx, ctx.params()).await?;
    Err(StepError::permanent(
        "a snapshot that is wanted before it could not be taken: the job before this one says why",
    ))
}

/// The id makes it one deployment, however often it is ordered; what came by git is there already.
async fn order(ctx: &Ctx, part: &Part) -> Result<(), StepError> {
    let known = progress(ctx, part.deployment).await?;
    let Some(ordered) = known.ordered.clone().filter(|_| !known.is_final) else { return Ok(()) };
    if known.leader.is_some() {
        Box::pin(two_phase::bring(ctx, part, &ordered)).await?;
    } else {
        Box::pin(preview::bring(ctx, part, &ordered)).await?;
    }
    let order = DeployOrder {
        project: part.on.name.clone(),
        id: part.deployment,
        source: ordered.source,
        trigger: known.trigger,
        only: ordered.only,
        plain_archive: ordered.plain_archive,
        by: known.by,
        follower: known.leader.is_some(),
    };
    ask(ctx, &part.on, Request::Deploy { order: Box::new(order) }, SHORT).await.map(drop)
}

async fn until_prepared(ctx: Ctx) -> Result<(), StepError> {
    match follow(&ctx, ctx.params(), Until::Prepared, Patience::Long).await? {
        Ending::Prepared | Ending::Live => Ok(()),
        Ending::NotLive(why) if has_drilled(&ctx).await? => {
            ctx.log(why);
            read(&ctx, &ctx.params().on).await
        }
        Ending::NotLive(why) => not_live(&ctx, why).await,
    }
}

/// Whether it was a drill that did what it is for: it was broken on purpose, and everything is back.
async fn has_drilled(ctx: &Ctx) -> Result<bool, StepError> {
    let known = progress(ctx, ctx.params().deployment).await?;
    Ok((known.trigger, known.state) == (Trigger::Drill, DeploymentState::RolledBack))
}

/// The job ends with the reason.
async fn not_live(ctx: &Ctx, why: String) -> Result<(), StepError> {
    // Its archives changed; what is live is what was before.
    if let Err(error) = read(ctx, &ctx.params().on).await {
        ctx.log(error.to_string());
    }
    Err(StepError::permanent(why))
}

async fn record(ctx: Ctx) -> Result<(), StepError> {
    let on = &ctx.params().on;
    read(&ctx, on).await?;
    balance::come_back_from_job(&ctx).await?;
    balance::follow_up(&ctx, on).await
}

/// A deployment that is not over is ended, and followed until the guest has put everything back.
async fn settle(ctx: &Ctx, part: &Part) -> Result<(), StepError> {
    let known = progress(ctx, part.deployment).await?;
    if known.state.is_over() {
        return Ok(());
    }
    if find_placement(ctx, &part.on).await?.is_none() {
        if known.ordered.is_some() && known.journal_next == 0 {
            return never_began(ctx, part).await;
        }
        return give_up(ctx, part.deployment, DeploymentState::Broken, "its environment was removed").await;
    }
    let request = Request::CancelDeployment { project: part.on.name.clone(), id: part.deployment };
    tokio::select! {
        ended = follow(ctx, part, Until::Over, Patience::Short) => return ended.map(drop),
        cancelled = Box::pin(beside(ask_patiently(ctx, &part.on, request, ROLLBACK_LIMIT))) => match cancelled?.answer {
            Ok(_) => {}
            Err(NodeError::Remote(RequestError { kind: ErrorKind::Missing, .. })) => return never_began(ctx, part).await,
            // A guest whose disk is full takes no order, that to end one neither.
            Err(error) => {
                ctx.log(error.to_string());
                if !is_on_guest(ctx, part).await? {
                    return never_began(ctx, part).await;
                }
            }
        },
    }
    follow(ctx, part, Until::Over, Patience::Short).await.map(drop)
}

async fn is_on_guest(ctx: &Ctx, part: &Part) -> Result<bool, StepError> {
    let answer = ask(ctx, &part.on, Request::ReadProject { project: part.on.name.clone() }, SHORT).await?;
    Ok(matches!(answer, Answer::Project { deployments, .. } if deployments.contains(&part.deployment)))
}

async fn never_began(ctx: &Ctx, part: &Part) -> Result<(), StepError> {
    give_up(ctx, part.deployment, DeploymentState::Superseded, "it never began; its job says why").await
}

async fn give_up(ctx: &Ctx, id: DeploymentId, state: DeploymentState, why: &str) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    deployments::give_up(&mut tx, id, state, why).await?;
    events::deployment_ended(&mut tx, id).await?;
    Ok(tx.commit().await?)
}
