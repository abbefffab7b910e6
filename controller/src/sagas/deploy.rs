//! Seeing a deployment to its end: ordering it unless it came by git, following it, keeping what
//! became of it.
//!
//! The guest decides: it runs the whole pipeline, proves it or puts everything back, whether or
//! not anybody watches. So nothing is lost when this job is cut anywhere; it goes on at the byte
//! of the guest's journal where it was. A job whose deployment did not go live fails at `follow`
//! with the reason; its undo has nothing to do then, since the guest has put everything back.
//! Only of a job that is cancelled (or fails) before that the undo ends the deployment.

mod follow;
mod journal;

use std::time::Duration;

use corpus_domain::{DeploymentId, DeploymentState, JobKind};
use corpus_protocol::{Answer, DeployOrder, ErrorKind, Request, RequestError};
use serde::{Deserialize, Serialize};

use self::follow::{Ending, Patience, to_its_end};
use super::guest_calls::{On, SHORT, ask, ask_patiently, read, stands, stands_if_there};
use crate::controller::Services;
use crate::jobs::{Job, JobParams, NewJob, Retry, Step, StepContext, StepError};
use crate::mail;
use crate::nodes::NodeError;
use crate::store::deployments::{self, Course};
use crate::store::environments::Stands;

/// Longer than any deployment: each of its phases has a limit of its own on the guest.
const A_DAY: Duration = Duration::from_hours(24);
/// How long putting everything back may take, with what the rollback recipe does.
const ROLLBACK: Duration = Duration::from_hours(1);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    deployment: DeploymentId,
    on: On,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::Deploy;
}

type Ctx = StepContext<Services, Params>;

/// The job for a deployment whose row is there.
pub fn job(deployment: DeploymentId, number: i64, stands: &Stands) -> NewJob<Params> {
    let on = On::from(stands);
    NewJob::new(
        format!("Deploy {} #{number} to {}", stands.name, stands.environment),
        Params { deployment, on: on.clone() },
    )
    .guest(on.guest)
    .project(on.project)
    .node(on.node)
    .locks(on.shared())
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("row", "Note the deployment", row))
        .step(Step::new("order", "Order it", order).undo(settle).undo_limit(ROLLBACK + ROLLBACK))
        .step(Step::new("follow", "Follow it to its end", follow).limit(A_DAY).retry(Retry::times(1000)))
        .step(Step::new("record", "Note what is live", record))
}

/// What is known of the deployment now.
async fn course(ctx: &Ctx) -> Result<Course, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let found = deployments::hold(&mut conn, ctx.params().deployment).await?;
    found.ok_or_else(|| StepError::permanent("the deployment's row is gone"))
}

async fn row(ctx: Ctx) -> Result<(), StepError> {
    course(&ctx).await?;
    stands(&ctx, &ctx.params().on).await.map(drop)
}

/// The id makes it one deployment, however often it is ordered; what came by git is there already.
async fn order(ctx: Ctx) -> Result<(), StepError> {
    let known = course(&ctx).await?;
    let Some(ordered) = known.ordered.filter(|_| !known.is_final) else { return Ok(()) };
    let order = DeployOrder {
        project: ctx.params().on.name.clone(),
        id: ctx.params().deployment,
        source: ordered.source,
        trigger: known.trigger,
        only: ordered.only,
        by: known.by,
    };
    ask(&ctx, &ctx.params().on, Request::Deploy { order: Box::new(order) }, SHORT).await.map(drop)
}

async fn follow(ctx: Ctx) -> Result<(), StepError> {
    match to_its_end(&ctx, Patience::Long).await? {
        Ending::Live => Ok(()),
        Ending::Other(why) => {
            // Its archives changed; what is live is what was before.
            if let Err(error) = read(&ctx, &ctx.params().on).await {
                ctx.log(error.to_string());
            }
            Err(StepError::permanent(why))
        }
    }
}

async fn record(ctx: Ctx) -> Result<(), StepError> {
    read(&ctx, &ctx.params().on).await
}

/// A deployment that is not over is ended, and followed until the guest has put everything back.
async fn settle(ctx: Ctx) -> Result<(), StepError> {
    let known = course(&ctx).await?;
    if known.state.is_over() {
        return Ok(());
    }
    if stands_if_there(&ctx, &ctx.params().on).await?.is_none() {
        return give_up(&ctx, DeploymentState::Broken, "its environment was removed").await;
    }
    let request = Request::CancelDeployment { project: ctx.params().on.name.clone(), id: ctx.params().deployment };
    tokio::select! {
        ended = to_its_end(&ctx, Patience::Short) => return ended.map(drop),
        cancelled = ask_patiently(&ctx, &ctx.params().on, request, ROLLBACK) => match cancelled?.answer {
            Ok(_) => {}
            Err(NodeError::Remote(RequestError { kind: ErrorKind::Missing, .. })) => return never_began(&ctx).await,
            // A guest whose disk is full takes no order, that to end one neither.
            Err(error) => {
                ctx.log(error.to_string());
                if !is_on_guest(&ctx).await? {
                    return never_began(&ctx).await;
                }
            }
        },
    }
    to_its_end(&ctx, Patience::Short).await.map(drop)
}

async fn is_on_guest(ctx: &Ctx) -> Result<bool, StepError> {
    let Params { on, deployment, .. } = ctx.params();
    let told = ask(ctx, on, Request::ReadProject { project: on.name.clone() }, SHORT).await?;
    Ok(matches!(told, Answer::Project { deployments, .. } if deployments.contains(deployment)))
}

async fn never_began(ctx: &Ctx) -> Result<(), StepError> {
    give_up(ctx, DeploymentState::Superseded, "it never began; its job says why").await
}

async fn give_up(ctx: &Ctx, state: DeploymentState, why: &str) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    deployments::give_up(&mut tx, ctx.params().deployment, state, why).await?;
    mail::deployment_ended(&mut tx, ctx.params().deployment).await?;
    Ok(tx.commit().await?)
}
