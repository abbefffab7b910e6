//! Jobs as the pages read them. No authorization here.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use corpus_domain::{GuestId, JobId, JobKind, NodeId, ProjectId, UserId};
use corpus_protocol::Stream;
use sqlx::PgConnection;

use super::error::JobsError;
use super::handle::Jobs;
use super::rows::{JobDetail, JobFilter, JobRow, LogLine, Page, StepRow};

macro_rules! job_row {
    ($row:expr) => {
        JobRow {
            id: JobId($row.id),
            kind: $row.kind.parse()?,
            title: $row.title,
            params: $row.params,
            state: $row.state.parse()?,
            node_id: $row.node_id.map(NodeId),
            guest_id: $row.guest_id.map(GuestId),
            project_id: $row.project_id.map(ProjectId),
            created_by: $row.created_by.map(UserId),
            created_at: $row.created_at,
            started_at: $row.started_at,
            ended_at: $row.ended_at,
            generation: $row.generation,
            cancel_requested_at: $row.cancel_requested_at,
            cancel_requested_by: $row.cancel_requested_by.map(UserId),
            error: $row.error,
            waiting_for: $row.waiting_for,
            waiting_since: $row.waiting_since,
            retry_at: $row.retry_at,
            node_unreachable_since: $row.node_unreachable_since,
            blocked_by: $row.blocked_by.map(JobId),
            blocker_project: $row.blocker_project.map(ProjectId),
            abandoned_by: $row.abandoned_by.map(UserId),
            comment: $row.comment,
            feed_seq: $row.feed_seq,
        }
    };
}

struct LogRow {
    seq: i64,
    at: DateTime<Utc>,
    step: Option<i32>,
    stream: String,
    text: String,
}

impl From<LogRow> for LogLine {
    fn from(row: LogRow) -> Self {
        let LogRow { seq, at, step, stream: word, text } = row;
        Self { seq, at, step, stream: stream(&word), text }
    }
}

fn stream(word: &str) -> Stream {
    match word {
        "out" => Stream::Out,
        "err" => Stream::Err,
        _ => Stream::Note,
    }
}

impl Jobs {
    /// The jobs that match, the newest first.
    pub async fn list(&self, filter: &JobFilter, limit: i64, offset: i64) -> Result<Page<JobRow>, JobsError> {
        Self::list_on(&mut *self.db().acquire().await?, filter, limit, offset).await
    }

    /// The same, for who has a connection.
    pub async fn list_on(
        conn: &mut PgConnection,
        filter: &JobFilter,
        limit: i64,
        offset: i64,
    ) -> Result<Page<JobRow>, JobsError> {
        let projects = filter.visible_to.as_ref();
        let projects = projects.map(|visible| visible.projects.iter().map(|id| id.0).collect::<Vec<_>>());
        let states: Vec<String> = filter.states.iter().map(|state| state.as_str().to_owned()).collect();
        let rows = sqlx::query!(
            r#"
            select id, kind, title, params, state, node_id, guest_id, project_id, created_by, created_at, started_at, ended_at,
                generation, cancel_requested_at, cancel_requested_by, error, waiting_for, waiting_since, retry_at, blocked_by,
                abandoned_by, comment, feed_seq,
                (select n.reachability_since from nodes n where n.id = jobs.node_id and n.reachability = 'unreachable') as node_unreachable_since,
                (select b.project_id from jobs b where b.id = jobs.blocked_by) as blocker_project,
                count(*) over () as "total!"
            from jobs
            where (cardinality($1::text[]) = 0 or state = any($1))
                and ($2::text is null or kind = $2)
                and ($3::uuid is null or node_id = $3)
                and ($4::uuid is null or guest_id = $4)
                and ($5::uuid is null or created_by = $5)
                and ($8::uuid[] is null or project_id = any($8))
            order by queue_order desc
            limit $6 offset $7
            "#,
            &states,
            filter.kind.map(JobKind::as_str),
            filter.node.map(|id| id.0),
            filter.guest.map(|id| id.0),
            filter.created_by.map(|id| id.0),
            limit,
            offset,
            projects.as_deref(),
        )
        .fetch_all(conn)
        .await?;
        let total = rows.first().map_or(0, |row| row.total);
        let items = rows.into_iter().map(|row| Ok(job_row!(row))).collect::<Result<_, JobsError>>()?;
        Ok(Page { items, total })
    }

    /// The job that was submitted with this key, if there is one.
    pub async fn by_idempotency_key(&self, key: &str) -> Result<Option<JobRow>, JobsError> {
        let id = sqlx::query_scalar!("select id from jobs where idempotency_key = $1", key);
        let mut conn = self.db().acquire().await?;
        match id.fetch_optional(&mut *conn).await? {
            Some(id) => Ok(Some(Self::row_on(&mut conn, JobId(id)).await?)),
            None => Ok(None),
        }
    }

    /// A job without its steps.
    pub async fn row(&self, id: JobId) -> Result<JobRow, JobsError> {
        Self::row_on(&mut *self.db().acquire().await?, id).await
    }

    /// The same, for who has a connection.
    pub async fn row_on(conn: &mut PgConnection, id: JobId) -> Result<JobRow, JobsError> {
        Ok(Self::row_with_state_seq(conn, id).await?.0)
    }

    /// A job without its steps, and the number of the last change of its own row.
    pub(super) async fn row_with_state_seq(conn: &mut PgConnection, id: JobId) -> Result<(JobRow, i64), JobsError> {
        let row = sqlx::query!(
            r#"
            select id, kind, title, params, state, node_id, guest_id, project_id, created_by, created_at, started_at, ended_at,
                generation, cancel_requested_at, cancel_requested_by, error, waiting_for, waiting_since, retry_at, blocked_by,
                abandoned_by, comment, feed_seq, state_seq,
                (select n.reachability_since from nodes n where n.id = jobs.node_id and n.reachability = 'unreachable') as node_unreachable_since,
                (select b.project_id from jobs b where b.id = jobs.blocked_by) as blocker_project
            from jobs where id = $1
            "#,
            id.0,
        )
        .fetch_optional(conn)
        .await?
        .ok_or(JobsError::Missing(id))?;
        let state_seq = row.state_seq;
        Ok((job_row!(row), state_seq))
    }

    /// A job with its steps.
    pub async fn get(&self, id: JobId) -> Result<JobDetail, JobsError> {
        Ok(JobDetail { job: self.row(id).await?, steps: self.steps_after(id, -1, i64::MAX).await? })
    }

    /// The steps of a job, for who has a connection.
    pub async fn steps_on(conn: &mut PgConnection, id: JobId) -> Result<Vec<StepRow>, JobsError> {
        Self::steps_between(conn, id, -1, i64::MAX).await
    }

    /// The steps that changed after number `after`, up to `until`.
    pub(super) async fn steps_after(&self, id: JobId, after: i64, until: i64) -> Result<Vec<StepRow>, JobsError> {
        Self::steps_between(&mut *self.db().acquire().await?, id, after, until).await
    }

    async fn steps_between(
        conn: &mut PgConnection,
        id: JobId,
        after: i64,
        until: i64,
    ) -> Result<Vec<StepRow>, JobsError> {
        let rows = sqlx::query!(
            r#"
            select index, name, title, state, started_at, ended_at, attempts, error, undo_error,
                progress_done, progress_total, alive_at, seq
            from job_steps where job_id = $1 and seq > $2 and seq <= $3 order by index
            "#,
            id.0,
            after,
            until,
        )
        .fetch_all(conn)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(StepRow {
                    index: row.index,
                    name: row.name,
                    title: row.title,
                    state: row.state.parse()?,
                    started_at: row.started_at,
                    ended_at: row.ended_at,
                    attempts: row.attempts,
                    error: row.error,
                    undo_error: row.undo_error,
                    progress_done: row.progress_done,
                    progress_total: row.progress_total,
                    alive_at: row.alive_at,
                    seq: row.seq,
                })
            })
            .collect()
    }

    /// The log after number `after`, at most `limit` lines.
    pub async fn log(&self, id: JobId, after: i64, limit: i64) -> Result<Vec<LogLine>, JobsError> {
        let rows = sqlx::query_as!(
            LogRow,
            "select seq, at, step, stream, text from job_log where job_id = $1 and seq > $2 order by seq limit $3",
            id.0,
            after,
            limit,
        );
        Ok(rows.fetch_all(&mut *self.db().acquire().await?).await?.into_iter().map(LogLine::from).collect())
    }

    /// The last lines of the log between two numbers, at most `limit`, the oldest first.
    pub async fn log_before(&self, id: JobId, after: i64, before: i64, limit: i64) -> Result<Vec<LogLine>, JobsError> {
        let rows = sqlx::query_as!(
            LogRow,
            "select seq, at, step, stream, text from job_log
             where job_id = $1 and seq > $2 and seq < $3 order by seq desc limit $4",
            id.0,
            after,
            before,
            limit,
        );
        Ok(rows.fetch_all(&mut *self.db().acquire().await?).await?.into_iter().rev().map(LogLine::from).collect())
    }

    /// The newest job of each guest that is not over; however many others there are.
    pub async fn newest_open_of(
        conn: &mut PgConnection,
        guests: &[GuestId],
    ) -> Result<HashMap<GuestId, JobId>, JobsError> {
        let guests: Vec<_> = guests.iter().map(|guest| guest.0).collect();
        let rows = sqlx::query!(
            r#"
            select distinct on (guest_id) guest_id as "guest!", id from jobs
            where guest_id = any($1) and state in ('waiting', 'running', 'undoing', 'stuck')
            order by guest_id, queue_order desc
            "#,
            &guests,
        )
        .fetch_all(conn)
        .await?;
        Ok(rows.into_iter().map(|row| (GuestId(row.guest), JobId(row.id))).collect())
    }

    /// How many jobs wait or run before a waiting one on things that it needs; 0 when it doesn't wait.
    pub async fn position(&self, id: JobId) -> Result<i64, JobsError> {
        Self::position_on(&mut *self.db().acquire().await?, id).await
    }

    /// The same, for who has a connection.
    pub async fn position_on(conn: &mut PgConnection, id: JobId) -> Result<i64, JobsError> {
        let ahead = sqlx::query_scalar!(
            r#"
            select count(distinct other.id) as "ahead!"
            from jobs mine
            join job_locks my_lock on my_lock.job_id = mine.id
            join job_locks lock on lock.resource = my_lock.resource
                and (lock.mode = 'exclusive' or my_lock.mode = 'exclusive')
            join jobs other on other.id = lock.job_id
            where mine.id = $1 and mine.state = 'waiting' and other.id <> mine.id
                and (lock.held_since is not null or other.queue_order < mine.queue_order)
            "#,
            id.0,
        )
        .fetch_one(conn)
        .await?;
        Ok(ahead)
    }
}
