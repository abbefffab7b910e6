//! How a guest's configuration is managed, and what its states came to.

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, GuestId, GuestName, GuestState, Mode, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::deployments::report::SaltState;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};

/// Switches how a guest's configuration is managed, or lays the same anew. It must run.
///
/// `masterless`: states are applied when somebody asks, from what lies in `/srv/salt` and `/srv/pillar` of the guest, and nothing
/// of Salt goes on running. `salt`: a master of the guest's own, which only it reaches, has the same, and a minion follows it.
/// `mastersalt`: its minion follows a master of the controller, which has what operators wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SwitchGuestMode {
    /// Which guest.
    pub guest: GuestId,
    /// To which mode.
    pub mode: Mode,
}
impl Operation for SwitchGuestMode {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("switch_guest_mode", "/guests/{guest}/mode").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Applies all states that a guest's top file names for it, or tries what that would change. It must run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplyGuestStates {
    /// Which guest.
    pub guest: GuestId,
    /// Whether they are only tried: what is not as they say is told, and stays.
    #[serde(default)]
    pub test: bool,
}
impl Operation for ApplyGuestStates {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("apply_guest_states", "/guests/{guest}/states").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Shows how a guest's configuration is managed, and what its states came to last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetGuestStates {
    /// Which guest.
    pub guest: GuestId,
}
impl Operation for GetGuestStates {
    type Kind = Read;
    type Output = GuestStates;
    const META: Meta<Read> = get("get_guest_states", "/guests/{guest}/states").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// How a guest's configuration is managed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestStates {
    /// Which guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// Its state: it must run for its mode to be switched and its states to be applied.
    pub state: GuestState,
    /// How it is managed.
    pub mode: Mode,
    /// The master of the controller that it follows.
    pub master: Option<String>,
    /// What its states came to last; none: they were not applied by Corpus yet.
    pub last: Option<StatesRun>,
    /// Whether the caller may switch its mode and apply its states.
    pub may_change: bool,
}
impl Reply for GuestStates {}

/// What the states of a guest came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatesRun {
    /// When they were over.
    pub at: DateTime<Utc>,
    /// In which mode.
    pub mode: Mode,
    /// Whether they were only tried.
    pub test: bool,
    /// How many ran.
    pub ran: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How many changed something, or would.
    pub changed: u64,
    /// In the order in which they ran, 200 at most: those that failed, those that changed something, then others.
    pub states: Vec<SaltState>,
}
