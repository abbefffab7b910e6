//! One deployment of a project runs at a time; the others wait, and only the latest of them.
//!
//! The turn is a lock on a file, which the kernel frees when a runner ends, however it ends. Who
//! waits looks at the orders: one that is newer than its own, and waits too, supersedes it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use corpus_domain::DeploymentId;
use rustix::fs::{FlockOperation, flock};

use crate::failure::{At, Failure};
use crate::files;
use crate::project::archive::ids;
use crate::project::layout::Layout;
use crate::project::order::{Ordered, is_over, runs};
use crate::project::saved;
use crate::task::Task;

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long who does something else waits for a deployment.
const PATIENCE: Duration = Duration::from_secs(10);

/// How waiting ended.
pub enum Turn {
    /// It is this one's turn, as long as the file is held.
    Mine(File),
    /// A later one waits.
    Superseded(Box<Ordered>),
    /// It was cancelled.
    Cancelled,
}

/// Waits for the project; `tell` hears for whom.
pub fn wait(
    layout: &Layout,
    ordered: &Ordered,
    cancelled: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(String),
) -> Result<Turn, Failure> {
    let path = layout.turn();
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).at("open", &path)?;
    let mut told = None;
    loop {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            saved::write(&current_path(layout), &ordered.order.id)?;
            return Ok(Turn::Mine(file));
        }
        if cancelled() {
            return Ok(Turn::Cancelled);
        }
        let current = saved::read::<DeploymentId>(&current_path(layout))?;
        if let Some(later) = later(layout, ordered, current)? {
            return Ok(Turn::Superseded(Box::new(later)));
        }
        if current.is_some() && told != current {
            told = current;
            tell(for_whom(layout, current)?);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Has the turn for something else than a deployment, for as long as the file is held; does not wait long for one that runs.
pub fn hold(layout: &Layout, task: &Task<'_>) -> Result<File, Failure> {
    let path = layout.turn();
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).at("open", &path)?;
    let end = Instant::now() + PATIENCE;
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() > end {
            return Err(Failure::Busy(format!("a deployment of {}", layout.project())));
        }
        task.go_on()?;
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(file)
}

/// The turn is free again; nobody is told to wait for who is done.
pub fn done(layout: &Layout) {
    let _ = files::remove(&current_path(layout));
}

fn current_path(layout: &Layout) -> PathBuf {
    layout.home().join("turn.json")
}

/// A newer order that is neither over nor the one that runs.
fn later(layout: &Layout, own: &Ordered, current: Option<DeploymentId>) -> Result<Option<Ordered>, Failure> {
    for id in ids(&layout.deployments()) {
        if id == own.order.id || Some(id) == current || is_over(layout, id) || !runs(layout, id) {
            continue;
        }
        if let Some(other) = saved::read::<Ordered>(&layout.order(id))?
            && other.rank() > own.rank()
        {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

fn for_whom(layout: &Layout, current: Option<DeploymentId>) -> Result<String, Failure> {
    let order = current.map(|id| saved::read::<Ordered>(&layout.order(id))).transpose()?.flatten();
    Ok(order.map_or_else(
        || "another deployment of the project".to_owned(),
        |other| {
            let seconds = saved::now().saturating_sub(other.ordered_ms) / 1000;
            format!("deployment {} of {}, since {seconds} s", other.order.id, other.order.by)
        },
    ))
}
