//! Jobs as members see them, and what they may decide about one.

use std::collections::HashMap;

use corpus_domain::{JobId, JobState, ProjectId};
use futures::stream::{Stream, StreamExt};
use serde_json::json;
use sqlx::PgConnection;

use crate::authz::{Denied, Operation, Principal};
use crate::jobs::{Change, JobDetail, JobFilter, JobRow, JobUpdate, Jobs, JobsError, LogLine, Page, Visibility};
use crate::store::{Transaction, audit, deployments, environments};
use crate::views::{GuestView, NameView, NodeView};
use crate::{Controller, Error, Result};

/// Jobs on a page of the list.
pub const JOBS_PAGE: i64 = 50;

/// What a job waits for that waits for one of others.
const ANOTHER: &str = "another job on this node";

/// Jobs that are not over, or stuck.
const OPEN: [JobState; 4] = [JobState::Waiting, JobState::Running, JobState::Undoing, JobState::Stuck];

impl Controller {
    /// A page of the jobs that match and that the principal may see, the newest first; the
    /// first page is 0.
    pub async fn jobs(&self, principal: &Principal, mut filter: JobFilter, page: u32) -> Result<Page<JobRow>> {
        let _permit = principal.permit(Operation::JobSee)?;
        filter.visible_to = visibility(principal);
        let found = self.jobs.list(&filter, JOBS_PAGE, JOBS_PAGE * i64::from(page)).await.map_err(jobs_error)?;
        Ok(Page { items: found.items.into_iter().map(|job| shown(principal, job)).collect(), total: found.total })
    }

    /// One job with its steps.
    pub async fn job(&self, principal: &Principal, id: JobId) -> Result<JobDetail> {
        let JobDetail { job, steps } = self.jobs.get(id).await.map_err(jobs_error)?;
        see(principal, &job)?;
        Ok(JobDetail { job: shown(principal, job), steps })
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
        let who = principal.clone();
        Ok(self.jobs.follow(id, after).map(move |update| Ok(told(&who, update.map_err(jobs_error)?))))
    }

    /// Whether the principal may see the job, for who followed it until now.
    pub async fn sees_job(&self, principal: &Principal, id: JobId) -> Result<()> {
        see(principal, &self.jobs.row(id).await.map_err(jobs_error)?)
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
}

/// Notes at each guest the job that is on it, of those that are not over.
pub(super) fn fill_guest_jobs(found: &mut [GuestView], open: &[JobRow]) {
    let by_guest: HashMap<_, _> = open.iter().rev().filter_map(|job| Some((job.guest_id?, job.id))).collect();
    for guest in found {
        guest.job = by_guest.get(&guest.id).copied();
    }
}

/// Notes at each name the job that is on it, while the name is not settled.
pub(super) fn fill_name_jobs(found: &mut [NameView], open: &[JobRow]) {
    use corpus_domain::NameState::{Detaching, Wanted};
    for name in found.iter_mut().filter(|name| matches!(name.state, Wanted | Detaching)) {
        let id = json!(name.id);
        name.job = open.iter().find(|job| job.params.get("id") == Some(&id)).map(|job| job.id);
    }
}

/// Notes at each node the job that is on the node itself, and whether one is on it that the
/// principal may not know of.
pub(super) fn fill_node_jobs(principal: &Principal, found: &mut [NodeView], open: &[JobRow]) {
    for node in found {
        let on_it = || open.iter().rev().filter(|job| job.node_id == Some(node.id));
        let own = on_it().filter(|job| is_visible(principal, job.project_id));
        node.job = own.filter(|job| job.guest_id.is_none()).map(|job| job.id).next();
        node.busy = on_it().any(|job| !is_visible(principal, job.project_id));
    }
}

/// How many jobs that the principal may see are not over, and how many of them are stuck.
pub(super) async fn open_jobs(conn: &mut PgConnection, principal: &Principal) -> Result<(u32, u32)> {
    let mut count = [0; 2];
    for (count, states) in count.iter_mut().zip([OPEN.to_vec(), vec![JobState::Stuck]]) {
        let filter = JobFilter { states, visible_to: visibility(principal), ..JobFilter::default() };
        let page = Jobs::list_on(conn, &filter, 1, 0).await.map_err(jobs_error)?;
        *count = u32::try_from(page.total).unwrap_or(u32::MAX);
    }
    Ok(count.into())
}

/// The jobs that are not over, the newest first.
pub(super) async fn open_rows(conn: &mut PgConnection, visible_to: Option<Visibility>) -> Result<Vec<JobRow>> {
    let filter = JobFilter { states: OPEN.to_vec(), visible_to, ..JobFilter::default() };
    Ok(Jobs::list_on(conn, &filter, 1000, 0).await.map_err(jobs_error)?.items)
}

/// Whether the principal may cancel the job, or decide about it when it is stuck: who may start
/// such a job now.
pub fn may_decide(principal: &Principal, job: &JobRow) -> bool {
    let environment = job.params.pointer("/on/environment").and_then(|word| word.as_str()?.parse().ok());
    principal.may(Operation::that_starts(job.kind, environment), job.project_id)
}

/// Jobs of projects are seen by who is a member now, whoever began them. Jobs of nodes say in their
/// logs and errors which guests are there, of every project: they are seen by the operators.
fn is_visible(principal: &Principal, project: Option<ProjectId>) -> bool {
    match project {
        Some(project) => principal.may(Operation::JobSee, Some(project)),
        None => principal.may(Operation::NodeJobSee, None),
    }
}

fn see(principal: &Principal, job: &JobRow) -> Result<()> {
    if is_visible(principal, job.project_id) { Ok(()) } else { Err(Denied::NotFound.into()) }
}

fn visibility(principal: &Principal) -> Option<Visibility> {
    principal.visible_projects().map(|projects| Visibility { projects })
}

/// The job as the principal may know it: of a job of others that it waits for it tells no more than
/// that there is one. Projects share nothing but nodes, so it is on the same node.
fn shown(principal: &Principal, mut job: JobRow) -> JobRow {
    if job.blocked_by.is_some() && !is_visible(principal, job.blocker_project) {
        job.blocked_by = None;
        job.waiting_for = Some(ANOTHER.to_owned());
    }
    job
}

fn told(principal: &Principal, update: JobUpdate) -> JobUpdate {
    let change = match update.change {
        Change::State(job) => Change::State(Box::new(shown(principal, *job))),
        other => other,
    };
    JobUpdate { change, ..update }
}

/// A failure of the jobs as an answer to a person.
pub(crate) fn jobs_error(error: JobsError) -> Error {
    match error {
        JobsError::Missing(_) => Denied::NotFound.into(),
        JobsError::WrongState { .. } => Error::Conflict(error.to_string()),
        JobsError::CommentMissing => Error::field("comment", error.to_string()),
        JobsError::Database(error) => Error::from(error),
        other => Error::Internal { message: "the job could not be handled", source: Box::new(other) },
    }
}
