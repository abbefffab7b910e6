//! The numbers at a glance, and the audit.

use corpus_domain::{GuestState, NameState};

use crate::authz::{Operation, Principal};
use crate::store::{audit, users};
use crate::views::{AuditView, Counts, NodeView, ProjectView};
use crate::{Controller, Result};

impl Controller {
    /// The numbers beside the navigation and on the overview.
    pub async fn counts(&self, principal: &Principal) -> Result<Counts> {
        let guests = self.guests(principal).await?;
        let nodes = self.nodes(principal).await?;
        let names = self.names(principal).await?;
        let (jobs, jobs_stuck) = self.open_jobs(principal).await?;
        let count = |state| small(guests.iter().filter(|guest| guest.state == state).count());
        Ok(Counts {
            guests: small(guests.len()),
            guests_running: count(GuestState::Running),
            guests_failed: count(GuestState::Failed),
            guests_stopped: count(GuestState::Stopped),
            nodes: small(nodes.len()),
            slots: nodes.iter().map(|node| node.slots).sum(),
            slots_free: nodes.iter().map(NodeView::free_slots).sum(),
            names: small(names.len()),
            names_attached: small(names.iter().filter(|name| name.state == NameState::Attached).count()),
            projects: small(self.projects(principal).await?.len()),
            deployments_running: self.deployments_open(principal).await?,
            jobs,
            jobs_stuck,
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
