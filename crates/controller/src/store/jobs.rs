//! Jobs as they are listed and shown: with the names of who and what they are about.

use chrono::{DateTime, Utc};
use corpus_api::Principal;
use corpus_api::jobs::{Job, JobLine, JobLogLine, JobOrder, JobStep, ListJobs};
use corpus_api::not_created::NotCreated;
use corpus_api::operation::Role;
use corpus_api::principal::to_start;
use corpus_api::words::SearchText;
use corpus_domain::{ActorName, Environment, GuestId, JobId, JobKind, JobState, NodeId, ProjectId, ProjectName};
use corpus_protocol::Stream;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Seen, word, word_opt};
use crate::jobs::{LogLine, StepRow};

/// What a job waits for that waits for one of others.
pub(super) const ANOTHER: &str = "another job on this node";

/// A job with what decides who may know what of it.
#[derive(Debug)]
pub struct Row {
    /// Its number: those that were asked for later have larger ones.
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

    /// What it does.
    pub const fn kind(&self) -> JobKind {
        self.line.kind
    }

    /// How many microseconds it took, which is as exact as the database is.
    pub fn took(&self) -> Option<i64> {
        (self.line.ended_at? - self.line.started_at?).num_microseconds()
    }

    /// The line as the principal may know it: of a job of others that it waits for it tells no more than
    /// that there is one. Projects share nothing but nodes, so it is on the same node. For a robot all others' are:
    /// what its job waits for may be of an environment that it does not see.
    pub fn line_for(self, who: &Principal) -> JobLine {
        let least = if self.blocker_project.is_some() { Role::Viewer } else { Role::Ops };
        let mut line = self.line;
        let is_hidden = who.robot.is_some() || who.judge(least, self.blocker_project).is_err();
        if line.blocked_by.is_some() && is_hidden {
            line.blocked_by = None;
            line.waiting_for = Some(ANOTHER.to_owned());
        }
        line
    }

    /// The same of a job that made nothing.
    pub fn not_created_for(self, who: &Principal) -> NotCreated {
        let least = self.project.map_or(Role::Ops, |_| to_start(self.line.kind, None));
        NotCreated { may_decide: who.judge(least, self.project).is_ok(), job: self.line_for(who) }
    }
}

/// A job with all that its page shows besides its steps.
#[derive(Debug)]
pub struct Whole {
    /// The job.
    pub row: Row,
    environment: Option<Environment>,
    cancel_requested_by: Option<ActorName>,
    abandoned_by: Option<ActorName>,
    comment: Option<String>,
    asked: Option<serde_json::Value>,
    dismissed_at: Option<DateTime<Utc>>,
    taken: i64,
    last_event: i64,
}

impl Whole {
    /// The whole as the principal may know it.
    pub fn detail_for(self, who: &Principal, steps: Vec<StepRow>, position: Option<i64>) -> Job {
        let least = self.row.project.map_or(Role::Ops, |_| to_start(self.row.line.kind, self.environment));
        let may_decide = who.judge(least, self.row.project).is_ok();
        Job {
            cancel_requested_by: self.cancel_requested_by,
            abandoned_by: self.abandoned_by,
            comment: self.comment,
            position,
            may_decide,
            past_cancel: false,
            asked: self.asked.filter(|_| may_decide),
            dismissed_at: self.dismissed_at,
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
                cancelled_by: word_opt($row.canceller.as_deref())?,
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

/// Where a job is in a list: how many microseconds it took, where that is the order, and its number.
pub type Position = (Option<i64>, i64);

/// A page of the jobs that match. A statement is checked when it is compiled, so each order is one of its own;
/// `$8` is the number of the job that a page begins after, and what follows the limit is what else the order takes.
macro_rules! page {
    ($conn:ident, $asked:ident, $seen:ident, $after:ident, $limit:ident, $beyond:tt, $order:tt $(, $more:expr)?) => {{
        let states: Vec<String> = $asked.state.iter().map(|state| state.as_str().to_owned()).collect();
        let only: Vec<Uuid> = $asked.job.iter().map(|id| id.0).collect();
        let visible: Option<Vec<Uuid>> = $seen.projects.map(|projects| projects.iter().map(|project| project.0).collect());
        let rows = sqlx::query!(
            r#"
            select j.queue_order, j.id, j.kind, j.title, j.state, j.node_id, j.guest_id, j.project_id,
                p.name as "project?", u.login as "by?", j.created_at, j.started_at, j.ended_at, j.cancel_requested_at,
                c.login as "canceller?", j.error, j.waiting_for, j.waiting_since, j.blocked_by,
                b.project_id as "blocker_project?", j.retry_at, n.reachability_since as "node_unreachable_since?"
            from jobs j
            left join projects p on p.id = j.project_id
            left join users u on u.id = j.created_by
            left join users c on c.id = j.cancel_requested_by
            left join jobs b on b.id = j.blocked_by
            left join nodes n on n.id = j.node_id and n.reachability = 'unreachable'
            where (cardinality($1::text[]) = 0 or j.state = any($1))
                and ($2::text is null or j.kind = $2)
                and ($3::uuid is null or j.node_id = $3)
                and ($4::uuid is null or j.guest_id = $4)
                and ($5::text is null or j.project_id = (select id from projects where name = $5))
                and ($6::text is null or j.created_by in (select id from users where login = $6))
                and ($7::uuid[] is null or j.project_id = any($7))
                and ($10::text is null or words_of(j.title) @@ words_asked($10))
                and (cardinality($11::uuid[]) = 0 or j.id = any($11))
                and ($12::text is null or j.params #>> '{on,environment}' = $12)
                and ($13::text[] is null or coalesce(j.params #>> '{on,environment}',
                    (select g.environment from guests g where g.id = j.guest_id)) = any($13))
                and "# + $beyond + " order by " + $order + " limit $9",
            &states,
            $asked.kind.map(corpus_domain::JobKind::as_str),
            $asked.node.map(|id| id.0),
            $asked.guest.map(|id| id.0),
            $asked.project.as_ref().map(corpus_domain::ProjectName::as_str),
            $asked.by.as_ref().map(ActorName::as_str),
            visible.as_deref(),
            $after.map(|(_, number)| number),
            $limit,
            $asked.q.as_ref().map(SearchText::as_str),
            &only,
            $asked.environment.map(corpus_domain::Environment::as_str),
            $seen.environments
            $(, $more)?
        );
        rows.fetch_all($conn).await?.into_iter().map(|row| Ok(row!(row))).collect()
    }};
}

/// The jobs that match, in the order that is asked, those beyond a place in it.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListJobs,
    seen: Seen<'_>,
    after: Option<Position>,
    limit: i64,
) -> sqlx::Result<Vec<Row>> {
    match asked.sort.unwrap_or_default() {
        JobOrder::Newest => {
            page!(conn, asked, seen, after, limit, "($8::bigint is null or j.queue_order < $8)", "j.queue_order desc")
        }
        JobOrder::Oldest => {
            page!(conn, asked, seen, after, limit, "($8::bigint is null or j.queue_order > $8)", "j.queue_order")
        }
        JobOrder::Longest => page!(
            conn,
            asked,
            seen,
            after,
            limit,
            "j.ended_at - j.started_at is not null and ($8::bigint is null
                 or (j.ended_at - j.started_at, j.queue_order) < ($14::bigint * interval '1 microsecond', $8))",
            "j.ended_at - j.started_at desc, j.queue_order desc",
            after.and_then(|(took, _)| took)
        ),
    }
}

/// Those that made nothing and that nobody dismissed, the newest first, those before a place in the order. After
/// a month it is no news any more; of a guest that is gone by now nothing was to be had.
pub async fn not_created(
    conn: &mut PgConnection,
    (of, project): (Option<JobKind>, Option<&ProjectName>),
    visible: Option<&[ProjectId]>,
    before: Option<i64>,
    limit: i64,
) -> sqlx::Result<Vec<Row>> {
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let rows = sqlx::query!(
        r#"
        select j.queue_order, j.id, j.kind, j.title, j.state, j.node_id, j.guest_id, j.project_id, p.name as "project?",
            u.login as "by?", j.created_at, j.started_at, j.ended_at, j.cancel_requested_at, j.error, j.waiting_for,
            j.waiting_since, j.blocked_by, null::uuid as "blocker_project?", j.retry_at,
            null::timestamptz as "node_unreachable_since?", c.login as "canceller?"
        from jobs j
        left join projects p on p.id = j.project_id
        left join users u on u.id = j.created_by
        left join users c on c.id = j.cancel_requested_by
        where j.state = 'undone' and j.dismissed_at is null and j.ended_at > now() - interval '30 days'
            and j.kind in ('guest_create', 'node_link', 'environment_set_up', 'name_attach')
            and (j.kind not in ('environment_set_up', 'name_attach')
                or exists (select from guests g where g.id = j.guest_id))
            and ($1::text is null or j.kind = $1) and ($2::uuid[] is null or j.project_id = any($2))
            and ($4::text is null or j.project_id = (select id from projects where name = $4))
            and ($5::bigint is null or j.queue_order < $5)
        order by j.queue_order desc limit $3
        "#,
        of.map(JobKind::as_str),
        visible.as_deref(),
        limit,
        project.map(ProjectName::as_str),
        before,
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
            j.generation, j.params -> 'asked' as asked, j.dismissed_at,
            j.params #>> '{on,environment}' as environment, c.login as "canceller?",
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
        asked: row.asked,
        dismissed_at: row.dismissed_at,
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
