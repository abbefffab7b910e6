//! Projects for who shows only a part of one, or only needs to know which it is.

use corpus_domain::{Environment, EnvironmentState, GuestId, ProjectName};

use crate::authz::{Denied, Operation, Principal};
use crate::project_views::ProjectSummary;
use crate::store::{environments, projects};
use crate::{Controller, Result};

impl Controller {
    /// One project with its environments, without its members, deployments and delivery.
    pub async fn project_summary(&self, principal: &Principal, name: &ProjectName) -> Result<ProjectSummary> {
        let mut conn = self.services.db.acquire().await?;
        let id = projects::by_name(&mut conn, name).await?.ok_or(Denied::NotFound)?;
        drop(conn);
        let _permit = principal.permit_in(Operation::ProjectSee, id)?;
        Ok(self.summaries(principal, Some(id)).await?.pop().ok_or(Denied::NotFound)?)
    }

    /// The environment that stands on a guest, if one does and the principal may see it.
    pub async fn environment_on_guest(
        &self,
        principal: &Principal,
        guest: GuestId,
    ) -> Result<Option<(ProjectName, Environment, EnvironmentState)>> {
        let mut conn = self.services.db.acquire().await?;
        let stands = environments::on_guest(&mut conn, guest).await?;
        let seen = stands.filter(|stands| principal.may(Operation::ProjectSee, Some(stands.project)));
        Ok(seen.map(|stands| (stands.name, stands.environment, stands.state)))
    }
}
