//! Orders: written down first, then run by a process of its own.
//!
//! The id makes an order one deployment, however often it comes. Who ordered may go away as
//! soon as [`order`] has returned: the runner is a unit of systemd, which starts it again when
//! it is killed, or, where there is no systemd, a child that left its session.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use corpus_domain::DeploymentId;
use corpus_protocol::{DeployOrder, Millis, Role};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::failure::{At, Failure};
use crate::files;
use crate::project::layout::Layout;
use crate::project::saved;
use crate::runner::Argv;
use crate::task::Task;

/// What the agent is called on a guest, for units and hooks.
pub const AGENT: &str = "/usr/local/bin/corpus-agent";
/// The unit that runs a deployment.
pub const UNIT: &str = "/etc/systemd/system/corpus-project@.service";
/// Exists while systemd is what runs the guest: `sd_booted(3)`.
pub const SYSTEMD: &str = "/run/systemd/system";

/// An order, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// What was ordered.
    #[serde(flatten)]
    pub order: DeployOrder,
    /// When.
    pub ordered_ms: Millis,
}

impl Ordered {
    /// By which of two orders the later one is told.
    pub fn rank(&self) -> (Millis, DeploymentId) {
        (self.ordered_ms, self.order.id)
    }
}

/// Writes the order down and starts it; tells whether it was new.
pub fn order(layout: &Layout, order: &DeployOrder, task: &Task<'_>) -> Result<bool, Failure> {
    if !layout.plan().exists() {
        return Err(Failure::Missing(format!("there is no project {} here", order.project)));
    }
    let mut new = !layout.order(order.id).exists();
    if new {
        if !order.follower {
            ensure_leader(layout)?;
        }
        let folder = layout.deployment(order.id);
        fs::create_dir_all(&folder).at("make", &folder)?;
        // It may come twice at once: from a server that is being lost, and from its successor.
        let ordered = Ordered { order: order.clone(), ordered_ms: saved::now() };
        new = saved::write_first(&layout.order(order.id), &ordered)?;
        files::sync_folder(&layout.deployments())?;
    }
    if !is_over(layout, order.id) && !runs(layout, order.id) {
        start(layout, order.id, task)?;
    }
    Ok(new)
}

/// Only the leader of an environment is deployed to; the followers do what it does.
pub fn ensure_leader(layout: &Layout) -> Result<(), Failure> {
    let Role::Follower { leader } = saved::plan(layout)?.role else { return Ok(()) };
    let (name, guest) = (layout.project(), "is not the leader of its environment");
    Err(Failure::Invalid(format!("this {guest}: {name} is deployed on {leader}, and here with it")))
}

/// Starts the runner of a deployment; harmless when it runs already or is over.
pub fn start(layout: &Layout, id: DeploymentId, task: &Task<'_>) -> Result<(), Failure> {
    let project = layout.project();
    if layout.is_standard() && Path::new(SYSTEMD).exists() && Path::new(UNIT).exists() {
        let unit = format!("corpus-project@{project}:{id}.service");
        // A unit that failed too often would not start.
        let _ = Argv::new("systemctl").args(["reset-failed", &unit]).quiet().end(task);
        return Argv::new("systemctl").args(["start", "--no-block", &unit]).run(task).map(drop);
    }
    let agent = std::env::current_exe().at("find", "/proc/self/exe")?;
    Argv::new("setsid")
        .arg("--fork")
        .arg(agent)
        .args(["project", "run", &format!("{project}:{id}"), "--root"])
        .arg(layout.root())
        .limit(Duration::from_secs(10))
        .run(task)
        .map(drop)
}

/// Whether the deployment's report is written.
pub fn is_over(layout: &Layout, id: DeploymentId) -> bool {
    layout.report(id).exists()
}

/// Whether a runner of the deployment lives.
pub fn runs(layout: &Layout, id: DeploymentId) -> bool {
    let path = runner_lock(layout, id);
    File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

/// Makes this process the deployment's runner, or tells that there is one already.
pub fn become_runner(layout: &Layout, id: DeploymentId) -> Result<Option<File>, Failure> {
    let path = runner_lock(layout, id);
    let file = OpenOptions::new().create(true).append(true).open(&path).at("open", &path)?;
    // Whoever only asks holds it for a moment.
    for _ in 0..50 {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(Some(file));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(None)
}

fn runner_lock(layout: &Layout, id: DeploymentId) -> std::path::PathBuf {
    layout.deployment(id).join("runner.lock")
}

#[cfg(test)]
mod tests {
    use corpus_domain::Trigger;
    use corpus_protocol::{Mapping, ProjectPlan, Source};

    use super::*;
    use crate::host::Host;
    use crate::task::test::with_task;

    #[test]
    fn a_follower_takes_orders_of_its_leader_only() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        let mut plan = ProjectPlan {
            project: "shop".parse().unwrap(),
            environment: "staging".parse().unwrap(),
            hosts: vec![],
            proxy: None,
            settings: Mapping::new(),
            salt: None,
            role: Role::Follower { leader: "web-1.example.org".parse().unwrap() },
            storage_grows: false,
            balanced: false,
        };
        let mut wanted = DeployOrder {
            project: plan.project.clone(),
            id: DeploymentId::from(uuid::Uuid::now_v7()),
            source: Source::Head,
            trigger: Trigger::Hand,
            only: vec![],
            plain_archive: false,
            by: "mia".into(),
            follower: false,
        };
        fs::create_dir_all(layout.deployments()).unwrap();
        with_task(&Host::below(folder.path()), |task| {
            assert!(order(&layout, &wanted, task).unwrap_err().to_string().contains("no project shop"));
            saved::write(&layout.plan(), &plan).unwrap();
            let refused = order(&layout, &wanted, task).unwrap_err().to_string();
            assert!(refused.contains("shop is deployed on web-1.example.org, and here with it"), "{refused}");
            assert!(!layout.deployment(wanted.id).exists());
            // It was ordered while this guest was the leader, and is over: the same answer as then.
            let over = |id| saved::write(&layout.report(id), &1).unwrap();
            fs::create_dir_all(layout.deployment(wanted.id)).unwrap();
            saved::write(&layout.order(wanted.id), &1).unwrap();
            over(wanted.id);
            assert!(!order(&layout, &wanted, task).unwrap());
            for (follower, role) in [(true, plan.role.clone()), (false, Role::default())] {
                wanted.id = DeploymentId::from(uuid::Uuid::now_v7());
                wanted.follower = follower;
                plan.role = role;
                saved::write(&layout.plan(), &plan).unwrap();
                fs::create_dir_all(layout.deployment(wanted.id)).unwrap();
                over(wanted.id);
                assert!(order(&layout, &wanted, task).unwrap());
            }
        });
    }
}
