//! Jobs as they are listed and shown: with the names of who and what they are about.

use corpus_api::Principal;
use corpus_api::jobs::{Job, JobLine, JobLogLine, JobStep, ListJobs};
use corpus_api::operation::Role;
use corpus_api::principal::to_start;
use corpus_domain::{Environment, GuestId, JobId, JobState, NodeId, ProjectId, UserName};
use corpus_protocol::Stream;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{word, word_opt};
use crate::jobs::{LogLine, StepRow};

/// What a job waits for that waits for one of others.
const ANOTHER: &str = "another job on this node";

/// A job with what decides who may know what of it.
#[derive(Debug)]
pub struct Row {
    /// Its place in the list.
    pub order: i64,
    line: JobLine,
    project: Option<ProjectId>,
    /// The project of the job that it waits for; none for a job of a node.
    blocker_project: Option<ProjectId>,
}

impl Row {
    /// How far it is.
    pub const fn state(&self) -> JobState {
        self.line.state
    }

    /// The line as the principal may know it: of a job of others that it waits for it tells no more than
    /// that there is one. Projects share nothing but nodes, so it is on the same node.
    pub fn line_for(self, who: &Principal) -> JobLine {
        let least = if self.blocker_project.is_some() { Role::Viewer } else { Role::Ops };
        let mut line = self.line;
        if line.blocked_by.is_some() && who.judge(least, self.blocker_project).is_err() {
            line.blocked_by = None;
            line.waiting_for = Some(ANOTHER.to_owned());
        }
        line
    }
}

/// A job with all that its page shows besides its steps.
#[derive(Debug)]
pub struct Whole {
    /// The job.
    pub row: Row,
    environment: Option<Environment>,
    cancel_requested_by: Option<UserName>,
    abandoned_by: Option<UserName>,
    comment: Option<String>,
    taken: i64,
    last_event: i64,
}

impl Whole {
    /// The whole as the principal may know it.
    pub fn detail_for(self, who: &Principal, steps: Vec<StepRow>, position: Option<i64>) -> Job {
        let least = self.row.project.map_or(Role::Ops, |_| to_start(self.row.line.kind, self.environment));
        Job {
            cancel_requested_by: self.cancel_requested_by,
            abandoned_by: self.abandoned_by,
            comment: self.comment,
            position,
            may_decide: who.judge(least, self.row.project).is_ok(),
            taken: self.taken,
            last_event: self.last_event,
            steps: steps.into_iter().map(step).collect(),
            line: self.row.line_for(who),
        }
    }
}

macro_rules! row {
    ($row:expr) => {
        Row {
            order: $row.queue_order,
            project: $row.project_id.map(ProjectId),
            blocker_project: $row.blocker_project.map(ProjectId),
            line: JobLine {
                id: JobId($row.id),
                kind: word(&$row.kind)?,
                title: $row.title,
                state: word(&$row.state)?,
                node: $row.node_id.map(NodeId),
                guest: $row.guest_id.map(GuestId),
                project: word_opt($row.project.as_deref())?,
                by: word_opt($row.by.as_deref())?,
                created_at: $row.created_at,
                started_at: $row.started_at,
                ended_at: $row.ended_at,
                cancel_requested_at: $row.cancel_requested_at,
                error: $row.error,
                waiting_for: $row.waiting_for,
                waiting_since: $row.waiting_since,
                blocked_by: $row.blocked_by.map(JobId),
                retry_at: $row.retry_at,
                node_unreachable_since: $row.node_unreachable_since,
            },
        }
    };
}

/// The jobs that match, the newest first, those before a place in the order.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListJobs,
    visible: Option<&[ProjectId]>,
    before: Option<i64>,
    limit: i64,
) -> sqlx::Result<Vec<Row>> {
    let states: Vec<String> = asked.state.iter().map(|state| state.as_str().to_owned()).collect();
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let rows = sqlx::query!(
        r#"
        select j.queue_order, j.id, j.kind, j.title, j.state, j.node_id, j.guest_id, j.project_id, p.name as "project?",
            u.login as "by?", j.created_at, j.started_at, j.ended_at, j.cancel_requested_at, j.error, j.waiting_for,
            j.waiting_since, j.blocked_by, b.project_id as "blocker_project?", j.retry_at,
            n.reachability_since as "node_unreachable_since?"
        from jobs j
        left join projects p on p.id = j.project_id
        left join users u on u.id = j.created_by
        left join jobs b on b.id = j.blocked_by
        left join nodes n on n.id = j.node_id and n.reachability = 'unreachable'
        where (cardinality($1::text[]) = 0 or j.state = any($1))
            and ($2::text is null or j.kind = $2)
            and ($3::uuid is null or j.node_id = $3)
            and ($4::uuid is null or j.guest_id = $4)
            and ($5::text is null or j.project_id = (select id from projects where name = $5))
            and ($6::text is null or j.created_by = (select id from users where login = $6))
            and ($7::uuid[] is null or j.project_id = any($7))
            and ($8::bigint is null or j.queue_order < $8)
        order by j.queue_order desc limit $9
        "#,
        &states,
        asked.kind.map(corpus_domain::JobKind::as_str),
        asked.node.map(|id| id.0),
        asked.guest.map(|id| id.0),
        asked.project.as_ref().map(corpus_domain::ProjectName::as_str),
        asked.by.as_ref().map(UserName::as_str),
        visible.as_deref(),
        before,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(|row| Ok(row!(row))).collect()
}

/// One job.
pub async fn one(conn: &mut PgConnection, id: JobId) -> sqlx::Result<Option<Whole>> {
    let row = sqlx::query!(
        r#"
        select j.queue_order, j.id, j.kind, j.title, j.state, j.node_id, j.guest_id, j.project_id, p.name as "project?",
            u.login as "by?", j.created_at, j.started_at, j.ended_at, j.cancel_requested_at, j.error, j.waiting_for,
            j.waiting_since, j.blocked_by, b.project_id as "blocker_project?", j.retry_at, j.comment, j.feed_seq,
            j.generation, j.params #>> '{on,environment}' as environment, c.login as "canceller?",
            a.login as "abandoner?", n.reachability_since as "node_unreachable_since?"
        from jobs j
        left join projects p on p.id = j.project_id
        left join users u on u.id = j.created_by
        left join users c on c.id = j.cancel_requested_by
        left join users a on a.id = j.abandoned_by
        left join jobs b on b.id = j.blocked_by
        left join nodes n on n.id = j.node_id and n.reachability = 'unreachable'
        where j.id = $1
        "#,
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(Whole {
        environment: row.environment.and_then(|word| word.parse().ok()),
        cancel_requested_by: word_opt(row.canceller.as_deref())?,
        abandoned_by: word_opt(row.abandoner.as_deref())?,
        comment: row.comment,
        taken: row.generation,
        last_event: row.feed_seq,
        row: row!(row),
    }))
}

/// What a job does, with names.
pub async fn title(conn: &mut PgConnection, id: JobId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select title from jobs where id = $1", id.0).fetch_optional(conn).await
}

/// A line of a log as it is shown.
pub fn log_line(line: LogLine) -> JobLogLine {
    let stream = match line.stream {
        Stream::Out => "out",
        Stream::Err => "err",
        Stream::Note => "note",
    };
    JobLogLine { number: line.seq, at: line.at, step: line.step, stream: stream.to_owned(), text: line.text }
}

/// A step as it is shown.
pub fn step(step: StepRow) -> JobStep {
    JobStep {
        index: step.index,
        name: step.name,
        title: step.title,
        state: step.state,
        started_at: step.started_at,
        ended_at: step.ended_at,
        attempts: step.attempts,
        error: step.error,
        undo_error: step.undo_error,
        progress_done: step.progress_done,
        progress_total: step.progress_total,
        alive_at: step.alive_at,
    }
}
