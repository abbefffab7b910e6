//! The operator's hooks, run around the steps of jobs: the one place that calls them, so no job knows of them.
//!
//! A hook is a part of its step: it fails it, and is undone with it. What is to be undone is written down before
//! the hook begins. After a crash the step is run again, and its hooks with it: they are told the attempt.

mod about;
mod run;

use corpus_domain::{DeploymentId, HookFailure, HookSide, HookUndo, JobKind, Phase};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use self::about::About;
use self::run::{Ended, Order, record};
use super::guest_calls::On;
use crate::hooks::folder::{self, Found, Hook};
use crate::hooks::stages::Stage;
use crate::jobs::{Around, Side, StepContext, StepError, StepErrorKind};
use crate::services::Services;
use crate::store::hook_runs::{self, ToUndo};

type Ctx = StepContext<Services, Value>;

/// The hooks around all steps of all jobs.
#[derive(Debug)]
pub struct Hooks;

impl Around<Services> for Hooks {
    fn covers(&self, kind: JobKind, step: &str) -> bool {
        Stage::covers(kind, step)
    }

    fn run(&self, side: Side, context: Ctx) -> BoxFuture<'static, Result<(), StepError>> {
        async move { around_step(&context, of(side)).await }.boxed()
    }

    fn undo(&self, side: Side, context: Ctx) -> BoxFuture<'static, Result<(), StepError>> {
        async move { undo_all(&context, of(side)).await }.boxed()
    }
}

const fn of(side: Side) -> HookSide {
    match side {
        Side::Before => HookSide::Before,
        Side::After => HookSide::After,
    }
}

async fn around_step(ctx: &Ctx, side: HookSide) -> Result<(), StepError> {
    let mut stages: Vec<_> = Stage::at(ctx.kind(), ctx.step(), side).collect();
    if side == HookSide::Before {
        // What ends last begins first.
        stages.reverse();
    }
    for stage in stages {
        let found = found(ctx, stage, side).await?;
        if found.hooks.is_empty() {
            continue;
        }
        let about = About::of_params(ctx).await?;
        for hook in found.hooks.iter().filter(|hook| hook.is_for(about.project.as_ref(), about.environment)) {
            one(ctx, hook, &about, ctx.step()).await?;
        }
    }
    Ok(())
}

/// Runs what hangs on a phase of a deployment, of which its guest tells that it begins or has ended: the guest goes
/// on meanwhile. Tells whether there was anything.
pub async fn of_phase<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    on: &On,
    deployment: DeploymentId,
    (phase, side): (Phase, HookSide),
) -> Result<bool, StepError> {
    // Of a deployment that is being ended only that is told.
    if ctx.is_undoing() && !matches!(phase, Phase::Rollback | Phase::Notify) {
        return Ok(false);
    }
    let Some(stage) = Stage::of_phase(phase) else { return Ok(false) };
    let found = found(ctx, stage, side).await?;
    if found.hooks.is_empty() {
        return Ok(false);
    }
    let about = About::of_deployment(ctx, on, deployment).await?;
    for hook in found.hooks.iter().filter(|hook| hook.is_for(about.project.as_ref(), about.environment)) {
        // The step goes on for as long as the deployment does, and would be tried for as long.
        one(ctx, hook, &about, stage.first).await.map_err(|error| match error.kind {
            StepErrorKind::Transient if error.counts => StepError::permanent(error.to_string()).caused_by(error),
            _ => error,
        })?;
    }
    Ok(true)
}

/// What hangs there now; what is wrong with it is said in the job's log.
async fn found<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    stage: &'static Stage,
    side: HookSide,
) -> Result<Found, StepError> {
    let folder = ctx.services().settings.hooks_folder.clone();
    let found = reading(move || folder::of_stage(&folder, stage, side)).await?;
    for problem in &found.problems {
        // Members read this too: not where the folder is.
        let path = problem.path.strip_prefix(&ctx.services().settings.hooks_folder).unwrap_or(&problem.path);
        ctx.log(format!("hook {} is not run: {}", path.display(), problem.reason));
    }
    Ok(found)
}

async fn reading<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, StepError> {
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|error| StepError::transient("the folder of hooks could not be read").caused_by(error))
}

/// Runs a hook within a step. Its error fails the step.
async fn one<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    hook: &Hook,
    about: &About,
    step: &str,
) -> Result<(), StepError> {
    let order = Order::of(hook, hook.path.clone(), about.host(hook.host)?);
    let ended = record(ctx, hook, about, step, &order).await?;
    let (reason, error) = match ended {
        Ended::Done => return Ok(()),
        Ended::Cancelled => return Err(StepError::cancelled()),
        Ended::Failed(reason) => (reason.clone(), StepError::permanent(failed(hook, &reason))),
        Ended::Away { reason, .. } => (reason.clone(), StepError::transient(failed(hook, &reason))),
    };
    if hook.on_failure == HookFailure::Warn || hook.stage.only_warns(hook.side).is_some() || ctx.is_undoing() {
        ctx.log(format!("warning: {}", failed(hook, &reason)));
        return Ok(());
    }
    Err(error)
}

fn failed(hook: &Hook, reason: &str) -> String {
    format!("hook {}: {reason}", hook.id())
}

/// Undoes what hooks did on one side of the step, the last first.
async fn undo_all(ctx: &Ctx, side: HookSide) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let runs = hook_runs::to_undo(&mut tx, ctx.job(), ctx.step(), side).await?;
    tx.commit().await?;
    if runs.is_empty() {
        return Ok(());
    }
    let folder = ctx.services().settings.hooks_folder.clone();
    let found = reading(move || folder::read(&folder)).await?;
    for run in &runs {
        undo_one(ctx, &found, run).await?;
    }
    Ok(())
}

async fn undo_one(ctx: &Ctx, found: &Found, run: &ToUndo) -> Result<(), StepError> {
    let hook = found.hooks.iter().find(|hook| hook.id() == run.hook);
    let Some((hook, undo)) = hook.and_then(|hook| Some((hook, hook.undo.clone()?))) else {
        let why = "its undo is not in the folder of hooks any more, or is not run; put it back and try again";
        return Err(StepError::permanent(format!("hook {}: {why}", run.hook)));
    };
    let about = About::of_facts(ctx, &run.facts).await?;
    let ended = match about.host(hook.host) {
        Ok(host) => {
            let order = Order::of(hook, undo, host).undoing();
            ctx.log(format!("undo of hook {} on {}", run.hook, run.host));
            run::execute(ctx, &order, &run.facts, &mut |_| {}).await
        }
        Err(error) => Ended::Failed(error.to_string()),
    };
    let (undo, outcome) = match ended {
        Ended::Done => (HookUndo::Undone, Ok(())),
        // The guest goes, and what the hook did in it.
        Ended::Away { reason, .. } if About::goes_with(ctx.kind(), hook.host) => {
            ctx.log(format!("the undo of hook {} is left out: {reason}", run.hook));
            (HookUndo::Undone, Ok(()))
        }
        Ended::Away { reason, .. } => (HookUndo::Failed, Err(StepError::transient(undo_failed(run, &reason)))),
        Ended::Failed(reason) if hook.on_failure == HookFailure::Warn => {
            ctx.log(format!("warning: {}", undo_failed(run, &reason)));
            (HookUndo::Failed, Ok(()))
        }
        Ended::Failed(reason) => (HookUndo::Failed, Err(StepError::permanent(undo_failed(run, &reason)))),
        Ended::Cancelled => (HookUndo::Failed, Err(StepError::cancelled())),
    };
    let mut tx = ctx.begin().await?;
    hook_runs::undone(&mut tx, (ctx.job(), ctx.step()), run, undo).await?;
    tx.commit().await?;
    outcome
}

fn undo_failed(run: &ToUndo, reason: &str) -> String {
    format!("the undo of hook {} on {}: {reason}", run.hook, run.host)
}

#[cfg(test)]
mod tests;
