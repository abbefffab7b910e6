//! Which waiting job may run: decided here, without I/O.
//!
//! A job names what it needs when it is submitted and gets all of it or nothing. It runs when
//! no job that holds, and no job that waits before it, needs the same thing in a conflicting
//! way. The order is total, so the first in it waits only for jobs that run: no deadlock; and
//! nobody overtakes on a thing, so no starvation.
//!
//! A server runs so many jobs at once, and a project may submit as many as it likes: so places are
//! shared by [`share`]. A project takes another place only while more are free than it has, so one
//! alone has half of them, the next one half of the rest, and a job of yet another project begins at
//! once; the next place goes to the project that has the fewest. Jobs of no project count as one.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;

use corpus_domain::{GuestId, JobId, NodeId, ProjectId};
use serde::{Deserialize, Serialize};

/// Whether others may hold the same thing meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockMode {
    /// Together with other jobs that share it.
    Shared,
    /// Alone.
    Exclusive,
}

impl LockMode {
    /// The word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        }
    }
}

/// A thing that a job needs while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The thing: `node:<id>`, `guest:<id>`.
    pub resource: String,
    /// Alone or with others.
    pub mode: LockMode,
}

impl Lock {
    /// The thing `kind:id` alone.
    pub fn exclusive(kind: &str, id: impl Display) -> Self {
        Self { resource: format!("{kind}:{id}"), mode: LockMode::Exclusive }
    }

    /// The thing `kind:id` together with others.
    pub fn shared(kind: &str, id: impl Display) -> Self {
        Self { resource: format!("{kind}:{id}"), mode: LockMode::Shared }
    }

    /// A node, alone: nothing else happens on it.
    pub fn node(id: NodeId) -> Self {
        Self::exclusive("node", id)
    }

    /// A node, with others: its guests change, it stays as it is.
    pub fn node_shared(id: NodeId) -> Self {
        Self::shared("node", id)
    }

    /// A project, alone: nothing else happens with what belongs to it.
    pub fn project(id: ProjectId) -> Self {
        Self::exclusive("project", id)
    }

    /// A project, with others, as each of its jobs has it.
    pub(super) fn project_shared(id: ProjectId) -> Self {
        Self::shared("project", id)
    }

    /// A guest, alone.
    pub fn guest(id: GuestId) -> Self {
        Self::exclusive("guest", id)
    }
}

/// A job that is not over, in the order of the queue.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub job: JobId,
    /// Whose it is; none for jobs of nodes.
    pub project: Option<ProjectId>,
    /// It runs, or is stuck: it has what it needs.
    pub holds: bool,
    /// It has a place of the server that decides.
    pub runs_here: bool,
    pub locks: Vec<Lock>,
}

/// What happens to a waiting job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may run now.
    Run,
    /// It waits for that job first.
    Wait(JobId),
}

/// Decides for each waiting job of `queue`, which is in queue order, in that order.
pub(super) fn decide(queue: &[Entry]) -> Vec<(JobId, Verdict)> {
    let mut claims: HashMap<&str, Vec<(JobId, LockMode)>> = HashMap::new();
    let mut verdicts = Vec::new();
    let (holding, waiting): (Vec<_>, Vec<_>) = queue.iter().partition(|entry| entry.holds);
    for entry in holding {
        claim(&mut claims, entry);
    }
    for entry in waiting {
        let blocker = entry.locks.iter().find_map(|lock| conflict(&claims, lock));
        verdicts.push((entry.job, blocker.map_or(Verdict::Run, Verdict::Wait)));
        claim(&mut claims, entry);
    }
    verdicts
}

/// Which of those that may run get a place, in this order: `running` is how many of each project
/// this server runs, `ready` those that may, in queue order.
pub(super) fn share(
    capacity: usize,
    mut running: HashMap<Option<ProjectId>, usize>,
    ready: &[(JobId, Option<ProjectId>)],
) -> Vec<JobId> {
    let mut free = capacity.saturating_sub(running.values().sum());
    let mut waiting: HashMap<Option<ProjectId>, VecDeque<(usize, JobId)>> = HashMap::new();
    for (place, (job, project)) in ready.iter().enumerate() {
        waiting.entry(*project).or_default().push_back((place, *job));
    }
    let mut begin = Vec::new();
    loop {
        let has = |project: &Option<ProjectId>| running.get(project).copied().unwrap_or_default();
        let next = waiting.iter().filter(|(project, _)| has(project) < free);
        let next = next.filter_map(|(project, jobs)| Some((has(project), jobs.front()?.0, *project))).min();
        let Some((_, _, project)) = next else { return begin };
        begin.extend(waiting.get_mut(&project).and_then(VecDeque::pop_front).map(|(_, job)| job));
        *running.entry(project).or_default() += 1;
        free -= 1;
    }
}

fn claim<'a>(claims: &mut HashMap<&'a str, Vec<(JobId, LockMode)>>, entry: &'a Entry) {
    for lock in &entry.locks {
        claims.entry(&lock.resource).or_default().push((entry.job, lock.mode));
    }
}

fn conflict(claims: &HashMap<&str, Vec<(JobId, LockMode)>>, lock: &Lock) -> Option<JobId> {
    let both_share = |mode| mode == LockMode::Shared && lock.mode == LockMode::Shared;
    claims.get(lock.resource.as_str())?.iter().find(|(_, mode)| !both_share(*mode)).map(|(job, _)| *job)
}
