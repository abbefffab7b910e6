//! The numbers at a glance, and what needs a look.

use corpus_domain::GuestId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::jobs::JobLine;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};

/// Counts what one may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetCounts {}
impl Operation for GetCounts {
    type Kind = Read;
    type Output = Counts;
    const META: Meta<Read> = get("get_counts", "/counts").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Shows the numbers, what failed, and what is being done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetOverview {}
impl Operation for GetOverview {
    type Kind = Read;
    type Output = Overview;
    const META: Meta<Read> = get("get_overview", "/overview").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// How many there are of what one may see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Guests.
    pub guests: u32,
    /// Of them, running.
    pub guests_running: u32,
    /// Of them, failed.
    pub guests_failed: u32,
    /// Of them, stopped.
    pub guests_stopped: u32,
    /// Compute nodes.
    pub nodes: u32,
    /// DNS names.
    pub names: u32,
    /// Of them, attached.
    pub names_attached: u32,
    /// Projects.
    pub projects: u32,
    /// Deployments that run or wait.
    pub deployments_running: u32,
    /// Jobs that are not over, the stuck ones among them.
    pub jobs: u32,
    /// Stuck jobs.
    pub jobs_stuck: u32,
    /// Requests to the operators that are open: all of them for operators, one's own for others.
    pub requests: u32,
    /// One's own notices that are unread.
    pub unread: u32,
}
impl Reply for Counts {}

/// What needs a look, and what is being done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// The numbers.
    pub counts: Counts,
    /// Slots of all nodes.
    pub slots: u32,
    /// Free slots of ready nodes.
    pub slots_free: u32,
    /// A few of the guests that failed, the newest failure first.
    pub failed: Vec<FailedGuest>,
    /// A few of the jobs that are not over, the newest first.
    pub open_jobs: Vec<JobLine>,
    /// The few jobs that were asked for last.
    pub latest_jobs: Vec<JobLine>,
}
impl Reply for Overview {}

/// A guest that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedGuest {
    /// Its id.
    pub id: GuestId,
    /// Its name.
    pub name: String,
}
