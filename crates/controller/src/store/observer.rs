//! Who of several servers writes what a node shows.
//!
//! Each server reads each node over its own line, since it needs that line anyway. Whoever gets
//! an answer writes it if nobody else has the node's lease, and has the lease then: so there is
//! one writer, and another takes over when its answers stop. That a node is unreachable is
//! written only when no server has had an answer for a while: a server whose own line is broken
//! never speaks for the others. Another host key is written at once, and kept against answers
//! that come over connections made before the change.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::{NodeId, Reachability};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::nodes::Observation;

/// Longer than the interval of readings: an observer that answers keeps its lease.
const LEASE: Duration = Duration::from_secs(8);
/// Without an answer to anyone for this long a node may be called unreachable: by then another
/// server has had the time to take over (the lease, and one interval of readings).
const SILENCE: Duration = Duration::from_secs(14);

/// A node of which this server's observation was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Which.
    pub id: NodeId,
    /// Whether it answers and was away before.
    pub came_back: bool,
}

/// What of a node's observations counts: the last, and the last reading.
#[derive(Default)]
struct Last {
    reading: Option<(Value, DateTime<Utc>)>,
    believed: String,
    reason: Option<String>,
}

/// Keeps what this server observed, of the nodes of which it may speak, and tells which they
/// were. A row that someone else works on now is left to the next observation, so that nothing
/// waits here and nothing can deadlock. A node that comes back is due for a check.
pub async fn keep(conn: &mut PgConnection, observations: &[Observation], observer: Uuid) -> sqlx::Result<Vec<Kept>> {
    let last = last_of_each(observations)?;
    let ids: Vec<Uuid> = last.keys().map(|id| id.0).collect();
    let (mut readings, mut times, mut beliefs, mut reasons) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for one in last.into_values() {
        let (reading, at) = one.reading.unzip();
        readings.push(reading);
        times.push(at);
        beliefs.push(one.believed);
        reasons.push(one.reason);
    }
    let rows = sqlx::query!(
        r#"
        with seen as (
            select *, believed = 'host_key_changed' as other_key, reading is not null as answered
            from unnest($1::uuid[], $2::jsonb[], $3::timestamptz[], $4::text[], $5::text[])
                as seen (id, reading, at, believed, reason)
        ), ours as (
            select nodes.id, nodes.reachability as before from nodes join seen on seen.id = nodes.id
            where seen.other_key or (
                (nodes.observer is null or nodes.observer = $6 or nodes.observed_until < now())
                and (seen.answered or seen.believed <> 'unreachable' or nodes.reading_at is null
                    or nodes.reading_at < now() - make_interval(secs => $8)))
            for no key update of nodes skip locked
        ), now_is as (
            select seen.*, ours.before, case
                when seen.answered or seen.believed in ('unreachable', 'host_key_changed') then seen.believed
                else ours.before end as after
            from seen join ours on ours.id = seen.id
        )
        update nodes set
            reading = coalesce(now_is.reading, nodes.reading),
            reading_at = case when answered then least(at, now()) else nodes.reading_at end,
            reachability = after,
            reachability_since = case when before = after then reachability_since else now() end,
            check_due_at = case when before = after then check_due_at else now() end,
            reachability_reason = reason,
            observer = case when answered or other_key then $6 else nodes.observer end,
            observed_until =
                case when answered or other_key then now() + make_interval(secs => $7) else observed_until end
        from now_is where nodes.id = now_is.id
        returning nodes.id, after = 'reachable' and before in ('unreachable', 'host_key_changed') as "came_back!"
        "#,
        &ids,
        &readings as _,
        &times as _,
        &beliefs,
        &reasons as _,
        observer,
        LEASE.as_secs_f64(),
        SILENCE.as_secs_f64(),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| Kept { id: NodeId(row.id), came_back: row.came_back }).collect())
}

fn last_of_each(observations: &[Observation]) -> sqlx::Result<BTreeMap<NodeId, Last>> {
    let mut all: BTreeMap<NodeId, Last> = BTreeMap::new();
    for one in observations {
        let last = all.entry(one.node).or_default();
        last.believed = one.reachability.to_string();
        last.reason = one.outcome.as_ref().err().map(ToString::to_string);
        match &one.outcome {
            Ok(reading) => {
                let json = serde_json::to_value(reading).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
                last.reading = Some((json, one.at));
            }
            // An answer over a connection from before the change is none.
            Err(_) if one.reachability == Reachability::HostKeyChanged => last.reading = None,
            Err(_) => {}
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use corpus_domain::Bytes;
    use corpus_protocol::{Reading, Storage};
    use sqlx::PgPool;

    use super::*;
    use crate::nodes::NodeError;

    const NODE: NodeId = NodeId(Uuid::from_u128(7));
    const ONE: Uuid = Uuid::from_u128(1);
    const TWO: Uuid = Uuid::from_u128(2);

    async fn node(pool: &PgPool) {
        let insert =
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
            values ($1, '192.0.2.1', 22, 'root', 'ssh-ed25519 AAAA', '{}', 'ready', '10.5.0.1/16', 'lxcbr1')";
        sqlx::query(insert).bind(NODE.0).execute(pool).await.unwrap();
    }

    /// As if so many seconds had passed.
    async fn later(pool: &PgPool, seconds: i32) {
        let shift = "update nodes set reading_at = reading_at - make_interval(secs => $1),
            observed_until = observed_until - make_interval(secs => $1)";
        sqlx::query(shift).bind(f64::from(seconds)).execute(pool).await.unwrap();
    }

    fn reading() -> Reading {
        let storage = Storage { total: Bytes(1), used: Bytes(1), promised: Bytes(0) };
        let (memory_total, memory_used) = (Bytes(1), Bytes(1));
        let (guests, members) = (Vec::new(), Vec::new());
        Reading {
            load: 0.0,
            uptime_s: 1,
            memory_total,
            memory_used,
            storage,
            guests,
            images: Vec::new(),
            members,
            clock_ms: None,
        }
    }

    async fn observes(
        pool: &PgPool,
        observer: Uuid,
        outcome: Result<Box<Reading>, NodeError>,
        reachability: Reachability,
    ) -> Option<bool> {
        let elapsed = Duration::from_millis(1);
        let one = Observation { node: NODE, at: Utc::now(), elapsed, outcome, reachability, changed: false };
        let kept = keep(&mut pool.acquire().await.unwrap(), &[one], observer).await.unwrap();
        kept.first().map(|kept| kept.came_back)
    }

    async fn answers(pool: &PgPool, observer: Uuid) -> Option<bool> {
        observes(pool, observer, Ok(Box::new(reading())), Reachability::Reachable).await
    }

    async fn misses(pool: &PgPool, observer: Uuid, believed: Reachability) {
        observes(pool, observer, Err(NodeError::Refused { host: "n:22".to_owned() }), believed).await;
    }

    async fn shown(pool: &PgPool) -> String {
        sqlx::query_scalar("select reachability from nodes").fetch_one(pool).await.unwrap()
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn one_server_writes_and_another_takes_over_when_it_falls_silent(pool: PgPool) {
        node(&pool).await;
        assert_eq!(answers(&pool, ONE).await, Some(false));
        assert_eq!(answers(&pool, TWO).await, None, "the first has the lease");
        later(&pool, 5).await;
        assert_eq!(answers(&pool, ONE).await, Some(false), "renewed");
        later(&pool, 5).await;
        assert_eq!(answers(&pool, TWO).await, None);
        later(&pool, 5).await;
        assert_eq!(answers(&pool, TWO).await, Some(false), "lapsed");
        assert_eq!(answers(&pool, ONE).await, None);
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn a_server_with_a_broken_line_does_not_speak_for_the_others(pool: PgPool) {
        node(&pool).await;
        answers(&pool, ONE).await;
        misses(&pool, TWO, Reachability::Unreachable).await;
        assert_eq!(shown(&pool).await, "reachable", "another had an answer");
        later(&pool, 9).await;
        misses(&pool, ONE, Reachability::Unreachable).await;
        assert_eq!(shown(&pool).await, "reachable", "another may have an answer yet");
        answers(&pool, TWO).await;
        later(&pool, 7).await;
        misses(&pool, ONE, Reachability::Unreachable).await;
        assert_eq!(shown(&pool).await, "reachable");
        later(&pool, 8).await;
        misses(&pool, ONE, Reachability::Unreachable).await;
        assert_eq!(shown(&pool).await, "unreachable", "nobody had an answer");
        misses(&pool, TWO, Reachability::Reachable).await;
        assert_eq!(shown(&pool).await, "unreachable", "a miss is no answer");
        assert_eq!(answers(&pool, TWO).await, Some(true), "it was away");
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn another_host_key_is_said_at_once_and_kept(pool: PgPool) {
        node(&pool).await;
        answers(&pool, ONE).await;
        misses(&pool, TWO, Reachability::HostKeyChanged).await;
        assert_eq!(shown(&pool).await, "host_key_changed");
        assert_eq!(answers(&pool, ONE).await, None, "its connection is older than the change");
    }
}
