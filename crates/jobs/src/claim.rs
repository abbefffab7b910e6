//! Taking jobs: waiting ones in the order of the queue, abandoned leases from whoever had them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::{JobId, JobKind, ProjectId, UserId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::error::JobsError;
use super::queue::{Entry, Lock, LockMode, Verdict, decide, share};
use super::writer::Lease;
use corpus_database::Db;

/// Serializes the decision on the queue among all servers of one database.
const QUEUE_KEY: i64 = 0x636f_7270_7573;
/// Waiting jobs of a project that are looked at, the first ones: more than get a place at once.
const LOOKED_AT: i64 = 300;
/// What the others are told to wait for.
const WAITS_FOR_OWN_PROJECT: &str = "the many jobs of its project before it";
/// What a job waits for that could run.
const NO_SERVER: &str = "a free server";
/// The same when its project runs as many as it may.
const SHARE: &str = "a free place: its project runs as many jobs as it may at once";

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

/// A job that does not begin, the one that it waits for, and what for.
type Waiting = (JobId, Option<JobId>, String);

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

    /// Takes the waiting jobs that may run and get one of the places of this server, with all their
    /// locks, and notes on the others what they wait for.
    pub async fn claim(&self, capacity: usize) -> Result<Vec<Claimed>, JobsError> {
        let mut transaction = self.db.begin().await?;
        sqlx::query!("select pg_advisory_xact_lock($1)::text as locked", QUEUE_KEY)
            .fetch_one(&mut **transaction)
            .await?;
        let queue = self.load(&mut transaction).await?;
        let (run, wait) = self.plan(capacity, &queue);
        let claimed = self.take(&mut transaction, &run).await?;
        explain(&mut transaction, &wait).await?;
        transaction.commit().await?;
        Ok(claimed)
    }

    /// Those that begin, and what the others wait for.
    fn plan(&self, capacity: usize, queue: &[Queued]) -> (Vec<Uuid>, Vec<Waiting>) {
        let entries: Vec<Entry> = queue.iter().map(|queued| queued.entry.clone()).collect();
        let by_job: HashMap<JobId, &Queued> = queue.iter().map(|queued| (queued.entry.job, queued)).collect();
        let mut running: HashMap<_, usize> = HashMap::new();
        for entry in entries.iter().filter(|entry| entry.runs_here) {
            *running.entry(entry.project).or_default() += 1;
        }
        let full = running.values().sum::<usize>() >= capacity;
        let (mut ready, mut wait) = (Vec::new(), Vec::new());
        for (job, verdict) in decide(&entries) {
            let known = by_job.get(&job).filter(|queued| self.kinds.contains(&queued.kind));
            match (verdict, known) {
                (Verdict::Run, Some(queued)) => ready.push((job, queued.entry.project)),
                (Verdict::Run, None) => wait.push((job, None, NO_SERVER.to_owned())),
                (Verdict::Wait(blocker), _) => wait.push((job, Some(blocker), reason(&by_job, blocker))),
            }
        }
        let run = share(capacity, running, &ready);
        let begins: HashSet<JobId> = run.iter().copied().collect();
        for (job, project) in ready.iter().filter(|(job, _)| !begins.contains(job)) {
            let why = if full || project.is_none() { NO_SERVER } else { SHARE };
            wait.push((*job, None, why.to_owned()));
        }
        (run.into_iter().map(|job| job.0).collect(), wait)
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

impl Claimant {
    /// All that runs, and of what waits the first jobs of each project.
    async fn load(&self, connection: &mut PgConnection) -> Result<Vec<Queued>, JobsError> {
        let rows = sqlx::query!(
            r#"
            with open as (
                select id, title, kind, state, owner, project_id, queue_order, waiting_for,
                    row_number() over (partition by project_id, state = 'waiting' order by queue_order) as place
                from jobs where state in ('waiting', 'running', 'undoing', 'stuck')
            ), later as (
                update jobs set waiting_for = $3, blocked_by = null, waiting_since = coalesce(jobs.waiting_since, now()),
                    feed_seq = feed_seq + 1, state_seq = feed_seq + 1
                from open
                where open.id = jobs.id and open.state = 'waiting' and open.place > $2 and open.waiting_for is distinct from $3
            )
            select open.id, open.title, open.kind, open.state, open.project_id,
                coalesce(open.owner = $1 and open.state in ('running', 'undoing'), false) as "runs_here!",
                coalesce(array_agg(lock.resource) filter (where lock.resource is not null), '{}') as "resources!",
                coalesce(array_agg(lock.mode) filter (where lock.mode is not null), '{}') as "modes!"
            from open left join job_locks lock on lock.job_id = open.id
            where open.state <> 'waiting' or open.place <= $2
            group by open.id, open.title, open.kind, open.state, open.project_id, open.owner, open.queue_order
            order by open.queue_order
            "#,
            self.owner,
            LOOKED_AT,
            WAITS_FOR_OWN_PROJECT,
        )
        .fetch_all(connection)
        .await?;
        let queued = rows.into_iter().map(|row| Queued {
            entry: Entry {
                job: JobId(row.id),
                project: row.project_id.map(ProjectId),
                holds: row.state != "waiting",
                runs_here: row.runs_here,
                locks: row.resources.into_iter().zip(&row.modes).map(|(resource, mode)| lock(resource, mode)).collect(),
            },
            title: row.title,
            kind: row.kind,
            stuck: row.state == "stuck",
        });
        Ok(queued.collect())
    }
}

fn lock(resource: String, mode: &str) -> Lock {
    Lock { resource, mode: if mode == "shared" { LockMode::Shared } else { LockMode::Exclusive } }
}

fn reason(queue: &HashMap<JobId, &Queued>, blocker: JobId) -> String {
    match queue.get(&blocker) {
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
