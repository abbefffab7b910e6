//! What people decide on a job: cancel it, try a stuck one again, abandon it.
//!
//! Each runs in the caller's transaction, beside its audit row.

use corpus_domain::{JobId, JobKind, JobState, ProjectId, StepState, UserId};
use sqlx::{PgConnection, PgTransaction};

use super::error::JobsError;
use super::handle::Jobs;
use super::rows::StepRow;

impl Jobs {
    /// Whether a job of this kind is past the point from which a cancel does nothing: none of its steps that are
    /// to end yet would see it.
    pub fn is_past_cancel(&self, kind: JobKind, steps: &[StepRow]) -> bool {
        let Ok(outline) = self.outline(kind) else { return false };
        let cancellable = |name: &str| outline.iter().any(|step| step.name == name && step.cancellable);
        let open = |step: &&StepRow| matches!(step.state, StepState::Pending | StepState::Running);
        let mut open = steps.iter().filter(open).peekable();
        open.peek().is_some() && !open.any(|step| cancellable(&step.name))
    }

    /// Cancels a job. A waiting one is over at once (`undone`); of a running one the step that
    /// runs is told at once, then everything is undone. Returns the state it was in.
    pub async fn cancel(
        &self,
        transaction: &mut PgTransaction<'_>,
        id: JobId,
        by: Option<UserId>,
    ) -> Result<JobState, JobsError> {
        let was = sqlx::query_scalar!(
            r#"
            with job as (select id, state from jobs where id = $1 for update), cancelled as (
                update jobs set
                    cancel_requested_at = coalesce(jobs.cancel_requested_at, now()),
                    cancel_requested_by = case when jobs.cancel_requested_at is null then $2 else cancel_requested_by end,
                    state = case when job.state = 'waiting' then 'undone' else job.state end,
                    ended_at = case when job.state = 'waiting' then now() end,
                    error = case when job.state = 'waiting' then 'cancelled' else error end,
                    waiting_for = case when job.state = 'running' then waiting_for end,
                    waiting_since = case when job.state = 'running' then waiting_since end,
                    retry_at = case when job.state = 'running' then retry_at end,
                    blocked_by = null,
                    feed_seq = feed_seq + 1, state_seq = feed_seq + 1
                from job where jobs.id = job.id and job.state in ('waiting', 'running')
                returning jobs.id
            ), released as (
                delete from job_locks using job where job_locks.job_id = job.id and job.state = 'waiting'
            ), notified as (
                select pg_notify('corpus_jobs', 'feed ' || id), pg_notify('corpus_jobs', 'cancel ' || id),
                    pg_notify('corpus_jobs', 'wake')
                from cancelled
            )
            select state from job, (select count(*) from notified) as told
            "#,
            id.0,
            by.map(|user| user.0),
        )
        .fetch_optional(&mut **transaction)
        .await?;
        let state = was.ok_or(JobsError::Missing(id))?.parse()?;
        if state == JobState::Waiting {
            self.tell_end(transaction, id).await?;
        }
        match state {
            JobState::Waiting | JobState::Running => Ok(state),
            _ => Err(JobsError::WrongState { id, state, expected: "only a waiting or running job can be cancelled" }),
        }
    }

    /// Ends the jobs of a project that wait still: what they are about is gone, and this says why. Those who asked
    /// for them are not told.
    pub async fn end_waiting(conn: &mut PgConnection, project: ProjectId, why: &str) -> sqlx::Result<()> {
        sqlx::query!(
            r#"
            with ended as (
                update jobs set state = 'undone', ended_at = now(), error = $2, waiting_for = null,
                    waiting_since = null, retry_at = null, blocked_by = null,
                    feed_seq = feed_seq + 1, state_seq = feed_seq + 1
                where project_id = $1 and state = 'waiting'
                returning id
            ), released as (
                delete from job_locks using ended where job_locks.job_id = ended.id
            )
            select pg_notify('corpus_jobs', 'feed ' || id)::text as notified from ended
            "#,
            project.0,
            why,
        )
        .fetch_all(conn)
        .await
        .map(drop)
    }

    /// Runs the undos of a stuck job again, from the one that failed.
    pub async fn retry_stuck(&self, transaction: &mut PgTransaction<'_>, id: JobId) -> Result<(), JobsError> {
        self.lock_stuck(transaction, id, "only a stuck job can be tried again").await?;
        // The saga is resumed where its log ends, so the log must end before the failure; the
        // job's own log keeps it.
        sqlx::query!(
            r#"
            with forgotten as (
                delete from job_events where job_id = $1 and kind = 'undo_failed'
            ), steps as (
                update job_steps set state = 'undoing', seq = jobs.feed_seq + 1
                from jobs where jobs.id = $1 and job_id = $1 and job_steps.state = 'undo_failed'
            ), job as (
                update jobs set state = 'undoing', owner = null, lease_until = null,
                    feed_seq = feed_seq + 1, state_seq = feed_seq + 1
                where id = $1
                returning id
            )
            select pg_notify('corpus_jobs', 'feed ' || id)::text as feed, pg_notify('corpus_jobs', 'wake')::text as wake
            from job
            "#,
            id.0,
        )
        .fetch_one(&mut **transaction)
        .await?;
        Ok(())
    }

    /// Gives a stuck job up: what is left is left, and its locks are free. The comment says why.
    pub async fn abandon(
        &self,
        transaction: &mut PgTransaction<'_>,
        id: JobId,
        by: Option<UserId>,
        comment: &str,
    ) -> Result<(), JobsError> {
        if comment.trim().is_empty() {
            return Err(JobsError::CommentMissing);
        }
        self.lock_stuck(transaction, id, "only a stuck job can be abandoned").await?;
        sqlx::query!(
            r#"
            with job as (
                update jobs set state = 'abandoned', ended_at = now(), abandoned_by = $2, comment = $3,
                    feed_seq = feed_seq + 1, state_seq = feed_seq + 1
                where id = $1
                returning id
            ), released as (
                delete from job_locks where job_id = $1
            )
            select pg_notify('corpus_jobs', 'feed ' || id)::text as feed, pg_notify('corpus_jobs', 'wake')::text as wake
            from job
            "#,
            id.0,
            by.map(|user| user.0),
            comment.trim(),
        )
        .fetch_one(&mut **transaction)
        .await?;
        Ok(self.tell_end(transaction, id).await?)
    }

    async fn lock_stuck(
        &self,
        transaction: &mut PgTransaction<'_>,
        id: JobId,
        expected: &'static str,
    ) -> Result<(), JobsError> {
        let state = sqlx::query_scalar!("select state from jobs where id = $1 for update", id.0)
            .fetch_optional(&mut **transaction)
            .await?
            .ok_or(JobsError::Missing(id))?
            .parse()?;
        if state == JobState::Stuck { Ok(()) } else { Err(JobsError::WrongState { id, state, expected }) }
    }
}
