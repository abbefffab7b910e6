//! The end of a project: what goes with it, and how far that is.

use chrono::{DateTime, Utc};
use corpus_domain::{DnsName, Environment, GuestId, GuestName, JobId, JobState, ProjectName, UserName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};

/// Of each kind so many are named; of all the number is told.
pub const NAMED: usize = 20;

/// Shows what would be destroyed with a project, and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewProjectDestroy {
    /// Which.
    pub project: ProjectName,
}
impl Operation for PreviewProjectDestroy {
    type Kind = Read;
    type Output = ProjectRemains;
    const META: Meta<Read> =
        get("preview_project_destroy", "/projects/{project}/destroy-preview").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// What goes with a project. Of guests, names and members the first 20 are named.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectRemains {
    /// How many guests it has.
    pub guest_count: u32,
    /// Its guests, by name.
    pub guests: Vec<GoingGuest>,
    /// How many DNS names its guests have.
    pub name_count: u32,
    /// These names.
    pub names: Vec<DnsName>,
    /// Its environments: dev, staging, prod; each has the project's repositories on its guest.
    pub environments: Vec<GoingEnvironment>,
    /// How many archives are kept on its guests.
    pub archive_count: u32,
    /// How many deployments are recorded of it.
    pub deployment_count: u32,
    /// How many members have a role in it.
    pub member_count: u32,
    /// These members, by login.
    pub members: Vec<UserName>,
    /// How many robots it has.
    pub robot_count: u32,
    /// How many previews it has: each goes first, by a job of its own.
    pub preview_count: u32,
    /// How many jobs of it are not over: they are waited for.
    pub open_jobs: u32,
    /// That it is being destroyed, or was in part.
    pub leaving: Option<LeavingProject>,
}
impl Reply for ProjectRemains {}

/// A guest that goes with its project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GoingGuest {
    /// Its id.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its environment.
    pub environment: Environment,
}

/// An environment that goes with its project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GoingEnvironment {
    /// Which.
    pub environment: Environment,
    /// Whether something is live there.
    pub is_live: bool,
}

/// A project that is being destroyed, or was in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeavingProject {
    /// The job that does it, or did so in part.
    pub job: JobId,
    /// How far that is. When it is over and the project is there still, it is to be destroyed again.
    pub job_state: JobState,
    /// Since when it is to go.
    pub since: DateTime<Utc>,
    /// Since when there is no way back: until then the job can be cancelled, and everything is as it was.
    pub for_good_since: Option<DateTime<Utc>>,
}
impl LeavingProject {
    /// Whether it went only in part, and is to be destroyed again.
    pub fn is_left(&self) -> bool {
        self.job_state.is_over() && self.job_state != JobState::Stuck
    }
}
