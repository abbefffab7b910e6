//! Adding what a node has counted to what is there.
//!
//! What a node says is added up in memory first: one row of an environment and a minute, however many names it has. Rows
//! are written in one order by all, so that two readings never wait for each other in a ring.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use corpus_domain::{Environment, NodeId, ProjectId};
use corpus_protocol::{Latency, RoutedName, TrafficMinute, TrafficReading};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::super::word;
use super::{DAYS_OF_MINUTES, counted_to};

/// As many errors of an environment are kept.
pub(super) const KEPT_ERRORS: usize = 50;
/// No proxy counts more of anything in a minute.
const MOST: u64 = 1 << 44;

/// Whose a name is.
type Owner = (ProjectId, Environment);

/// What was counted for an environment in a minute, or in an hour.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Sum {
    requests: u64,
    statuses: [u64; 5],
    bytes_in: u64,
    bytes_out: u64,
    latency: Latency,
}

impl Sum {
    fn add(&mut self, minute: &TrafficMinute) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more.min(MOST));
        add(&mut self.requests, minute.requests);
        self.statuses.iter_mut().zip(minute.statuses).for_each(|(sum, more)| add(sum, more));
        add(&mut self.bytes_in, minute.bytes_in);
        add(&mut self.bytes_out, minute.bytes_out);
        self.latency.merge(&minute.latency);
    }

    fn row(&self, (project, environment): Owner, at: DateTime<Utc>) -> Value {
        let latency: Vec<u64> = self.latency.counts().iter().map(|count| (*count).min(MOST)).collect();
        json!({
            "project_id": project, "environment": environment, "at": at, "requests": stored(self.requests),
            "statuses": self.statuses.map(stored), "bytes_in": stored(self.bytes_in),
            "bytes_out": stored(self.bytes_out), "latency": latency,
        })
    }
}

/// What every sum in the store stays below.
fn stored(number: u64) -> u64 {
    number.min(1 << 50)
}

/// Sums of environments by the time at which they begin, in the order in which rows are written.
type Sums = BTreeMap<(Owner, DateTime<Utc>), Sum>;

/// What is taken of a reading.
#[derive(Debug, Default)]
struct Taken {
    minutes: Sums,
    hours: Sums,
    errors: BTreeMap<Owner, Vec<Value>>,
    /// When the last minute began that was taken.
    last: Option<DateTime<Utc>>,
}

impl Taken {
    /// What of a reading is new: later than what is counted, of minutes that are over by our clock and not too old. The
    /// rest of it is no honest node's, or comes once it is time.
    fn of(
        reading: &TrafficReading,
        owners: &HashMap<RoutedName, Owner>,
        (after, now): (Option<DateTime<Utc>>, DateTime<Utc>),
    ) -> Self {
        let mut taken = Self::default();
        let oldest = now - TimeDelta::days(DAYS_OF_MINUTES.into());
        for minute in &reading.minutes {
            let Some(at) = began(minute) else { continue };
            if at < oldest || at > now || after.is_some_and(|after| at <= after) {
                continue;
            }
            taken.last = taken.last.max(Some(at));
            let Some(owner) = owners.get(&minute.name) else { continue };
            taken.minutes.entry((*owner, at)).or_default().add(minute);
            let hour = at.duration_trunc(TimeDelta::hours(1)).unwrap_or(at);
            taken.hours.entry((*owner, hour)).or_default().add(minute);
            taken.errors.entry(*owner).or_default().extend(errors(minute, *owner, at));
        }
        for errors in taken.errors.values_mut() {
            // Minutes come oldest first.
            errors.drain(..errors.len().saturating_sub(KEPT_ERRORS));
        }
        taken
    }
}

/// When a minute began; none of what is no minute.
fn began(minute: &TrafficMinute) -> Option<DateTime<Utc>> {
    let at_ms = i64::try_from(minute.at_ms).ok().filter(|at| at % 60_000 == 0)?;
    DateTime::from_timestamp_millis(at_ms)
}

fn errors(minute: &TrafficMinute, (project, environment): Owner, began: DateTime<Utc>) -> impl Iterator<Item = Value> {
    minute.errors.iter().filter(|error| error.status >= 500).map(move |error| {
        let at = i64::try_from(error.at_ms).ok().and_then(DateTime::from_timestamp_millis).unwrap_or(began);
        json!({
            "project_id": project, "environment": environment,
            "at": at.clamp(began, began + TimeDelta::minutes(1)), "name": minute.name.name,
            "wildcard": minute.name.wildcard, "method": error.method, "path": error.path, "status": error.status,
            "took_ms": error.took_ms.min(MOST), "cause": error.cause,
        })
    })
}

/// The statement that adds sums to a table; both have the same columns.
macro_rules! added {
    ($to:literal, $sums:expr) => {
        sqlx::query!(
            "insert into "
                + $to
                + " as t (project_id, environment, at, requests, statuses, bytes_in, bytes_out, latency)
             select s.project_id, s.environment, s.at, s.requests, s.statuses, s.bytes_in, s.bytes_out, s.latency
             from jsonb_to_recordset($1) as s (project_id uuid, environment text, at timestamptz, requests bigint,
                 statuses bigint[], bytes_in bigint, bytes_out bigint, latency bigint[])
             order by s.project_id, s.environment, s.at
             on conflict (project_id, environment, at) do update set
                 requests = least(t.requests + excluded.requests, 1125899906842624),
                 statuses = counts_added(t.statuses, excluded.statuses),
                 bytes_in = least(t.bytes_in + excluded.bytes_in, 1125899906842624),
                 bytes_out = least(t.bytes_out + excluded.bytes_out, 1125899906842624),
                 latency = counts_added(t.latency, excluded.latency)",
            rows($sums),
        )
    };
}

/// Adds a reading that was asked for after `after` and answered at `now`. Tells how far it goes; nothing of it is added
/// when another server was first.
pub async fn keep(
    conn: &mut PgConnection,
    node: NodeId,
    (after, now): (Option<DateTime<Utc>>, DateTime<Utc>),
    reading: &TrafficReading,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    sqlx::query!("select node_id from traffic_read where node_id = $1 for update", node.0)
        .fetch_optional(&mut *conn)
        .await?;
    if counted_to(conn, node).await? != after {
        return Ok(None);
    }
    let owners = owners(conn, node).await?;
    let taken = Taken::of(reading, &owners, (after, now));
    added!("traffic_minutes", &taken.minutes).execute(&mut *conn).await?;
    added!("traffic_hours", &taken.hours).execute(&mut *conn).await?;
    add_errors(conn, &taken.errors).await?;
    let lost = i64::try_from(reading.lost_lines.min(MOST)).unwrap_or_default();
    sqlx::query!(
        "update traffic_read set counted_to = coalesce($2, counted_to), read_at = $3,
             lost_lines = least(lost_lines + $4, 1125899906842624),
             lost_at = case when $4 > 0 then $3 else lost_at end
         where node_id = $1",
        node.0,
        taken.last,
        now,
        lost,
    )
    .execute(conn)
    .await?;
    Ok(taken.last)
}

/// Whose the names are that a node serves.
async fn owners(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<HashMap<RoutedName, Owner>> {
    let rows = sqlx::query!(
        r#"select name as "name!", wildcard as "wildcard!", project_id as "project_id!",
               environment as "environment!" from names_on_nodes where node_id = $1"#,
        node.0
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let name = RoutedName { name: word(&row.name)?, wildcard: row.wildcard };
        Ok((name, (ProjectId(row.project_id), word(&row.environment)?)))
    });
    rows.collect()
}

fn rows(sums: &Sums) -> Value {
    sums.iter().map(|((owner, at), sum)| sum.row(*owner, *at)).collect()
}

/// Keeps errors in place of those that are older than the newest of their environment.
async fn add_errors(conn: &mut PgConnection, errors: &BTreeMap<Owner, Vec<Value>>) -> sqlx::Result<()> {
    let new: Value = errors.values().flatten().cloned().collect();
    let of: Vec<Uuid> = errors.keys().map(|(project, _)| project.0).collect();
    let which: Vec<String> = errors.keys().map(|(_, environment)| environment.to_string()).collect();
    sqlx::query!(
        "insert into traffic_errors (project_id, environment, at, name, wildcard, method, path, status, took_ms, cause)
         select e.project_id, e.environment, e.at, e.name, e.wildcard, e.method, e.path, e.status, e.took_ms, e.cause
         from jsonb_to_recordset($1) as e (project_id uuid, environment text, at timestamptz, name text,
             wildcard boolean, method text, path text, status int, took_ms bigint, cause text)
         order by e.at",
        new,
    )
    .execute(&mut *conn)
    .await?;
    let kept = i64::try_from(KEPT_ERRORS).unwrap_or_default();
    sqlx::query!(
        "delete from traffic_errors where id in (
             select e.id from unnest($1::uuid[], $2::text[]) as o (project_id, environment) cross join lateral (
                 select id from traffic_errors t
                 where t.project_id = o.project_id and t.environment = o.environment
                 order by t.at desc, t.id desc offset $3) e)",
        &of,
        &which,
        kept,
    )
    .execute(conn)
    .await
    .map(drop)
}
