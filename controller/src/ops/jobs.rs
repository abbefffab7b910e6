//! Jobs as members see them, and what they may decide about one.

use std::collections::HashMap;

use corpus_domain::{JobId, JobState};
use futures::stream::{Stream, StreamExt};
use serde_json::json;
use sqlx::PgConnection;

use crate::authz::{Denied, Operation, Principal};
use crate::jobs::{JobDetail, JobFilter, JobRow, JobUpdate, Jobs, JobsError, LogLine, Page, Visibility};
use crate::store::{Transaction, audit, deployments, environments};
use crate::views::{GuestView, NameView, NodeView};
use crate::{Controller, Error, Result};

/// Jobs on a page of the list.
pub const JOBS_PAGE: i64 = 50;

/// Jobs that are not over, or stuck.
const OPEN: [JobState; 4] = [JobState::Waiting, JobState::Running, JobState::Undoing, JobState::Stuck];

impl Controller {
    /// A page of the jobs that match and that the principal may see, the newest first; the
    /// first page is 0.
    pub async fn jobs(&self, principal: &Principal, mut filter: JobFilter, page: u32) -> Result<Page<JobRow>> {
        let _permit = principal.permit(Operation::JobSee)?;
        filter.visible_to = visibility(principal);
        self.jobs.list(&filter, JOBS_PAGE, JOBS_PAGE * i64::from(page)).await.map_err(jobs_error)
    }

    /// One job with its steps.
    pub async fn job(&self, principal: &Principal, id: JobId) -> Result<JobDetail> {
        let detail = self.jobs.get(id).await.map_err(jobs_error)?;
        see(principal, &detail.job)?;
        Ok(detail)
    }

    /// The log of a job after number `after`, at most `limit` lines.
    pub async fn job_log(&self, principal: &Principal, id: JobId, after: i64, limit: i64) -> Result<Vec<LogLine>> {
        see(principal, &self.jobs.row(id).await.map_err(jobs_error)?)?;
        self.jobs.log(id, after, limit).await.map_err(jobs_error)
    }

    /// The changes of a job after number `after`, then those that come, until it is over.
    pub async fn job_follow(
        &self,
        principal: &Principal,
        id: JobId,
        after: i64,
    ) -> Result<impl Stream<Item = Result<JobUpdate>> + Send + use<>> {
        see(principal, &self.jobs.row(id).await.map_err(jobs_error)?)?;
        Ok(self.jobs.follow(id, after).map(|update| update.map_err(jobs_error)))
    }

    /// Asks a job to stop; what it did is undone.
    pub async fn cancel_job(&self, principal: &Principal, id: JobId) -> Result<()> {
        let (mut tx, _) = self.decide(principal, id, "job.cancel", json!({})).await?;
        let was = self.jobs.cancel(&mut tx, id, Some(principal.id)).await.map_err(jobs_error)?;
        if was == JobState::Waiting {
            deployments::give_up_of_job(&mut tx, id, "it was cancelled before it began").await?;
            environments::left_by(&mut tx, id).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Runs the undo of a stuck job again.
    pub async fn retry_job(&self, principal: &Principal, id: JobId) -> Result<()> {
        let (mut tx, _) = self.decide(principal, id, "job.retry", json!({})).await?;
        self.jobs.retry_stuck(&mut tx, id).await.map_err(jobs_error)?;
        Ok(tx.commit().await?)
    }

    /// Gives a stuck job up; the comment says what was done about what is left.
    pub async fn abandon_job(&self, principal: &Principal, id: JobId, comment: &str) -> Result<()> {
        let (mut tx, _) = self.decide(principal, id, "job.abandon", json!({ "comment": comment })).await?;
        self.jobs.abandon(&mut tx, id, Some(principal.id), comment).await.map_err(jobs_error)?;
        Ok(tx.commit().await?)
    }

    /// Permits a decision about a job and writes it to the audit of a new transaction.
    async fn decide(
        &self,
        principal: &Principal,
        id: JobId,
        action: &'static str,
        detail: serde_json::Value,
    ) -> Result<(Transaction, JobRow)> {
        let job = self.jobs.row(id).await.map_err(jobs_error)?;
        see(principal, &job)?;
        if !may_decide(principal, &job) {
            return Err(Denied::Forbidden.into());
        }
        let mut tx = self.services.begin().await?;
        let entry = audit::Entry { action, subject: &job.title, subject_id: Some(id.0), detail };
        audit::write(&mut tx, principal, entry).await?;
        Ok((tx, job))
    }

    /// How many jobs that the principal may see are not over, and how many of them are stuck.
    pub(super) async fn open_jobs(&self, principal: &Principal) -> Result<(u32, u32)> {
        let open = self.open_rows(visibility(principal)).await?;
        let stuck = open.iter().filter(|job| job.state == JobState::Stuck).count();
        Ok((small(open.len()), small(stuck)))
    }

    async fn open_rows(&self, visible_to: Option<Visibility>) -> Result<Vec<JobRow>> {
        open_rows(&mut *self.services.db.acquire().await?, visible_to).await
    }

    /// Notes at each guest the job that is on it.
    pub(super) async fn fill_guest_jobs(&self, found: &mut [GuestView]) -> Result<()> {
        let open = self.open_rows(None).await?;
        let by_guest: HashMap<_, _> = open.iter().rev().filter_map(|job| Some((job.guest_id?, job.id))).collect();
        for guest in found {
            guest.job = by_guest.get(&guest.id).copied();
        }
        Ok(())
    }

    /// Notes at each name the job that is on its guest, while the name is not settled.
    pub(super) async fn fill_name_jobs(&self, found: &mut [NameView]) -> Result<()> {
        use corpus_domain::NameState::{Detaching, Wanted};
        if !found.iter().any(|name| matches!(name.state, Wanted | Detaching)) {
            return Ok(());
        }
        let open = self.open_rows(None).await?;
        for name in found.iter_mut().filter(|name| matches!(name.state, Wanted | Detaching)) {
            let id = json!(name.id);
            name.job = open.iter().find(|job| job.params.get("id") == Some(&id)).map(|job| job.id);
        }
        Ok(())
    }

    /// Notes at each node the job that is on the node itself.
    pub(super) async fn fill_node_jobs(&self, found: &mut [NodeView]) -> Result<()> {
        let open = self.open_rows(None).await?;
        for node in found {
            let of_node = |job: &&JobRow| job.node_id == Some(node.id) && job.guest_id.is_none();
            node.job = open.iter().rev().find(of_node).map(|job| job.id);
        }
        Ok(())
    }
}

/// The jobs that are not over, the newest first.
pub(super) async fn open_rows(conn: &mut PgConnection, visible_to: Option<Visibility>) -> Result<Vec<JobRow>> {
    let filter = JobFilter { states: OPEN.to_vec(), visible_to, ..JobFilter::default() };
    Ok(Jobs::list_on(conn, &filter, 1000, 0).await.map_err(jobs_error)?.items)
}

/// Whether the principal may cancel the job, or decide about it when it is stuck.
pub fn may_decide(principal: &Principal, job: &JobRow) -> bool {
    let operation = if job.project_id.is_some() { Operation::JobDecide } else { Operation::NodeInitialize };
    principal.may(operation, job.project_id)
}

/// Jobs of projects are seen by their members, jobs of nodes by all, each also by who began it.
fn see(principal: &Principal, job: &JobRow) -> Result<()> {
    let own = job.created_by == Some(principal.id);
    let visible = own || principal.may(Operation::JobSee, job.project_id);
    if visible { Ok(()) } else { Err(Denied::NotFound.into()) }
}

fn visibility(principal: &Principal) -> Option<Visibility> {
    principal.visible_projects().map(|projects| Visibility { projects, user: principal.id })
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A failure of the jobs as an answer to a person.
pub(crate) fn jobs_error(error: JobsError) -> Error {
    match error {
        JobsError::Missing(_) => Denied::NotFound.into(),
        JobsError::WrongState { .. } => Error::Conflict(error.to_string()),
        JobsError::CommentMissing => Error::field("comment", error.to_string()),
        JobsError::Database(error) => Error::Database(error),
        other => Error::Internal { message: "the job could not be handled", source: Box::new(other) },
    }
}
