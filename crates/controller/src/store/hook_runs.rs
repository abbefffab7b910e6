//! Runs of the operator's hooks: what each did last, and what of a step is to be undone.
//!
//! A run is kept before its hook begins, with the facts that it gets: so its undo is known also when the server
//! died meanwhile, and gets the same. Of each hook the last [`KEPT`] runs are kept, and those of jobs that may
//! still undo them.

use chrono::{DateTime, Utc};
use corpus_domain::{HookSide, HookState, HookUndo, JobId};
use serde_json::Value;
use sqlx::PgConnection;

use super::{word, word_opt};

/// Runs of a hook that are kept.
pub const KEPT: i64 = 50;

/// A run that begins.
#[derive(Debug)]
pub struct NewRun<'a> {
    /// The job.
    pub job: JobId,
    /// The step that it is a part of.
    pub step: &'a str,
    /// The hook, by its path below the folder.
    pub hook: &'a str,
    /// On which side of its stage.
    pub side: HookSide,
    /// The machine, by name.
    pub host: &'a str,
    /// Which run it is of this hook in this job on this machine, from 1.
    pub attempt: i32,
    /// What it gets.
    pub facts: &'a Value,
    /// Whether it has an undo.
    pub has_undo: bool,
}

/// How many runs of a hook there were in a step of a job on a machine. One that seems to run still does not: its
/// server ended.
pub async fn attempts(
    conn: &mut PgConnection,
    (job, step): (JobId, &str),
    hook: &str,
    host: &str,
) -> sqlx::Result<i32> {
    sqlx::query!(
        "update hook_runs set state = 'lost', ended_at = now()
         where job_id = $1 and step = $2 and hook = $3 and host = $4 and state = 'running'",
        job.0,
        step,
        hook,
        host,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query_scalar!(
        "select coalesce(max(attempt), 0) as \"attempts!\" from hook_runs
         where job_id = $1 and step = $2 and hook = $3 and host = $4",
        job.0,
        step,
        hook,
        host,
    )
    .fetch_one(conn)
    .await
}

/// Keeps a run that is about to begin, and forgets old ones of its hook.
pub async fn begin(conn: &mut PgConnection, new: &NewRun<'_>) -> sqlx::Result<i64> {
    let undo = new.has_undo.then_some(HookUndo::Wanted.as_str());
    let id = sqlx::query_scalar!(
        "insert into hook_runs (job_id, step, hook, side, host, attempt, facts, undo)
         values ($1, $2, $3, $4, $5, $6, $7, $8) returning id",
        new.job.0,
        new.step,
        new.hook,
        new.side.as_str(),
        new.host,
        new.attempt,
        new.facts,
        undo,
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from hook_runs old using jobs j
         where old.hook = $1 and j.id = old.job_id and (old.undo is distinct from 'wanted' or j.state in ('done', 'undone', 'abandoned'))
           and old.state <> 'running'
           and old.id < (select id from hook_runs where hook = $1 order by id desc offset $2 limit 1)",
        new.hook,
        KEPT - 1,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// Notes how a run ended. There is nothing to undo of one that never began.
pub async fn end(
    conn: &mut PgConnection,
    id: i64,
    (state, never_began): (HookState, bool),
    reason: Option<&str>,
    tail: &[String],
) -> sqlx::Result<()> {
    sqlx::query!(
        "update hook_runs set state = $2, reason = $3, tail = $4, ended_at = now(), undo = case when $5 then null else undo end
         where id = $1 and state = 'running'",
        id,
        state.as_str(),
        reason,
        tail,
        never_began,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A run whose undo is wanted.
#[derive(Debug)]
pub struct ToUndo {
    /// The run.
    pub id: i64,
    /// The hook.
    pub hook: String,
    /// The machine.
    pub host: String,
    /// What it got.
    pub facts: Value,
}

/// The runs of one side of a step that are to be undone, the last first; of a hook that ran several times on a
/// machine, the last one. Those that seem to run still do not.
pub async fn to_undo(conn: &mut PgConnection, job: JobId, step: &str, side: HookSide) -> sqlx::Result<Vec<ToUndo>> {
    sqlx::query!(
        "update hook_runs set state = 'lost', ended_at = now()
         where job_id = $1 and step = $2 and side = $3 and state = 'running'",
        job.0,
        step,
        side.as_str(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query_as!(
        ToUndo,
        "select r.id, r.hook, r.host, r.facts from hook_runs r
         where r.job_id = $1 and r.step = $2 and r.side = $3 and r.undo in ('wanted', 'failed')
           and not exists (select from hook_runs l where l.job_id = r.job_id and l.step = r.step and l.hook = r.hook
                           and l.host = r.host and l.undo in ('wanted', 'failed') and l.id > r.id)
         order by r.id desc",
        job.0,
        step,
        side.as_str(),
    )
    .fetch_all(conn)
    .await
}

/// Notes what became of the undo of all runs of a hook in a step on a machine.
pub async fn undone(
    conn: &mut PgConnection,
    (job, step): (JobId, &str),
    run: &ToUndo,
    undo: HookUndo,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update hook_runs set undo = $5
         where job_id = $1 and step = $2 and hook = $3 and host = $4 and undo in ('wanted', 'failed')",
        job.0,
        step,
        run.hook,
        run.host,
        undo.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A run as it is shown.
#[derive(Debug)]
pub struct RunRow {
    /// The hook.
    pub hook: String,
    /// The job that it was a part of.
    pub job: JobId,
    /// The job's title.
    pub title: String,
    /// The machine.
    pub host: String,
    /// Which run it was of the hook in this job.
    pub attempt: i32,
    /// What it came to.
    pub state: HookState,
    /// What became of its undo; none when it has none.
    pub undo: Option<HookUndo>,
    /// Why it failed.
    pub reason: Option<String>,
    /// The last lines of its output.
    pub tail: Vec<String>,
    /// When it began.
    pub began_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

/// The last run of each of these hooks.
pub async fn last(conn: &mut PgConnection, hooks: &[String]) -> sqlx::Result<Vec<RunRow>> {
    let ids = sqlx::query_scalar!(
        "select r.id from unnest($1::text[]) as asked (hook)
         cross join lateral (select id from hook_runs where hook = asked.hook order by id desc limit 1) r",
        hooks,
    );
    let ids = ids.fetch_all(&mut *conn).await?;
    shown(conn, &ids).await
}

/// The last runs of a hook, the newest first.
pub async fn of_hook(conn: &mut PgConnection, hook: &str, limit: i64) -> sqlx::Result<Vec<RunRow>> {
    let ids = sqlx::query_scalar!("select id from hook_runs where hook = $1 order by id desc limit $2", hook, limit,);
    let ids = ids.fetch_all(&mut *conn).await?;
    shown(conn, &ids).await
}

async fn shown(conn: &mut PgConnection, ids: &[i64]) -> sqlx::Result<Vec<RunRow>> {
    let rows = sqlx::query!(
        "select r.hook, r.job_id, j.title, r.host, r.attempt, r.state, r.undo, r.reason, r.tail,
                r.began_at, r.ended_at
         from hook_runs r join jobs j on j.id = r.job_id where r.id = any($1) order by r.id desc",
        ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(RunRow {
            hook: row.hook,
            job: JobId(row.job_id),
            title: row.title,
            host: row.host,
            attempt: row.attempt,
            state: word(&row.state)?,
            undo: word_opt(row.undo.as_deref())?,
            reason: row.reason,
            tail: row.tail,
            began_at: row.began_at,
            ended_at: row.ended_at,
        })
    });
    rows.collect()
}
