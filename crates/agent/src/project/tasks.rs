//! Tasks: recipes of a project (`.salt/task_NAME.sls`) that belong to no deployment.
//!
//! A person runs one on the guest when it is wanted, to read data in, or to try something; with the configuration of what is
//! live, and never while a deployment runs. What it says goes to who runs it, and nowhere else.

use std::time::Instant;

use corpus_domain::Phase;
use corpus_protocol::{Live, Stream};

use crate::failure::Failure;
use crate::files;
use crate::project::configuration::Configuration;
use crate::project::dialect::Kept;
use crate::project::layout::Layout;
use crate::project::process::Bounds;
use crate::project::recipe::{Recipe, Recipes, TASK};
use crate::project::redact::Redactor;
use crate::project::requests::{Surroundings, surroundings};
use crate::project::{queue, salt, saved};
use crate::task::Task;

/// What a task finds as the phase.
const PHASE: &str = "task";

/// Runs one of what is live; tells whether it went well.
pub fn run(layout: &Layout, name: &str, task: &Task<'_>) -> Result<bool, Failure> {
    let plan = saved::plan(layout)?;
    let live = saved::read::<Live>(&layout.live())?;
    let (Some(live), Some(configuration)) = (live, Configuration::live(layout)?) else {
        return Err(Failure::Missing(format!("nothing of {} is live, and so it has no tasks", layout.project())));
    };
    let _turn = queue::hold(layout, task)?;
    let recipes = Recipes::find(&layout.tree(), plan.environment)?;
    let recipe = find(&recipes, name)?;
    let folder = layout.home().join("task");
    let archive = layout.archive(live.deployment);
    let kept = Kept { archive: &archive, goes_back: false };
    let place = salt::Place::of(layout, task.host, &plan, (&configuration, layout.configuration()), &kept)?;
    let ran = salt::Run::prepare(&folder, &place, &salt::Act::Apply(&recipe.name))?;
    let id = live.deployment.to_string();
    let mark = format!("{PHASE}-{id}");
    let about = Surroundings { phase: PHASE, deployment: &id, mark: &mark };
    let limit = configuration.limit(Phase::Install);
    let redactor = Redactor::new(configuration.secrets());
    let program = ran.program(surroundings(layout, &plan, &configuration, &about));
    let bounds = Bounds { deadline: Instant::now() + limit, limit, cancel: task.cancel, mark, redactor };
    let failed = program.run(&bounds, &mut |stream, text| {
        let text = bounds.redactor.text(text);
        if stream == Stream::Note { task.note(text) } else { println!("{text}") }
    });
    files::remove_folder(&folder)?;
    if let Some(reason) = &failed {
        task.note(format!("{}: {reason}", recipe.name));
    }
    Ok(failed.is_none())
}

/// By its whole name, or by what is its own of it.
fn find<'a>(recipes: &'a Recipes, name: &str) -> Result<&'a Recipe, Failure> {
    let is_it = |recipe: &&Recipe| {
        let own = recipe.name.trim_end_matches(".sls");
        [recipe.name.as_str(), own, own.trim_start_matches(TASK)].contains(&name)
    };
    recipes.tasks().find(is_it).ok_or_else(|| {
        let all: Vec<_> = recipes.tasks().map(|recipe| recipe.name.trim_end_matches(".sls")).collect();
        let there = if all.is_empty() { "there are none".to_owned() } else { format!("there is {}", all.join(", ")) };
        Failure::Missing(format!("there is no task {name}; {there}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_by_either_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".salt")).unwrap();
        for name in ["task_cron.sls", "10_x.sls"] {
            std::fs::write(folder.path().join(".salt").join(name), "").unwrap();
        }
        let recipes = Recipes::find(folder.path(), corpus_domain::Environment::Dev).unwrap();
        for name in ["cron", "task_cron", "task_cron.sls"] {
            assert_eq!(find(&recipes, name).unwrap().name, "task_cron.sls");
        }
        let told = find(&recipes, "10_x").unwrap_err().to_string();
        assert!(told.contains("there is no task 10_x; there is task_cron"), "{told}");
    }
}
