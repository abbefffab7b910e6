//! The operator's hooks: what is in their folder, and what they did last.

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, HookFailure, HookHost, HookName, HookStage, HookState, HookUndo, JobId, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};

/// Lists the hooks in the folder of the server that answers, each with what it did last, and what is wrong there.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListHooks {}
impl Operation for ListHooks {
    type Kind = Read;
    type Output = Hooks;
    const META: Meta<Read> = get("list_hooks", "/hooks").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Shows a hook with its last runs, 50 at most. One that is not in the folder any more is shown while its runs are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetHook {
    /// Where it runs.
    pub host: HookHost,
    /// What it hangs on.
    pub stage: HookStage,
    /// The name of its file.
    pub name: HookName,
}
impl Operation for GetHook {
    type Kind = Read;
    type Output = Hook;
    const META: Meta<Read> = get("get_hook", "/hooks/{host}/{stage}/{name}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// The folder of hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hooks {
    /// Where it is on the controller.
    pub folder: String,
    /// The hooks, by where they run and on what they hang; those of a stage in the order in which they run.
    pub hooks: Vec<HookLine>,
    /// What is in the folder and is not run.
    pub problems: Vec<HookProblem>,
}
impl Reply for Hooks {}

/// A hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookLine {
    /// Where it runs.
    pub host: HookHost,
    /// What it hangs on.
    pub stage: HookStage,
    /// The name of its file.
    pub name: HookName,
    /// How it is run; none when it is not in the folder any more, or is not run.
    pub how: Option<HookHow>,
    /// What it did last.
    pub last: Option<HookRun>,
}

impl HookLine {
    /// Its path below the folder of hooks.
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.host, self.stage, self.name)
    }
}

/// How a hook is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookHow {
    /// How long it may take, in seconds.
    pub timeout: u32,
    /// What its failure does to its step.
    pub on_failure: HookFailure,
    /// Whether there is something that undoes it.
    pub has_undo: bool,
    /// Only for these projects; for all when there are none.
    pub projects: Vec<ProjectName>,
    /// Only for these environments; for all when there are none.
    pub environments: Vec<Environment>,
}

/// Something in the folder that is not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookProblem {
    /// Its path.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A hook with its last runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hook {
    /// The hook.
    pub hook: HookLine,
    /// Its last runs, the newest first.
    pub runs: Vec<HookRun>,
}
impl Reply for Hook {}

/// A run of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookRun {
    /// The job that it was a part of.
    pub job: JobId,
    /// The job's title.
    pub title: String,
    /// The machine that it ran on, by name.
    pub machine: String,
    /// Which run it was of this hook in that job on that machine, from 1.
    pub attempt: u32,
    /// What it came to.
    pub state: HookState,
    /// What became of its undo; none when it has none.
    pub undo: Option<HookUndo>,
    /// Why it failed.
    pub reason: Option<String>,
    /// The last lines of its output.
    pub lines: Vec<String>,
    /// When it began.
    pub began_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}
