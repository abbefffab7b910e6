//! Deployments: each is one run of the pipeline. [`report`] is what a guest told of one, [`log`] what it wrote,
//! [`test_cases`] what tests came to that belong to it.

mod change;
pub mod log;
pub mod report;
pub mod test_cases;

pub use change::{Deploy, DeploymentAccepted, Drill, Phases};

use chrono::{DateTime, Utc};
use corpus_domain::{
    CommitId, DeploymentId, DeploymentState, Environment, GuestId, GuestName, JobId, ProjectName, Trigger,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::environments::LiveRelease;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};
use crate::seen::Seen;
use crate::words::{Limit, Number, SearchText, Wait};
use report::DeploymentReport;

/// Lists deployments.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListDeployments {
    /// Only of this project.
    pub project: Option<ProjectName>,
    /// Only to this environment.
    pub environment: Option<Environment>,
    /// Only in this state.
    pub state: Option<DeploymentState>,
    /// Only those of who has this login name.
    pub by: Option<SearchText>,
    /// Only those whose commit begins so, or has these words, or words that begin so, in the first line of its message.
    pub q: Option<SearchText>,
    /// Only what ran on this guest, leader or follower; unless said, what ran on leaders.
    pub guest: Option<GuestId>,
    /// The newest first unless said.
    pub sort: Option<DeploymentOrder>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListDeployments {
    type Kind = Read;
    type Output = DeploymentPage;
    const META: Meta<Read> = get("list_deployments", "/deployments").needs(Role::Member).robots();
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// The order of a list of deployments.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeploymentOrder {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
    /// Those that took the longest first, of those that are over.
    Longest,
}

/// Shows a deployment, as far as it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetDeployment {
    /// Which.
    pub deployment: DeploymentId,
    /// Answers when the deployment is over, or so many seconds later.
    pub wait: Option<Wait>,
}
impl Operation for GetDeployment {
    type Kind = Read;
    type Output = Deployment;
    const META: Meta<Read> = get("get_deployment", "/deployments/{deployment}").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Deployment(self.deployment)
    }
}

/// Shows a deployment by its number in its project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetDeploymentByNumber {
    /// Of which project.
    pub project: ProjectName,
    /// Its number.
    pub number: Number,
    /// As it went on the guest of this name; on the leader unless said.
    pub guest: Option<GuestName>,
}
impl Operation for GetDeploymentByNumber {
    type Kind = Read;
    type Output = Deployment;
    const META: Meta<Read> =
        get("get_deployment_by_number", "/projects/{project}/deployments/{number}").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Numbered(self.project.clone(), self.number)
    }
}

/// A deployment in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentLine {
    /// Its id.
    pub id: DeploymentId,
    /// Its number in the project, from 1.
    pub number: i64,
    /// The project.
    pub project: ProjectName,
    /// The environment.
    pub environment: Environment,
    /// How far it is.
    pub state: DeploymentState,
    /// What set it off.
    pub trigger: Trigger,
    /// Who, by login name; what the guest says when it is not known here.
    pub by: String,
    /// The commit.
    pub commit: Option<CommitId>,
    /// The first line of its message.
    pub subject: Option<String>,
    /// Why it failed.
    pub fault: Option<String>,
    /// When it was ordered.
    pub ordered_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Milliseconds from its first phase to its end.
    pub elapsed_ms: Option<u64>,
    /// The job that follows it.
    pub job: Option<JobId>,
    /// The guest it ran on, which may be gone.
    pub guest: GuestId,
    /// That guest's name.
    pub guest_name: GuestName,
    /// The deployment on the environment's leader, when this is the part of a follower.
    pub leader: Option<DeploymentId>,
    /// Whether what it brought is what is live on that guest now.
    pub is_live: bool,
    /// Whether that is reached, by the guest of its environment for which that is worst, or by the follower whose part
    /// this is; none when it is not live.
    pub seen: Option<Seen>,
}

crate::page!(
    /// A page of deployments.
    DeploymentPage, DeploymentLine
);

/// A deployment with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deployment {
    /// What lists show of it.
    pub line: DeploymentLine,
    /// As far as it has come while it runs, the whole afterwards.
    pub report: Option<DeploymentReport>,
    /// What is live on its guest now.
    pub live: Option<LiveRelease>,
    /// How it went on the leader, when this is the part of a follower.
    pub leader: Option<DeploymentPart>,
    /// How it went on the followers.
    pub followers: Vec<DeploymentPart>,
    /// The followers of its environment that are deployed to now.
    pub guests: Vec<GuestName>,
    /// Whether who asks may deploy to its environment.
    pub may_deploy: bool,
}
impl Reply for Deployment {}

/// How a deployment went on one of the guests of its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentPart {
    /// The id of its part there.
    pub deployment: DeploymentId,
    /// The guest's name.
    pub guest: GuestName,
    /// How far it is there.
    pub state: DeploymentState,
    /// Why it failed there.
    pub fault: Option<String>,
    /// Milliseconds from its first phase to its end.
    pub elapsed_ms: Option<u64>,
}
