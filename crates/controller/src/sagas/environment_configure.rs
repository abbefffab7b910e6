//! Telling a guest what its project should know now: names that lead there, settings, Salt.
//!
//! Submitted behind whatever changes that, so of several such jobs the last is right. A guest
//! that does not run is told when it is started again.

use corpus_domain::{EnvironmentState, GuestState, JobKind};
use serde::{Deserialize, Serialize};

use super::balance;
use super::guest_calls::{LAYOUT, On, bring_plan, bring_salt, find_placement, read};
use crate::jobs::{Job, JobParams, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::environments::Placement;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    on: On,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::EnvironmentConfigure;
}

/// The job for an environment.
pub fn job(placement: &Placement) -> NewJob<Params> {
    let on = On::from(placement);
    let title = format!("Tell {} about {} of {}", placement.guest_name, placement.environment, placement.name);
    NewJob::new(title, Params { on: on.clone() }).guest(on.guest).project(on.project).node(on.node).locks(on.alone())
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new().step(Step::new("plan", "Tell the guest", plan).limit(LAYOUT * 2).retry(Retry::times(5)))
}

async fn plan(ctx: StepContext<Services, Params>) -> Result<(), StepError> {
    let on = &ctx.params().on;
    let Some(placement) = find_placement(&ctx, on).await?.filter(|one| one.state == EnvironmentState::Ready) else {
        ctx.log("the environment is not there (any more)");
        return Ok(());
    };
    if placement.guest_state != GuestState::Running {
        ctx.log(format!("{} is {}; it is told when it is started", placement.guest_name, placement.guest_state));
        return balance::follow_up(&ctx, on).await;
    }
    let salt = bring_salt(&ctx, on).await?;
    bring_plan(&ctx, on, salt).await?;
    read(&ctx, on).await?;
    balance::follow_up(&ctx, on).await
}
