//! Jobs as members see them, and what they decide about one.

use std::pin::Pin;
use std::time::Duration;

use corpus_api::jobs::{
    AbandonJob, CancelJob, FollowJob, GetJob, Job, JobAccepted, JobChange, JobDismissed, JobEvent, JobLog, JobOrder,
    JobPage, ListJobs, ReadJobLog, RetryJob,
};
use corpus_api::not_created::{Creation, DismissJob, ListNotCreated, NotCreatedPage};
use corpus_api::words::After;
use corpus_api::{Cursor, Operation, Principal, Write};
use corpus_domain::{JobId, JobKind, JobState};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, HandleStream, Permit, Result};
use futures::stream::{Stream, StreamExt};
use serde_json::json;

use super::{after, lines, page};
use crate::Controller;
use crate::job_errors::jobs_error;
use crate::jobs::{self, JobUpdate};
use crate::store::{Seen, deployments, environments, guests, jobs as store, not_created, project_end};

/// The list of those that made nothing, for its cursors.
const NOT_CREATED: &str = "jobs that made nothing, the newest first";

/// The list, for its cursors.
const fn list(order: JobOrder) -> &'static str {
    match order {
        JobOrder::Newest => "jobs, the newest first",
        JobOrder::Oldest => "jobs, the oldest first",
        JobOrder::Longest => "jobs, the longest first",
    }
}
/// The most lines of a log that are answered at once.
const LOG_LINES: i64 = 5_000;

impl Handle<ListJobs> for Controller {
    async fn handle(&self, permit: Permit<ListJobs>) -> Result<JobPage> {
        let (limit, rows) = lines(permit.limit);
        let (cursor, order) = (permit.cursor.as_ref(), permit.sort.unwrap_or_default());
        let list = list(order);
        let beyond: Option<store::Position> = match order {
            JobOrder::Longest => after(cursor, list)?,
            JobOrder::Newest | JobOrder::Oldest => after(cursor, list)?.map(|number| (None, number)),
        };
        let (projects, environments) = (permit.visible(), permit.environments());
        let seen = Seen { projects: projects.as_deref(), environments: environments.as_deref() };
        let mut conn = permit.connection().await?;
        let found = store::list(&mut conn, &permit, seen, beyond, rows).await?;
        let (found, next) = page(found, limit, |row| match order {
            JobOrder::Longest => Cursor::after(list, &(row.took(), row.order)),
            JobOrder::Newest | JobOrder::Oldest => Cursor::after(list, &row.order),
        });
        Ok(JobPage { items: found.into_iter().map(|row| row.line_for(&permit.who())).collect(), next })
    }
}

impl Handle<GetJob> for Controller {
    async fn handle(&self, permit: Permit<GetJob>) -> Result<Job> {
        let (id, who) = (permit.job, permit.who());
        if let Some(wait) = permit.wait.filter(|wait| wait.get() > 0) {
            self.jobs.wait(id, Duration::from_secs(wait.get())).await.map_err(jobs_error)?;
        }
        let mut conn = permit.connection().await?;
        let row = store::one(&mut conn, id).await?.ok_or(corpus_api::Denied::NotFound)?;
        let steps = jobs::Jobs::steps_on(&mut conn, id).await.map_err(jobs_error)?;
        let position = match row.row.state() {
            JobState::Waiting => Some(jobs::Jobs::position_on(&mut conn, id).await.map_err(jobs_error)?),
            _ => None,
        };
        let past_cancel = row.row.state() == JobState::Running && self.jobs.is_past_cancel(row.row.kind(), &steps);
        Ok(Job { past_cancel, ..row.detail_for(&who, steps, position) })
    }
}

impl Handle<ReadJobLog> for Controller {
    async fn handle(&self, permit: Permit<ReadJobLog>) -> Result<JobLog> {
        let number = |line: After| i64::try_from(line.get()).unwrap_or(i64::MAX);
        let after = permit.after.map_or(0, number);
        let limit = permit.limit.map_or(LOG_LINES, |limit| i64::try_from(limit.get()).unwrap_or(LOG_LINES));
        let lines = match permit.before.map(number) {
            Some(before) => self.jobs.log_before(permit.job, after, before, limit).await,
            None => self.jobs.log(permit.job, after, limit).await,
        };
        let lines = lines.map_err(jobs_error)?;
        Ok(JobLog { lines: lines.into_iter().map(store::log_line).collect() })
    }
}

/// The events of a job.
pub type JobEvents = Pin<Box<dyn Stream<Item = Result<JobEvent>> + Send>>;

impl HandleStream<FollowJob> for Controller {
    type Events = JobEvents;

    async fn follow(&self, permit: Permit<FollowJob>) -> Result<JobEvents> {
        let (who, db) = (permit.who(), self.services.db.clone());
        let after = permit.after.and_then(|after| i64::try_from(after.get()).ok()).unwrap_or_default();
        let updates = self.jobs.follow(permit.job, after);
        let told = updates.then(move |update| {
            let (who, db) = (std::sync::Arc::clone(&who), db.clone());
            async move { told(&who, &db, update.map_err(jobs_error)?).await }
        });
        Ok(Box::pin(told))
    }
}

/// A change as the principal may know it.
async fn told(who: &Principal, db: &crate::store::Db, update: JobUpdate) -> Result<JobEvent> {
    let change = match update.change {
        jobs::Change::Log(line) => JobChange::Log(store::log_line(line)),
        jobs::Change::Step(step) => JobChange::Step(store::step(step)),
        jobs::Change::State(job) => {
            let row = store::one(&mut *db.acquire().await?, job.id).await?.ok_or(corpus_api::Denied::NotFound)?;
            JobChange::State(Box::new(row.row.line_for(who)))
        }
    };
    Ok(JobEvent { number: update.seq, change })
}

impl Handle<CancelJob> for Controller {
    async fn handle(&self, mut change: Change<CancelJob>) -> Result<Committed<CancelJob>> {
        let (job, by) = (change.job, change.who().id);
        let title = title(&mut change, job).await?;
        let tx = change.transaction().await?;
        let was = self.jobs.cancel(tx, job, Some(by)).await.map_err(jobs_error)?;
        if was == JobState::Waiting {
            deployments::give_up_of_job(tx, job, "it was cancelled before it began").await?;
            environments::left_by(tx, job).await?;
            guests::left_by(tx, job).await?;
            project_end::left_by(tx, job).await?;
        } else if project_end::is_for_good(tx, job).await? {
            return Err(Error::Conflict(
                "It has begun to destroy the project's guests: there is no way back, and it can't be cancelled."
                    .to_owned(),
            ));
        }
        change.commit(Entry::new("job.cancel", &title).id(job.0), JobAccepted { job }).await
    }
}

impl Handle<ListNotCreated> for Controller {
    async fn handle(&self, permit: Permit<ListNotCreated>) -> Result<NotCreatedPage> {
        let (limit, rows) = lines(permit.limit);
        let before = after(permit.cursor.as_ref(), NOT_CREATED)?;
        let kind = permit.of.map(|of| match of {
            Creation::Guest => JobKind::GuestCreate,
            Creation::Node => JobKind::NodeLink,
            Creation::Environment => JobKind::EnvironmentSetUp,
            Creation::Name => JobKind::NameAttach,
        });
        let (visible, of) = (permit.visible(), (kind, permit.project.as_ref()));
        let mut conn = permit.connection().await?;
        let found = store::not_created(&mut conn, of, visible.as_deref(), before, rows).await?;
        let (found, next) = page(found, limit, |row| Cursor::after(NOT_CREATED, &row.order));
        Ok(NotCreatedPage { items: found.into_iter().map(|row| row.not_created_for(&permit.who())).collect(), next })
    }
}

impl Handle<DismissJob> for Controller {
    async fn handle(&self, mut change: Change<DismissJob>) -> Result<Committed<DismissJob>> {
        let (job, by) = (change.job, change.who().id);
        let title = title(&mut change, job).await?;
        if !not_created::dismiss(change.transaction().await?, job, by, None).await? {
            return Err(Error::Conflict("Only a job that was undone can be dismissed.".to_owned()));
        }
        change.commit(Entry::new("job.dismiss", &title).id(job.0), JobDismissed { job }).await
    }
}

impl Handle<RetryJob> for Controller {
    async fn handle(&self, mut change: Change<RetryJob>) -> Result<Committed<RetryJob>> {
        let job = change.job;
        let title = title(&mut change, job).await?;
        self.jobs.retry_stuck(change.transaction().await?, job).await.map_err(jobs_error)?;
        change.commit(Entry::new("job.retry", &title).id(job.0), JobAccepted { job }).await
    }
}

impl Handle<AbandonJob> for Controller {
    async fn handle(&self, mut change: Change<AbandonJob>) -> Result<Committed<AbandonJob>> {
        let (job, by, comment) = (change.job, change.who().id, change.comment.to_string());
        let title = title(&mut change, job).await?;
        self.jobs.abandon(change.transaction().await?, job, Some(by), &comment).await.map_err(jobs_error)?;
        let entry = Entry::new("job.abandon", &title).id(job.0).detail(json!({ "comment": comment }));
        change.commit(entry, JobAccepted { job }).await
    }
}

async fn title<O: Operation<Kind = Write>>(change: &mut Change<O>, job: JobId) -> Result<String> {
    Ok(store::title(change.transaction().await?, job).await?.unwrap_or_default())
}
