//! Environments of projects: the guests behind each, what is live there, and what was set.

pub mod backups;
pub mod balance;
mod change;

pub use change::{RemoveEnvironment, RemoveEnvironmentGuest, SetEnvironmentSettings, SetUpEnvironment};

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use corpus_domain::{
    CommitId, DeploymentId, DnsName, Environment, EnvironmentState, GuestId, GuestName, GuestState, JobId, NodeId,
    Origin, ProjectName, Reachability, Release,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Version;
use crate::names::SiteAnswer;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};
use crate::seen::Seen;

/// Shows an environment: its guests, what is live, its archives and its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetEnvironment {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub environment: Environment,
}
impl Operation for GetEnvironment {
    type Kind = Read;
    type Output = ProjectEnvironment;
    const META: Meta<Read> =
        get("get_environment", "/projects/{project}/environments/{environment}").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Shows what an environment's configuration overrides here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetEnvironmentSettings {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub environment: Environment,
}
impl Operation for GetEnvironmentSettings {
    type Kind = Read;
    type Output = EnvironmentSettings;
    const META: Meta<Read> = get("get_environment_settings", "/projects/{project}/environments/{environment}/settings")
        .needs(Role::Viewer)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// An environment with its guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentSummary {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub environment: Environment,
    /// The guest that is pushed to; its state is that of the environment.
    pub leader: EnvironmentGuest,
    /// Its other guests, by name: they deploy what the leader does.
    pub followers: Vec<EnvironmentGuest>,
    /// Whether what is live is reached, by the guest for which that is worst; none while its leader has no release.
    pub seen: Option<Seen>,
    /// Where code is pushed to; none when this server takes no pushes.
    pub git_url: Option<String>,
    /// Where the pillar is pushed to.
    pub pillar_url: Option<String>,
    /// How many archives are kept.
    pub archives: u32,
    /// Where it can be rolled back to at once: the newest archive of another release than the one that is live.
    pub previous: Option<Archive>,
    /// Whether who asks may deploy to it.
    pub may_deploy: bool,
    /// Whether who asks may configure it and remove it.
    pub may_change: bool,
}

/// A guest of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentGuest {
    /// Its id.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// What the guest is doing.
    pub guest_state: GuestState,
    /// The node that it is on.
    pub node: NodeId,
    /// Whether that node answers.
    pub node_reachability: Reachability,
    /// When it last told what the guest is doing.
    pub guest_seen_at: Option<DateTime<Utc>>,
    /// What the site of its main name answers, once it was asked.
    pub site: Option<SiteAnswer>,
    /// Whether it is deployed to.
    pub state: EnvironmentState,
    /// Why not.
    pub state_reason: Option<String>,
    /// The DNS names that lead there, the main one first.
    pub hosts: Vec<DnsName>,
    /// What is live.
    pub live: Option<LiveRelease>,
    /// When it told that.
    pub observed_at: Option<DateTime<Utc>>,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
}

/// What is live on a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LiveRelease {
    /// The deployment that brought it.
    pub deployment: DeploymentId,
    /// Its number in the project, if it is known here.
    pub number: Option<i64>,
    /// Its commit.
    pub commit: Option<CommitId>,
    /// Its pillar's commit.
    pub pillar: Option<CommitId>,
    /// Since when, by the guest's clock.
    pub since: Option<DateTime<Utc>>,
}

/// An environment with its archives and its configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProjectEnvironment {
    /// What its project shows of it.
    pub summary: EnvironmentSummary,
    /// The archives that are kept, the newest first.
    pub archives: Vec<Archive>,
    /// The merged configuration, as the leader told it last.
    pub configuration: Vec<ConfigurationValue>,
}
impl Reply for ProjectEnvironment {}

/// A kept copy of the project tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Archive {
    /// The deployment before which it was made.
    pub deployment: DeploymentId,
    /// The deployment that had made live what it holds, if its guest told that.
    pub release: Option<DeploymentId>,
    /// The number of that one in the project, if it is known here.
    pub number: Option<i64>,
    /// The commit that was live then.
    pub commit: Option<CommitId>,
    /// The first line of its message, if it is known here.
    pub subject: Option<String>,
    /// The pillar's commit that was live then.
    pub pillar: Option<CommitId>,
    /// When it was made, by the guest's clock.
    pub at: Option<DateTime<Utc>>,
    /// What it takes on the disk.
    pub bytes: u64,
    /// Whether it is of a tree that failed, besides.
    pub has_failed_tree: bool,
}

impl Archive {
    /// Whether what it holds is what is live.
    pub fn is_of(&self, live: &LiveRelease) -> bool {
        let held = Release { deployment: self.release, commit: self.commit.as_ref(), pillar: self.pillar.as_ref() };
        let (commit, pillar) = (live.commit.as_ref(), live.pillar.as_ref());
        held.is_same(&Release { deployment: Some(live.deployment), commit, pillar })
    }
}

/// A value of the merged configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigurationValue {
    /// Its path: `database.host`.
    pub key: String,
    /// The value; none when it is a secret.
    pub value: Option<Value>,
    /// Where it comes from.
    pub origin: Origin,
}

/// What an environment's configuration overrides here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentSettings {
    /// A mapping of any depth.
    #[schema(value_type = Object)]
    pub settings: BTreeMap<String, Value>,
    /// Which settings these are, to change them.
    pub version: Version,
}
impl EnvironmentSettings {
    /// These settings.
    pub fn of(settings: BTreeMap<String, Value>) -> Self {
        Self { version: Version::of(&settings), settings }
    }
}
impl Reply for EnvironmentSettings {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}
