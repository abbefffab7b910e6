//! The requests about projects, each from its parameters to its answer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use corpus_domain::{DeploymentId, Phase};
use corpus_protocol::{Answer, DeployOrder, Event, Live, Moment, ProjectPlan};

use crate::failure::Failure;
use crate::project::checks::Prover;
use crate::project::configuration::Configuration;
use crate::project::layout::Layout;
use crate::project::leftovers::MARK;
use crate::project::order::{self, Ordered};
use crate::project::process::Program;
use crate::project::{archive, git, run, saved};
use crate::task::Task;

/// No more deployments are told.
const TOLD: usize = 100;

/// Orders a deployment.
pub fn deploy(wanted: &DeployOrder, task: &Task<'_>) -> Result<Answer, Failure> {
    let layout = Layout::of(task.host, &wanted.project);
    order::order(&layout, wanted, task).map(|changed| Answer::Done { changed })
}

/// Follows a deployment to its end.
pub fn follow(layout: &Layout, id: DeploymentId, from: u64, task: &Task<'_>) -> Result<Answer, Failure> {
    let mut tell = |next, entry| (task.events)(Event::Deployment { next, entry: Box::new(entry) });
    let report = crate::project::follow::follow(layout, id, from, task, &mut tell)?;
    Ok(Answer::Report(Box::new(report)))
}

/// Ends a deployment and waits until it is rolled back.
pub fn cancel(layout: &Layout, id: DeploymentId, task: &Task<'_>) -> Result<Answer, Failure> {
    if !layout.order(id).exists() {
        // What another guest brought for it may be here already, and nobody else takes it away.
        if layout.plan().exists() {
            git::forget_release(layout, id, task)?;
        }
        return Err(Failure::Missing(format!("there is no deployment {id} of {} here", layout.project())));
    }
    if order::is_over(layout, id) {
        return Ok(Answer::Done { changed: false });
    }
    run::ask_to_end(layout, id)?;
    crate::project::follow::follow(layout, id, 0, task, &mut |_, _| {})?;
    Ok(Answer::Done { changed: true })
}

/// Tells about a project.
pub fn read(layout: &Layout) -> Result<Answer, Failure> {
    let plan = saved::plan(layout)?;
    let configuration = match Configuration::load(layout, &plan) {
        Ok(configuration) => configuration,
        // A tree that was broken by hand says nothing of what is live.
        Err(_) => Configuration::live(layout)?.unwrap_or_default(),
    };
    Ok(Answer::Project {
        live: saved::read::<Live>(&layout.live())?,
        deployments: deployments(layout)?,
        archives: archive::list(layout)?,
        configuration: configuration.entries(),
    })
}

/// Makes the checks of what is live, of this guest itself.
pub fn prove(layout: &Layout, task: &Task<'_>) -> Result<Answer, Failure> {
    let live = saved::read::<Live>(&layout.live())?;
    let configuration = Configuration::live(layout)?;
    let (Some(live), Some(configuration)) = (live, configuration) else {
        return Ok(Answer::Proofs { proofs: Vec::new() });
    };
    // Another guest may serve its names now.
    let plan = ProjectPlan { proxy: None, ..saved::plan(layout)? };
    let id = live.deployment.to_string();
    let about = Surroundings { phase: Phase::Prove.as_str(), deployment: &id, mark: &id };
    let prover = Prover {
        plan: &plan,
        command: surroundings(layout, &plan, &configuration, &about),
        mark: id.clone(),
        cancel: task.cancel,
    };
    let deadline = Instant::now() + configuration.limit(Phase::Prove);
    let proofs =
        configuration.checks()?.iter().map(|check| prover.prove(check, Moment::After, true, deadline)).collect();
    Ok(Answer::Proofs { proofs })
}

/// What a program is told of, which runs while no deployment is under way.
pub(super) struct Surroundings<'a> {
    /// What it is for.
    pub phase: &'a str,
    /// The deployment that is live.
    pub deployment: &'a str,
    /// By what it is known, and whatever it starts.
    pub mark: &'a str,
}

/// A program of what is live, without its file.
pub(super) fn surroundings(
    layout: &Layout,
    plan: &ProjectPlan,
    configuration: &Configuration,
    about: &Surroundings<'_>,
) -> Program {
    let mut env: Vec<(String, OsString)> =
        configuration.environment().into_iter().map(|(name, value)| (name, value.into())).collect();
    let mut set = |name: &str, value: OsString| env.push((name.to_owned(), value));
    set("CORPUS_CONFIGURATION", layout.configuration().into());
    set("CORPUS_PROJECT", plan.project.as_str().into());
    set("CORPUS_ENVIRONMENT", plan.environment.as_str().into());
    set("CORPUS_PROJECT_ROOT", layout.tree().into());
    set("CORPUS_PILLAR_ROOT", layout.pillar().into());
    set("CORPUS_DATA", layout.data().into());
    set("CORPUS_USER", configuration.user().unwrap_or_default().into());
    set("CORPUS_PHASE", about.phase.into());
    set("CORPUS_DEPLOYMENT", about.deployment.into());
    set(MARK, about.mark.into());
    Program { path: PathBuf::new(), args: Vec::new(), env, folder: layout.tree(), stdin: None }
}

/// The deployments, newest first.
pub fn deployments(layout: &Layout) -> Result<Vec<DeploymentId>, Failure> {
    let mut orders = Vec::new();
    for id in archive::ids(&layout.deployments()) {
        orders.extend(saved::read::<Ordered>(&layout.order(id))?);
    }
    orders.sort_by_key(|ordered| std::cmp::Reverse(ordered.rank()));
    Ok(orders.into_iter().take(TOLD).map(|ordered| ordered.order.id).collect())
}
