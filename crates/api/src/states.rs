//! States of many guests: what they came to last, all of a project applied at once, and by schedule.

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, GuestId, GuestName, GuestState, Mode, ProjectName, StatesEvery, StatesOutcome};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post, put};
use crate::words::Limit;
use crate::{Cursor, Version};

/// Lists what the states of guests came to last, by the guest's name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListStates {
    /// Only of this project.
    pub project: Option<ProjectName>,
    /// Only of this environment.
    pub environment: Option<Environment>,
    /// Only where they came to this.
    pub outcome: Option<StatesOutcome>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListStates {
    type Kind = Read;
    type Output = StatesPage;
    const META: Meta<Read> = get("list_states", "/states").needs(Role::Member).robots();
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Applies all states of each guest of a project that runs, or tries them: a few guests at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplyProjectStates {
    /// Of which project.
    pub project: ProjectName,
    /// Only of this environment.
    pub environment: Option<Environment>,
    /// Whether they are only tried: what is not as they say is told, and stays.
    #[serde(default)]
    pub test: bool,
}
impl Operation for ApplyProjectStates {
    type Kind = Write;
    type Output = StatesAsked;
    const META: Meta<Write> = post("apply_project_states", "/projects/{project}/states").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Applies all states of each guest that runs, of all projects, or tries them: a few guests at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplyAllStates {
    /// Only of this environment.
    pub environment: Option<Environment>,
    /// Whether they are only tried.
    #[serde(default)]
    pub test: bool,
}
impl Operation for ApplyAllStates {
    type Kind = Write;
    type Output = StatesAsked;
    const META: Meta<Write> = post("apply_all_states", "/states").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Shows when the states of a project's guests are seen to without anybody asking for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetStatesSchedule {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for GetStatesSchedule {
    type Kind = Read;
    type Output = StatesSchedule;
    const META: Meta<Read> = get("get_states_schedule", "/projects/{project}/states/schedule").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Sets when the states of a project's guests are seen to without anybody asking for it, the first time soon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetStatesSchedule {
    /// Of which project.
    pub project: ProjectName,
    /// How often.
    pub every: StatesEvery,
    /// Whether they are only tried: what is not as they say is told, and stays.
    #[serde(default)]
    pub test: bool,
    /// What was set when that was decided.
    pub version: Version,
}
impl Operation for SetStatesSchedule {
    type Kind = Write;
    type Output = StatesSchedule;
    const META: Meta<Write> =
        put("set_states_schedule", "/projects/{project}/states/schedule").needs(Role::Maintainer).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// When the states of a project's guests are seen to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatesSchedule {
    /// Of this project.
    pub project: ProjectName,
    /// How often.
    pub every: StatesEvery,
    /// Whether they are only tried.
    pub test: bool,
    /// When the next time is, unless that is never.
    pub next_at: Option<DateTime<Utc>>,
    /// Whether the caller may set it, and have them applied.
    pub may_change: bool,
    /// What is set.
    pub version: Version,
}
impl Reply for StatesSchedule {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// States are seen to, one guest after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatesAsked {
    /// Of so many guests: those that run.
    pub guests: u64,
}
impl Reply for StatesAsked {}

crate::page!(
    /// A page of guests with what their states came to.
    StatesPage, StatesOfGuest
);

/// What the states of a guest came to last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatesOfGuest {
    /// Which guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// What it is doing.
    pub state: GuestState,
    /// How it is managed.
    pub mode: Mode,
    /// What they came to; none: they were not seen to yet.
    pub last: Option<StatesCount>,
    /// Since when they are to be seen to, where its turn has not come.
    pub asked_at: Option<DateTime<Utc>>,
}

/// What states came to, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatesCount {
    /// When they were over.
    pub at: DateTime<Utc>,
    /// Whether they were only tried.
    pub test: bool,
    /// How many ran.
    pub ran: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How many changed something, or would.
    pub changed: u64,
}

impl StatesCount {
    /// What that is, in a word.
    pub const fn outcome(&self) -> StatesOutcome {
        match (self.failed, self.changed, self.test) {
            (0, 0, _) | (0, _, false) => StatesOutcome::Right,
            (0, _, true) => StatesOutcome::Differs,
            _ => StatesOutcome::Failed,
        }
    }
}
