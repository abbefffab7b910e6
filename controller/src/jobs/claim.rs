//! Taking jobs: waiting ones in the order of the queue, abandoned leases from whoever had them.

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::{JobId, JobKind, UserId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::error::JobsError;
use super::queue::{Entry, Lock, LockMode, Verdict, decide};
use super::writer::Lease;
use crate::store::Db;

/// Serializes the decision on the queue among all servers of one database.
const QUEUE_KEY: i64 = 0x636f_7270_7573;

/// A job that this server just took.
#[derive(Debug)]
pub(super) struct Claimed {
    pub lease: Lease,
    pub kind: JobKind,
    pub params: Value,
    pub dag: Value,
    pub created_by: Option<UserId>,
    pub cancel_requested_at: Option<DateTime<Utc>>,
}

/// What there is to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub waiting: bool,
    pub ownerless: bool,
}

/// Who takes jobs, and which.
#[derive(Debug, Clone)]
pub(super) struct Claimant {
    pub db: Db,
    pub owner: Uuid,
    pub lease: Duration,
    pub kinds: Vec<String>,
}

/// Rows with the columns of a job to [`Claimed`].
macro_rules! claimed {
    ($self:ident, $rows:expr) => {
        $rows
            .into_iter()
            .map(|row| {
                Ok(Claimed {
                    lease: Lease { job: JobId(row.id), owner: $self.owner, generation: row.generation },
                    kind: row.kind.parse()?,
                    params: row.params,
                    dag: row.dag,
                    created_by: row.created_by.map(UserId),
                    cancel_requested_at: row.cancel_requested_at,
                })
            })
            .collect::<Result<Vec<_>, JobsError>>()
    };
}

pub(super) use claimed;

struct Queued {
    entry: Entry,
    title: String,
    kind: String,
    stuck: bool,
}

impl Claimant {
    /// Whether jobs wait, and whether leases ran out; one cheap statement.
    pub async fn look(&self) -> Result<Found, JobsError> {
        let found = sqlx::query_as!(
            Found,
            r#"
            select coalesce(bool_or(state = 'waiting'), false) as "waiting!",
                coalesce(bool_or(state in ('running', 'undoing') and (owner is null or lease_until < now())), false)
                    as "ownerless!"
            from jobs
            where state in ('waiting', 'running', 'undoing', 'stuck') and kind = any($1)
            "#,
            &self.kinds,
        )
        .fetch_one(&mut *self.db.acquire().await?)
        .await?;
        Ok(found)
    }

    /// Takes up to `room` waiting jobs that may run, with all their locks, and notes on the
    /// others what they wait for.
    pub async fn claim(&self, room: usize) -> Result<Vec<Claimed>, JobsError> {
        let mut transaction = self.db.begin().await?;
        sqlx::query!("select pg_advisory_xact_lock($1)::text as locked", QUEUE_KEY)
            .fetch_one(&mut **transaction)
            .await?;
        let queue = load(&mut transaction).await?;
        let entries: Vec<Entry> = queue.iter().map(|queued| queued.entry.clone()).collect();
        let (mut run, mut wait) = (Vec::new(), Vec::new());
        for (job, verdict) in decide(&entries) {
            let known = queue.iter().any(|queued| queued.entry.job == job && self.kinds.contains(&queued.kind));
            match verdict {
                Verdict::Run if known && run.len() < room => run.push(job.0),
                Verdict::Run => wait.push((job, None, "a free server".to_owned())),
                Verdict::Wait(blocker) => wait.push((job, Some(blocker), reason(&queue, blocker))),
            }
        }
        let claimed = self.take(&mut transaction, &run).await?;
        explain(&mut transaction, &wait).await?;
        transaction.commit().await?;
        Ok(claimed)
    }

    async fn take(&self, connection: &mut PgConnection, jobs: &[Uuid]) -> Result<Vec<Claimed>, JobsError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let rows = sqlx::query!(
            r#"
            with taken as (
                update jobs set state = 'running', owner = $1, generation = generation + 1,
                    lease_until = now() + make_interval(secs => $2), started_at = coalesce(started_at, clock_timestamp()),
                    waiting_for = null, waiting_since = null, retry_at = null, blocked_by = null,
                    feed_seq = feed_seq + 1, state_seq = feed_seq + 1
                where id = any($3) and state = 'waiting'
                returning id, generation, kind, params, dag, created_by, cancel_requested_at
            ), held as (
                update job_locks set held_since = clock_timestamp() from taken where job_locks.job_id = taken.id
            )
            select taken.*, pg_notify('corpus_jobs', 'feed ' || id)::text as notified from taken
            "#,
            self.owner,
            self.lease.as_secs_f64(),
            jobs,
        )
        .fetch_all(connection)
        .await?;
        claimed!(self, rows)
    }
}

async fn load(connection: &mut PgConnection) -> Result<Vec<Queued>, JobsError> {
    let rows = sqlx::query!(
        r#"
        select jobs.id, jobs.title, jobs.kind, jobs.state,
            coalesce(array_agg(lock.resource) filter (where lock.resource is not null), '{}') as "resources!",
            coalesce(array_agg(lock.mode) filter (where lock.mode is not null), '{}') as "modes!"
        from jobs left join job_locks lock on lock.job_id = jobs.id
        where jobs.state in ('waiting', 'running', 'undoing', 'stuck')
        group by jobs.id
        order by jobs.queue_order
        "#,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Queued {
            entry: Entry {
                job: JobId(row.id),
                holds: row.state != "waiting",
                locks: row.resources.into_iter().zip(&row.modes).map(|(resource, mode)| lock(resource, mode)).collect(),
            },
            title: row.title,
            kind: row.kind,
            stuck: row.state == "stuck",
        })
        .collect())
}

fn lock(resource: String, mode: &str) -> Lock {
    Lock { resource, mode: if mode == "shared" { LockMode::Shared } else { LockMode::Exclusive } }
}

fn reason(queue: &[Queued], blocker: JobId) -> String {
    match queue.iter().find(|queued| queued.entry.job == blocker) {
        Some(queued) if queued.stuck => format!("an operator to decide on “{}”, which is stuck", queued.title),
        Some(queued) => format!("“{}” to end", queued.title),
        None => "another job to end".to_owned(),
    }
}

async fn explain(connection: &mut PgConnection, waiting: &[(JobId, Option<JobId>, String)]) -> Result<(), JobsError> {
    if waiting.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = waiting.iter().map(|(job, ..)| job.0).collect();
    let blockers: Vec<Option<Uuid>> = waiting.iter().map(|(_, blocker, _)| blocker.map(|job| job.0)).collect();
    let reasons: Vec<String> = waiting.iter().map(|(.., reason)| reason.clone()).collect();
    sqlx::query!(
        r#"
        with changed as (
            update jobs set waiting_for = new.reason, blocked_by = new.blocker,
                waiting_since = coalesce(waiting_since, now()),
                feed_seq = feed_seq + 1, state_seq = feed_seq + 1
            from unnest($1::uuid[], $2::uuid[], $3::text[]) as new (id, blocker, reason)
            where jobs.id = new.id and state = 'waiting'
                and (waiting_for, blocked_by) is distinct from (new.reason, new.blocker)
            returning jobs.id
        )
        select pg_notify('corpus_jobs', 'feed ' || id)::text as notified from changed
        "#,
        &ids,
        blockers as _,
        &reasons,
    )
    .fetch_all(connection)
    .await?;
    Ok(())
}
