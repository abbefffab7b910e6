//! The requests about projects, each from its parameters to its answer.

use corpus_domain::DeploymentId;
use corpus_protocol::{Answer, DeployOrder, Event, Live};

use crate::failure::Failure;
use crate::project::configuration::Configuration;
use crate::project::layout::Layout;
use crate::project::order::{self, Ordered};
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

/// The deployments, newest first.
pub fn deployments(layout: &Layout) -> Result<Vec<DeploymentId>, Failure> {
    let mut orders = Vec::new();
    for id in archive::ids(&layout.deployments()) {
        orders.extend(saved::read::<Ordered>(&layout.order(id))?);
    }
    orders.sort_by_key(|ordered| std::cmp::Reverse(ordered.rank()));
    Ok(orders.into_iter().take(TOLD).map(|ordered| ordered.order.id).collect())
}
