//! Projects for who shows only a part of one, or only needs to know which it is.

use corpus_domain::{EnvironmentState, GuestId, ProjectName};

use crate::authz::{Denied, Operation, Principal};
use crate::project_views::ProjectSummary;
use crate::store::{environments, projects};
use crate::{Controller, Result};

impl Controller {
    /// One project with its environments, without its members, deployments and delivery.
    pub async fn project_summary(&self, principal: &Principal, name: &ProjectName) -> Result<ProjectSummary> {
        let mut conn = self.services.db.acquire().await?;
        let id = projects::by_name(&mut conn, name).await?.ok_or(Denied::NotFound)?;
        let _permit = principal.permit_in(Operation::ProjectSee, id)?;
        Ok(self.summaries(&mut conn, principal, Some(id)).await?.pop().ok_or(Denied::NotFound)?)
    }

    /// How the environment stands on a guest, if one does and the principal may see it, and whether
    /// the guest is its first.
    pub async fn environment_on_guest(
        &self,
        principal: &Principal,
        guest: GuestId,
    ) -> Result<Option<(EnvironmentState, bool)>> {
        let mut conn = self.services.db.acquire().await?;
        let stands = environments::on_guest(&mut conn, guest).await?;
        let seen = stands.filter(|stands| principal.may(Operation::ProjectSee, Some(stands.project)));
        Ok(seen.map(|stands| (stands.state, stands.is_first)))
    }
}
