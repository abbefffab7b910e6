//! The numbers at a glance, and the audit.

use super::jobs::open_jobs;
use crate::authz::{Operation, Principal};
use crate::store::{audit, counts, nodes, users};
use crate::views::{AuditView, Counts, NodeView, ProjectView};
use crate::{Controller, Result};

impl Controller {
    /// The numbers beside the navigation and on the overview.
    pub async fn counts(&self, principal: &Principal) -> Result<Counts> {
        let _permit = principal.permit(Operation::OverviewSee)?;
        let mut conn = self.services.db.acquire().await?;
        let of_projects = counts::of_projects(&mut conn, principal.visible_projects().as_deref()).await?;
        let nodes = nodes::list(&mut conn, None).await?;
        let (jobs, jobs_stuck) = open_jobs(&mut conn, principal).await?;
        Ok(Counts {
            nodes: small(nodes.len()),
            slots: nodes.iter().map(|node| node.slots).sum(),
            slots_free: nodes.iter().map(NodeView::free_slots).sum(),
            jobs,
            jobs_stuck,
            ..of_projects
        })
    }

    /// The projects that the principal may see.
    pub async fn projects(&self, principal: &Principal) -> Result<Vec<ProjectView>> {
        let _permit = principal.permit(Operation::OverviewSee)?;
        let mut conn = self.services.db.acquire().await?;
        Ok(users::projects(&mut conn, principal).await?)
    }

    /// A page of the audit, newest first; the first page is 0.
    pub async fn audit(&self, principal: &Principal, page: u32) -> Result<Vec<AuditView>> {
        let _permit = principal.permit(Operation::AuditSee)?;
        let mut conn = self.services.db.acquire().await?;
        Ok(audit::page(&mut conn, page).await?)
    }
}

/// A count of things in memory: never more than fits.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
