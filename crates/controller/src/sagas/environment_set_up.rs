//! Setting an environment up on a guest: the leader is pushed to, a follower deploys what it does.

use corpus_api::environments::SetUpEnvironment;
use corpus_domain::{EnvironmentState, JobKind};
use corpus_protocol::{Request, SaltBundle};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::balance;
use super::guest_calls::{LAYOUT, On, ask, bring_plan, bring_salt, find_placement, placement, read};
use super::node_calls::apply;
use crate::events;
use crate::jobs::{Job, JobParams, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::environments::{self, Placement};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    on: On,
    /// What was asked for, to ask again when it can't be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Value>,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::EnvironmentSetUp;
}

type Ctx = StepContext<Services, Params>;

/// The job for an environment whose row is there.
pub fn job(placement: &Placement) -> NewJob<Params> {
    let on = On::from(placement);
    let title = format!("Set up {} of {} on {}", placement.environment, placement.name, placement.guest_name);
    let asked = SetUpEnvironment { project: on.name.clone(), environment: Some(on.environment), guest: on.guest };
    let params = Params { on: on.clone(), asked: serde_json::to_value(asked).ok() };
    NewJob::new(title, params).guest(on.guest).project(on.project).node(on.node).locks(on.alone())
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("row", "Note the environment", row).undo(forget))
        .step(Step::new("salt", "Bring Salt", salt).limit(LAYOUT * 2))
        .step(
            Step::new("project", "Lay the project out", project)
                .limit(LAYOUT * 2)
                .undo(remove)
                .undo_limit(LAYOUT)
                .undo_retry(Retry::times(10)),
        )
        .step(Step::new("firewall", "Let the guest reach the proxy", firewall))
        .step(Step::new("ready", "Mark as ready", ready))
}

async fn row(ctx: Ctx) -> Result<(), StepError> {
    placement(&ctx, &ctx.params().on).await.map(drop)
}

async fn forget(ctx: Ctx) -> Result<(), StepError> {
    let on = &ctx.params().on;
    let mut tx = ctx.begin().await?;
    environments::delete(&mut tx, on.guest).await?;
    Ok(tx.commit().await?)
}

async fn salt(ctx: Ctx) -> Result<Option<SaltBundle>, StepError> {
    bring_salt(&ctx, &ctx.params().on).await
}

async fn project(ctx: Ctx) -> Result<(), StepError> {
    let salt = ctx.output("salt")?;
    bring_plan(&ctx, &ctx.params().on, salt).await
}

/// Data that was there before, of an environment that was removed without it, stays.
async fn remove(ctx: Ctx) -> Result<(), StepError> {
    let on = &ctx.params().on;
    if find_placement(&ctx, on).await?.is_none() {
        return Ok(());
    }
    let request = Request::EnsureProjectAbsent { project: on.name.clone(), data: false };
    ask(&ctx, on, request, LAYOUT).await.map(drop)
}

/// The node's rules as this release writes them: with an older one's, checks on the way that the
/// world takes fail.
async fn firewall(ctx: Ctx) -> Result<(), StepError> {
    apply(&ctx, ctx.params().on.node).await
}

async fn ready(ctx: Ctx) -> Result<(), StepError> {
    let on = &ctx.params().on;
    read(&ctx, on).await?;
    let is_leader = placement(&ctx, on).await?.is_leader();
    let mut tx = ctx.begin().await?;
    let from = [EnvironmentState::SettingUp, EnvironmentState::Ready];
    if environments::set_state(&mut tx, on.guest, &from, EnvironmentState::Ready, None).await? {
        if is_leader {
            let git_url = ctx.services().settings.git_url.as_deref();
            events::platform_ready(&mut tx, on.project, on.environment, git_url).await?;
        }
        tx.commit().await?;
        return balance::follow_up(&ctx, on).await;
    }
    Err(StepError::permanent("the environment is in another state than it was left in"))
}
