//! Projects: code with members, deployed to guests. [`members`] is who is what in one, [`badges`] what is shown of it
//! without login, [`ending`] what goes with one.

pub mod badges;
pub mod ending;
pub mod members;

use chrono::{DateTime, Utc};
use corpus_domain::{
    CommitId, DeploymentId, DeploymentState, Environment, EnvironmentState, GuestId, GuestName, JobId, ProjectName,
    ProjectRole, Trigger,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::ending::LeavingProject;
use crate::environments::EnvironmentSummary;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::previews::PreviewOf;
use crate::seen::Seen;
use crate::words::{Limit, SearchText};
use crate::{Cursor, Version};

/// Lists projects.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListProjects {
    /// Only those whose name has this in it.
    pub q: Option<SearchText>,
    /// Only those in which one may do at least what this role may; an operator may all.
    pub role: Option<ProjectRole>,
    /// By name unless said.
    pub sort: Option<ProjectOrder>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListProjects {
    type Kind = Read;
    type Output = ProjectPage;
    const META: Meta<Read> = get("list_projects", "/projects").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// The order of a list of projects.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectOrder {
    /// By name.
    #[default]
    Name,
    /// The newest first.
    Newest,
}

/// Shows a project with its environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetProject {
    /// Which.
    pub project: ProjectName,
}
impl Operation for GetProject {
    type Kind = Read;
    type Output = Project;
    const META: Meta<Read> = get("get_project", "/projects/{project}").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Makes a project; who makes it becomes its maintainer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateProject {
    /// Its name, which stays: it is part of the addresses that code is pushed to.
    pub name: ProjectName,
}
impl Operation for CreateProject {
    type Kind = Write;
    type Output = ProjectCreated;
    const META: Meta<Write> = post("create_project", "/projects").needs(Role::Member);
    const MORE: &'static [(&'static str, Role)] = &[("where only operators make projects", Role::Ops)];
    fn scope(&self) -> Scope {
        Scope::NewProject
    }
}

/// Destroys a project with all that belongs to it: its guests, their names and archives, the record of its deployments,
/// the roles given here. A job does it, which waits for the jobs of the project that are there already, and can be
/// cancelled until it begins to destroy the first guest. Nothing else of the project can be changed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DestroyProject {
    /// Which.
    pub project: ProjectName,
}
impl Operation for DestroyProject {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("destroy_project", "/projects/{project}").needs(Role::Maintainer).while_leaving();
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Shows whether a project's developers may enter its guests of prod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetProdEntry {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for GetProdEntry {
    type Kind = Read;
    type Output = ProdEntry;
    const META: Meta<Read> = get("get_prod_entry", "/projects/{project}/prod-entry").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Lets a project's developers into its guests of prod, or not any more; their keys follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetProdEntry {
    /// Of which project.
    pub project: ProjectName,
    /// Whether its developers may enter its guests of prod and read the pillar there.
    pub developers: bool,
    /// What was so when that was decided.
    pub version: Version,
}
impl Operation for SetProdEntry {
    type Kind = Write;
    type Output = ProdEntry;
    const META: Meta<Write> =
        put("set_prod_entry", "/projects/{project}/prod-entry").needs(Role::Maintainer).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Shows how a project delivers, over the last 13 weeks; dev and drills don't count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetDelivery {
    /// Which project.
    pub project: ProjectName,
}
impl Operation for GetDelivery {
    type Kind = Read;
    type Output = Delivery;
    const META: Meta<Read> = get("get_delivery", "/projects/{project}/delivery").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// A project in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectLine {
    /// Its name.
    pub name: ProjectName,
    /// The role of who asks; none for an operator who is no member.
    pub role: Option<ProjectRole>,
    /// How many members it has.
    pub members: u32,
    /// Its environments: dev, staging, prod.
    pub environments: Vec<EnvironmentLine>,
    /// Its newest deployment.
    pub newest: Option<NewestDeployment>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// An environment of a project in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentLine {
    /// Which.
    pub environment: Environment,
    /// Whether it can be deployed to.
    pub state: EnvironmentState,
    /// Whether something is live on its leader.
    pub is_live: bool,
    /// Whether that is reached, by the guest for which that is worst; none when nothing is live.
    pub seen: Option<Seen>,
    /// The number of the deployment that brought it, if it is known.
    pub number: Option<i64>,
    /// The commit that is live.
    pub commit: Option<CommitId>,
    /// Whether the same is live on all its guests, or will be: a job is on them.
    pub is_everywhere: bool,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
}

/// The newest deployment of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewestDeployment {
    /// Its id.
    pub id: DeploymentId,
    /// Its number in the project.
    pub number: i64,
    /// How far it is.
    pub state: DeploymentState,
    /// What set it off.
    pub trigger: Trigger,
    /// When it was ordered.
    pub ordered_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

/// A page of projects.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectPage {
    /// The lines.
    pub items: Vec<ProjectLine>,
    /// For the page after this one, if there is one.
    pub next: Option<Cursor>,
    /// Whether who asks may make projects.
    pub may_create: bool,
}
impl Reply for ProjectPage {
    fn next(&self) -> Option<&Cursor> {
        self.next.as_ref()
    }
}

/// A project with its environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    /// Its name.
    pub name: ProjectName,
    /// The role of who asks; none for an operator who is no member.
    pub role: Option<ProjectRole>,
    /// How many members it has.
    pub members: u32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Its environments: dev, staging, prod.
    pub environments: Vec<EnvironmentSummary>,
    /// Its running guests that are of no environment yet, by name, 50 at most.
    pub free_guests: Vec<FreeGuest>,
    /// Whether who asks may change it: its members, its environments, itself. Nobody may while it is being destroyed.
    pub may_change: bool,
    /// That it is being destroyed, or was in part.
    pub leaving: Option<LeavingProject>,
    /// That it is a preview.
    pub preview: Option<PreviewOf>,
}
impl Reply for Project {}

/// A running guest of a project that is of no environment yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FreeGuest {
    /// Its id.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// The environment that it was requested for.
    pub environment: Environment,
}

/// A project was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectCreated {
    /// Its name.
    pub project: ProjectName,
}
impl Reply for ProjectCreated {
    const STATUS: u16 = 201;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}", self.project))
    }
}

/// Whether a project's developers may enter its guests of prod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProdEntry {
    /// Whether they may, and may read the pillar there.
    pub developers: bool,
    /// What this is a version of, to change it.
    pub version: Version,
}
impl ProdEntry {
    /// Whether they may.
    pub fn of(developers: bool) -> Self {
        Self { developers, version: Version::of(&developers) }
    }
}
impl Reply for ProdEntry {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// How a project delivers, over the last 13 weeks; dev and drills don't count. Medians are of the newest 1,000
/// deployments of these weeks.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// Each week, the oldest first, 13 of them.
    pub weeks: Vec<DeliveryWeek>,
    /// Median seconds from a commit's authoring to live.
    pub lead_time_s: Option<u64>,
    /// The share of deployments that failed, 0 to 1.
    pub failure_rate: Option<f64>,
    /// Median seconds from a failure to the next success of the same environment.
    pub time_to_restore_s: Option<u64>,
    /// Median milliseconds of a deployment.
    pub median_ms: Option<u64>,
    /// The newest deployments, the oldest of them first, 30 at most.
    pub durations: Vec<DeploymentDuration>,
}
impl Reply for Delivery {}

/// What a project delivered in a week.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryWeek {
    /// Deployments that went live.
    pub live: u32,
    /// Deployments that failed.
    pub failed: u32,
}

/// How long a deployment took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentDuration {
    /// Milliseconds from its first phase to its end.
    pub elapsed_ms: u64,
    /// How it ended.
    pub state: DeploymentState,
}
