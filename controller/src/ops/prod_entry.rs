//! Whether a project's developers may enter its guests of prod.
//!
//! Who enters a guest is root there, and could deploy past the rule that maintainers deploy to
//! prod. So developers have no key on guests of prod and don't read the pillar there, unless a
//! maintainer decides that they may.

use corpus_domain::ProjectId;
use serde_json::json;

use super::projects::audit_project;
use crate::authz::{Denied, Operation, Principal};
use crate::store::{keys, projects};
use crate::{Controller, Result};

impl Controller {
    /// Lets the project's developers into its guests of prod, or not any more; their keys follow.
    pub async fn set_prod_entry(&self, principal: &Principal, project: ProjectId, open: bool) -> Result<()> {
        let _permit = principal.permit_in(Operation::ProdEntryChange, project)?;
        let mut tx = self.services.begin().await?;
        let name = projects::hold(&mut tx, project).await?.ok_or(Denied::NotFound)?;
        if projects::set_entered_by_developers(&mut tx, project, open).await? {
            audit_project(&mut tx, principal, "project.prod_entry", project, &name, json!({ "developers": open }))
                .await?;
            let nodes = keys::nodes_of_prod(&mut tx, project).await?;
            self.queue_keys_sync(&mut tx, nodes, Some(principal.id)).await?;
        }
        Ok(tx.commit().await?)
    }
}
