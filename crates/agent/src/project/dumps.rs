//! What a project dumps before a backup of its guest is taken.
//!
//! A backup has the files of one moment, and those of a database then are for that very version of it to recover from. A dump
//! is for any. How a project's data is dumped only the project knows: its `backup` recipes do, into a folder beside, which
//! takes the place of the last one's when all of them are done. So what lies in `dumps` is whole, and as old as its files say.

use std::fs;
use std::time::{Duration, Instant};

use corpus_domain::Bytes;
use corpus_protocol::{Answer, Dumped, Live, Stream};

use crate::failure::{At, Failure};
use crate::files;
use crate::project::archive;
use crate::project::configuration::Configuration;
use crate::project::layout::Layout;
use crate::project::process::Bounds;
use crate::project::recipe::{Recipe, Recipes};
use crate::project::redact::Redactor;
use crate::project::requests::{Surroundings, surroundings};
use crate::project::{queue, saved};
use crate::task::Task;

/// What its recipes find as the phase.
const PHASE: &str = "backup";
/// Where they put what they dump.
const FOLDER: &str = "CORPUS_DUMPS";
/// No set limit is longer: whoever asked waits so long.
const LONGEST: Duration = Duration::from_hours(2);

/// Has what is live dump its data. A recipe that fails is told, and what was dumped last stays.
pub fn dump(layout: &Layout, task: &Task<'_>) -> Result<Answer, Failure> {
    let live = saved::read::<Live>(&layout.live())?;
    let (Some(live), Some(configuration)) = (live, Configuration::live(layout)?) else { return nothing(layout) };
    let _turn = queue::hold(layout, task)?;
    let all = Recipes::find(&layout.tree(), saved::plan(layout)?.environment)?;
    let recipes: Vec<_> = all.of_backups().collect();
    if recipes.is_empty() {
        return nothing(layout);
    }
    let (folder, next) = (layout.dumps(), layout.dumps_next());
    files::remove_folder(&next)?;
    files::private(&next)?;
    let failed = run(layout, &configuration, &live, &recipes, task)?;
    if failed.is_some() {
        files::remove_folder(&next)?;
        task.go_on()?;
        return Ok(Answer::Dumps { dumped: Some(Dumped { bytes: Bytes(0), failed }) });
    }
    let bytes = Bytes(archive::size(&next));
    files::remove_folder(&folder)?;
    fs::rename(&next, &folder).at("keep", &folder)?;
    files::sync_folder(&layout.home())?;
    Ok(Answer::Dumps { dumped: Some(Dumped { bytes, failed: None }) })
}

/// A project that dumps nothing has no dumps of before.
fn nothing(layout: &Layout) -> Result<Answer, Failure> {
    for folder in [layout.dumps_next(), layout.dumps()] {
        files::remove_folder(&folder)?;
    }
    Ok(Answer::Dumps { dumped: None })
}

/// Runs them, one after the other; tells what failed.
fn run(
    layout: &Layout,
    configuration: &Configuration,
    live: &Live,
    recipes: &[&Recipe],
    task: &Task<'_>,
) -> Result<Option<String>, Failure> {
    let (plan, id) = (saved::plan(layout)?, live.deployment.to_string());
    let mark = format!("{PHASE}-{id}");
    let about = Surroundings { phase: PHASE, deployment: &id, mark: &mark };
    let mut program = surroundings(layout, &plan, configuration, &about);
    program.env.push((FOLDER.to_owned(), layout.dumps_next().into()));
    let limit = configuration.dump_limit().min(LONGEST);
    let bounds = Bounds {
        deadline: Instant::now() + limit,
        limit,
        cancel: task.cancel,
        mark,
        redactor: Redactor::new(configuration.secrets()),
    };
    for recipe in recipes {
        task.note(format!("{} dumps", recipe.name));
        program.path.clone_from(&recipe.path);
        let mut last = String::new();
        let failed = program.run(&bounds, &mut |stream, text| {
            task.log(stream, text);
            if stream != Stream::Note && !text.trim().is_empty() {
                text.trim().clone_into(&mut last);
            }
        });
        if let Some(reason) = failed {
            let said = if last.is_empty() { String::new() } else { format!(": {last}") };
            return Ok(Some(format!("{}: {reason}{said}", recipe.name)));
        }
    }
    Ok(None)
}
