//! One batch of what a run has to write, and the one statement that writes it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use corpus_domain::JobState;
use corpus_protocol::Stream;
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;

use super::rows::StepRow;
use super::writer::{Lease, clean};

#[derive(Debug)]
pub(super) struct Line {
    pub at: DateTime<Utc>,
    pub step: Option<i32>,
    pub stream: Stream,
    pub text: String,
}

#[derive(Debug)]
pub(super) enum Item {
    Line(Line),
    Step(i32),
}

/// What becomes of the text that says what the job waits for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Wait {
    #[default]
    Same,
    Over,
    /// What for, and when it is tried again if that is known.
    For(String, Option<DateTime<Utc>>),
}

impl Wait {
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::For(what, _) => Some(what),
            Self::Same | Self::Over => None,
        }
    }

    pub fn until(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::For(_, until) => *until,
            Self::Same | Self::Over => None,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct EventRow {
    pub node_id: u32,
    pub kind: &'static str,
    pub event: Value,
}

#[derive(Debug, Serialize)]
pub(super) struct LineRow {
    pub seq: i64,
    pub at: DateTime<Utc>,
    pub step: Option<i32>,
    pub stream: Stream,
    pub text: String,
}

/// What one statement writes.
#[derive(Debug)]
pub(super) struct Batch {
    /// How many numbers of the feed it takes.
    pub count: i64,
    pub events: Value,
    pub lines: Value,
    pub steps: Value,
    pub state: Option<JobState>,
    pub error: Option<String>,
    pub wait: Wait,
}

impl Batch {
    /// Writes it all, if the lease is still ours; tells whether it was.
    pub async fn write(&self, conn: &mut PgConnection, lease: Lease) -> sqlx::Result<bool> {
        let over = self.state.is_some_and(JobState::is_over);
        let ended = over && self.state != Some(JobState::Stuck);
        let written = sqlx::query!(
            r#"
            with run as (
                update jobs set
                    feed_seq = feed_seq + $4,
                    state = coalesce($5, state),
                    error = coalesce($6, error),
                    waiting_for = case when $8 then $9 else waiting_for end,
                    waiting_since = case when not $8 then waiting_since when $9::text is not null then now() end,
                    retry_at = case when $8 then $14 else retry_at end,
                    state_seq = case when $8 or $5 is not null or $6 is not null then feed_seq + $4 else state_seq end,
                    ended_at = case when $10 then now() end,
                    owner = case when $7 then null else owner end,
                    lease_until = case when $7 then null else lease_until end
                where id = $1 and owner = $2 and generation = $3
                returning id, feed_seq - $4 as base
            ), events as (
                insert into job_events (job_id, node_id, kind, event, generation)
                select run.id, new.node_id, new.kind, new.event, $3
                from run, jsonb_to_recordset($11) as new (node_id bigint, kind text, event jsonb)
                on conflict do nothing
            ), lines as (
                insert into job_log (job_id, seq, at, step, stream, text)
                select run.id, run.base + new.seq, new.at, new.step, new.stream, new.text
                from run, jsonb_to_recordset($12)
                    as new (seq bigint, at timestamptz, step integer, stream text, text text)
            ), steps as (
                update job_steps set
                    state = new.state, started_at = new.started_at, ended_at = new.ended_at,
                    attempts = new.attempts, error = new.error, undo_error = new.undo_error,
                    progress_done = new.progress_done, progress_total = new.progress_total,
                    alive_at = new.alive_at, seq = run.base + new.seq
                from run, jsonb_to_recordset($13) as new (
                    index integer, state text, started_at timestamptz, ended_at timestamptz,
                    attempts integer, error text, undo_error text,
                    progress_done bigint, progress_total bigint, alive_at timestamptz, seq bigint
                )
                where job_steps.job_id = run.id and job_steps.index = new.index
            ), released as (
                delete from job_locks using run where job_locks.job_id = run.id and $10
            )
            select
                case when $4 > 0 then pg_notify('corpus_jobs', 'feed ' || run.id)::text end as feed,
                case when $10 then pg_notify('corpus_jobs', 'wake')::text end as wake
            from run
            "#,
            lease.job.0,
            lease.owner,
            lease.generation,
            self.count,
            self.state.map(JobState::as_str),
            self.error.as_deref(),
            over,
            self.wait != Wait::Same,
            self.wait.reason(),
            ended,
            self.events,
            self.lines,
            self.steps,
            self.wait.until(),
        )
        .fetch_optional(conn)
        .await?;
        Ok(written.is_some())
    }
}

/// Numbers lines and steps from 1 in the order they happened; a step changed more than once
/// counts at its last change, with its row as it is now.
pub(super) fn number(items: Vec<Item>, rows: &BTreeMap<i32, StepRow>) -> (Vec<LineRow>, Vec<StepRow>, i64) {
    let mut last = BTreeMap::new();
    for (position, item) in items.iter().enumerate() {
        if let Item::Step(index) = item {
            last.insert(*index, position);
        }
    }
    let (mut lines, mut steps, mut seq) = (Vec::new(), Vec::new(), 0);
    for (position, item) in items.into_iter().enumerate() {
        match item {
            Item::Line(Line { at, step, stream, text }) => {
                seq += 1;
                lines.push(LineRow { seq, at, step, stream, text });
            }
            Item::Step(index) if last.get(&index) == Some(&position) => {
                if let Some(row) = rows.get(&index) {
                    seq += 1;
                    steps.push(StepRow { seq, ..row.clone() });
                }
            }
            Item::Step(_) => {}
        }
    }
    (lines, steps, seq)
}

/// These rows are plain structs with string keys; `jsonb` takes no NUL, so none is passed on.
pub(super) fn to_json(rows: &impl Serialize) -> Value {
    let mut json = serde_json::to_value(rows).unwrap_or(Value::Array(Vec::new()));
    without_nul(&mut json);
    json
}

fn without_nul(json: &mut Value) {
    match json {
        Value::String(text) if text.contains('\0') => *text = clean(text),
        Value::Array(values) => values.iter_mut().for_each(without_nul),
        Value::Object(fields) => fields.values_mut().for_each(without_nul),
        _ => {}
    }
}
