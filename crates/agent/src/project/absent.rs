//! `EnsureProjectAbsent`: nothing of a project is left on its guest, but its data unless told.

use std::fs;
use std::time::{Duration, Instant};

use crate::failure::{At, Failure};
use crate::files;
use crate::project::layout::Layout;
use crate::project::{account, archive, dialect, ensure, git, order, run};
use crate::task::Task;

/// How long deployments that run have to end.
const DEPLOYMENT_TIMEOUT: Duration = Duration::from_mins(10);

/// Makes it so; tells whether there was anything.
pub fn ensure(layout: &Layout, data: bool, task: &Task<'_>) -> Result<bool, Failure> {
    let home = layout.home();
    if !home.exists() {
        return account::ensure_absent(task, layout.project());
    }
    end_deployments(layout, task)?;
    if layout.repository().exists() {
        git::gone(layout, task)?;
    }
    let mut changed = account::ensure_absent(task, layout.project())?;
    dialect::forget(layout, task.host)?;
    for entry in fs::read_dir(&home).at("list", &home)? {
        let path = entry.at("list", &home)?.path();
        if path == layout.data() && !data {
            continue;
        }
        changed = true;
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir());
        if is_folder {
            files::remove_folder(&path)?
        } else {
            files::remove(&path)?
        };
    }
    if data || !layout.data().exists() {
        changed |= files::remove_folder(&home)?;
    }
    if layout.is_standard() && others(layout)?.is_empty() {
        ensure::remove_units(task)?;
    }
    Ok(changed)
}

/// What runs ends and is rolled back, so that recipes of the project can clean up.
fn end_deployments(layout: &Layout, task: &Task<'_>) -> Result<(), Failure> {
    let end = Instant::now() + DEPLOYMENT_TIMEOUT;
    for id in archive::ids(&layout.deployments()) {
        while order::runs(layout, id) {
            run::ask_to_end(layout, id)?;
            if Instant::now() > end {
                return Err(Failure::Busy(format!("deployment {id}")));
            }
            task.go_on()?;
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

/// The other projects of the guest.
pub fn others(layout: &Layout) -> Result<Vec<Layout>, Failure> {
    let mut all = all(layout.root())?;
    all.retain(|other| other != layout);
    Ok(all)
}

/// All projects below a root.
pub fn all(root: &std::path::Path) -> Result<Vec<Layout>, Failure> {
    if !root.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(root).at("list", root)? {
        let name = entry.at("list", root)?.file_name();
        let project = name.to_str().and_then(|name| name.parse().ok());
        found.extend(project.map(|project| Layout::new(root, &project)).filter(|layout| layout.plan().exists()));
    }
    Ok(found)
}
