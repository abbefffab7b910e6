//! What was asked for and could not be made: a guest, a link to a node, an environment, a DNS name.
//!
//! Nothing of it is left but the job that was undone, and its reason must not go with the thing. So that job
//! stands where the thing would be, until somebody asks again or dismisses it, and for 30 days.

use corpus_domain::{JobId, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::jobs::{JobDismissed, JobLine};
use crate::operation::{Meta, Operation, Read, Role, Scope, Write, get, post};
use crate::words::Limit;

/// What could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Creation {
    /// A guest.
    Guest,
    /// A link to a node.
    Node,
    /// An environment on a guest.
    Environment,
    /// A DNS name of a guest.
    Name,
}

/// Lists the jobs that made nothing, the newest first: those of the last 30 days that nobody dismissed.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListNotCreated {
    /// Only those that were to make this.
    pub of: Option<Creation>,
    /// Only for this project.
    pub project: Option<ProjectName>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListNotCreated {
    type Kind = Read;
    type Output = NotCreatedPage;
    const META: Meta<Read> = get("list_not_created", "/not-created").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// A job that made nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotCreated {
    /// The job.
    pub job: JobLine,
    /// Whether who asks may dismiss it, and ask again.
    pub may_decide: bool,
}

crate::page!(
    /// What could not be made.
    NotCreatedPage, NotCreated
);

/// Dismisses that a job made nothing: it is listed so no more. For who may start such a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DismissJob {
    /// Which.
    pub job: JobId,
}
impl Operation for DismissJob {
    type Kind = Write;
    type Output = JobDismissed;
    const META: Meta<Write> = post("dismiss_job", "/jobs/{job}/dismiss").needs(Role::Developer);
    fn scope(&self) -> Scope {
        Scope::JobDecision(self.job)
    }
}
