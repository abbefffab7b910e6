//! Projects: to see, make and destroy them, and who is what in one.

use corpus_domain::{ProjectId, ProjectName, ProjectRole, UserName};

use crate::authz::{Operation, Principal};
use crate::project_views::{ProjectDetail, ProjectSummary};
use crate::{Controller, Error, Result};

impl Controller {
    /// The projects that the principal may see, by name.
    pub async fn project_list(&self, principal: &Principal) -> Result<Vec<ProjectSummary>> {
        let _permit = principal.permit(Operation::OverviewSee)?;
        Ok(Vec::new())
    }

    /// One project with all that belongs to it.
    pub async fn project_detail(&self, _principal: &Principal, _name: &ProjectName) -> Result<ProjectDetail> {
        Err(soon())
    }

    /// Makes a project; who makes it becomes its maintainer.
    pub async fn create_project(&self, _principal: &Principal, _name: ProjectName) -> Result<ProjectId> {
        Err(soon())
    }

    /// Destroys a project that has neither guests nor environments.
    pub async fn destroy_project(&self, _principal: &Principal, _id: ProjectId) -> Result<()> {
        Err(soon())
    }

    /// Gives a member a role in the project, or takes what was given here.
    pub async fn set_member(
        &self,
        _principal: &Principal,
        _project: ProjectId,
        _login: &UserName,
        _role: Option<ProjectRole>,
    ) -> Result<()> {
        Err(soon())
    }
}

pub(super) fn soon() -> Error {
    Error::Conflict("not yet".to_owned())
}
