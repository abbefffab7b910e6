//! Removing an environment, or one of its guests: the project leaves the guest, which stays.
//!
//! There is no way back from this, so nothing is undone: a failure leaves the environment
//! `failed` with the reason, and removing it again goes on where it ended.

use std::time::Duration;

use corpus_domain::{EnvironmentState, GuestState, JobKind};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::balance;
use super::guest_calls::{LAYOUT, On, ask, find_placement};
use super::name_switch::LONGEST_TTL_S;
use super::node_calls::apply_beside;
use crate::jobs::{Job, JobParams, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::balance as shared;
use crate::store::environments::{self, Placement};
use crate::store::{links, spread};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    on: On,
    with_data: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::EnvironmentRemove;
}

type Ctx = StepContext<Services, Params>;

/// The job for an environment whose state was set to leaving.
pub fn job(placement: &Placement, with_data: bool) -> NewJob<Params> {
    let on = On::from(placement);
    let title = format!("Remove {} of {} from {}", placement.environment, placement.name, placement.guest_name);
    NewJob::new(title, Params { on: on.clone(), with_data })
        .guest(on.guest)
        .project(on.project)
        .node(on.node)
        .locks(on.alone())
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("mark", "Mark as leaving", mark).undo(mark_failed))
        .step(Step::new("project", "Take the project from the guest", absent).limit(LAYOUT).retry(Retry::times(10)))
        .step(Step::new("unspread", "Lead visitors to other nodes", unspread).limit(LAYOUT).retry(Retry::times(10)))
        .step(Step::new("forget", "Free the guest", forget).not_cancellable())
}

async fn mark(ctx: Ctx) -> Result<(), StepError> {
    set_state(&ctx, EnvironmentState::Leaving, None).await
}

async fn mark_failed(ctx: Ctx) -> Result<(), StepError> {
    set_state(&ctx, EnvironmentState::Failed, Some("it was not removed completely; remove it again")).await
}

async fn set_state(ctx: &Ctx, to: EnvironmentState, reason: Option<&str>) -> Result<(), StepError> {
    let on = &ctx.params().on;
    let mut tx = ctx.begin().await?;
    environments::set_state(&mut tx, on.guest, EnvironmentState::ALL, to, reason).await?;
    Ok(tx.commit().await?)
}

async fn absent(ctx: Ctx) -> Result<(), StepError> {
    let on = &ctx.params().on;
    let Some(placement) = find_placement(&ctx, on).await? else { return Ok(()) };
    if placement.guest_state == GuestState::Failed {
        ctx.log(format!("{} is gone, and the project with it", placement.guest_name));
        return Ok(());
    }
    balance::go(&ctx, on.guest, "it leaves the environment").await?;
    let request = Request::EnsureProjectAbsent { project: on.name.clone(), data: ctx.params().with_data };
    ask(&ctx, on, request, LAYOUT).await.map(drop)
}

/// Where this was the environment's last guest on its node, names lead to the others' only. The node goes on to take
/// visitors until resolvers know that.
async fn unspread(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let (closing, kept_s) = spread::closing(&mut conn, ctx.params().on.guest).await?;
    drop(conn);
    if closing.is_empty() {
        return Ok(());
    }
    for name in closing {
        let spread = ctx.services().spread(name).await;
        spread.map_err(|error| {
            StepError::transient(error.to_string()).while_waiting_for("the DNS server to answer").caused_by(error)
        })?;
    }
    let wait = ctx.paced(Duration::from_secs(kept_s.min(LONGEST_TTL_S).into()));
    ctx.log(format!("its names lead to other nodes only; resolvers know that in {} s", wait.as_secs()));
    ctx.or_cancelled(async {
        tokio::time::sleep(wait).await;
        Ok::<(), StepError>(())
    })
    .await
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    let on = &ctx.params().on;
    let mut tx = ctx.begin().await?;
    let is_shared = shared::is_shared(&mut tx, on.guest).await?;
    let beside = links::beside(&mut tx, &[on.guest]).await?;
    environments::delete(&mut tx, on.guest).await?;
    tx.commit().await?;
    ctx.services().guests.forget(on.guest);
    // Its visitors went elsewhere before; where this was cut in between, a repair of the node does the rest.
    if is_shared { apply_beside(&ctx, &beside).await.map(drop) } else { Ok(()) }
}
