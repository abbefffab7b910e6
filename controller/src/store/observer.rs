//! Who of several servers writes what a node shows.
//!
//! Each server reads each node over its own line, since it needs that line anyway. Whoever gets
//! an answer writes it if nobody else has the node's lease, and has the lease then: so there is
//! one writer, and another takes over when its answers stop. That a node is unreachable is
//! written only when no server has had an answer for a while: a server whose own line is broken
//! never speaks for the others. Another host key is written at once, and kept against answers
//! that come over connections made before the change.

use std::time::Duration;

use corpus_domain::{NodeId, Reachability};
use corpus_protocol::Reading;
use sqlx::PgConnection;
use uuid::Uuid;

/// Longer than the interval of readings: an observer that answers keeps its lease.
const LEASE: Duration = Duration::from_secs(8);
/// Without an answer to anyone for this long a node may be called unreachable: by then another
/// server has had the time to take over (the lease, and one interval of readings).
const SILENCE: Duration = Duration::from_secs(14);

/// Keeps a reading unless another server writes this node's; tells then whether the node was away before.
pub async fn answered(
    conn: &mut PgConnection,
    id: NodeId,
    reading: &Reading,
    observer: Uuid,
) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar!(
        r#"
        update nodes set reading = $2, reading_at = now(), observer = $3,
            observed_until = now() + make_interval(secs => $4)
        where id = $1 and (observer is null or observer = $3 or observed_until < now())
        returning reachability in ('unreachable', 'host_key_changed') as "was_away!"
        "#,
        id.0,
        serde_json::to_value(reading).map_err(|error| sqlx::Error::Encode(Box::new(error)))?,
        observer,
        LEASE.as_secs_f64(),
    )
    .fetch_optional(conn)
    .await
}

/// Keeps that a reading failed, as far as this server may speak; a failure never makes a node reachable.
pub async fn missed(
    conn: &mut PgConnection,
    id: NodeId,
    believed: Reachability,
    reason: &str,
    observer: Uuid,
) -> sqlx::Result<()> {
    let (down, other_key) = (believed == Reachability::Unreachable, believed == Reachability::HostKeyChanged);
    sqlx::query!(
        r#"
        update nodes set reachability_reason = $2,
            reachability = case when $3 or $4 then $5 else reachability end,
            reachability_since = case when ($3 or $4) and reachability <> $5 then now() else reachability_since end,
            observer = case when $4 then $6 else observer end,
            observed_until = case when $4 then now() + make_interval(secs => $7) else observed_until end
        where id = $1 and ($4 or (
            (observer is null or observer = $6 or observed_until < now())
            and (not $3 or reading_at is null or reading_at < now() - make_interval(secs => $8))))
        "#,
        id.0,
        reason,
        down,
        other_key,
        believed.as_str(),
        observer,
        LEASE.as_secs_f64(),
        SILENCE.as_secs_f64(),
    )
    .execute(conn)
    .await
    .map(drop)
}

#[cfg(test)]
mod tests {
    use corpus_domain::Bytes;
    use corpus_protocol::Storage;
    use sqlx::PgPool;

    use super::*;

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

    async fn answers(pool: &PgPool, observer: Uuid) -> Option<bool> {
        let storage = Storage { total: Bytes(1), used: Bytes(1) };
        let reading = Reading {
            load: 0.0,
            uptime_s: 1,
            memory_total: Bytes(1),
            memory_used: Bytes(1),
            storage,
            guests: Vec::new(),
        };
        answered(&mut pool.acquire().await.unwrap(), NODE, &reading, observer).await.unwrap()
    }

    async fn misses(pool: &PgPool, observer: Uuid, believed: Reachability) {
        missed(&mut pool.acquire().await.unwrap(), NODE, believed, "no answer", observer).await.unwrap();
    }

    async fn shown(pool: &PgPool) -> String {
        sqlx::query_scalar("select reachability from nodes").fetch_one(pool).await.unwrap()
    }

    #[sqlx::test(migrations = "../migrations")]
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

    #[sqlx::test(migrations = "../migrations")]
    async fn a_server_with_a_broken_line_does_not_speak_for_the_others(pool: PgPool) {
        node(&pool).await;
        answers(&pool, ONE).await;
        misses(&pool, TWO, Reachability::Unreachable).await;
        assert_eq!(shown(&pool).await, "unknown", "another had an answer");
        later(&pool, 9).await;
        misses(&pool, ONE, Reachability::Unreachable).await;
        assert_eq!(shown(&pool).await, "unknown", "another may have an answer yet");
        answers(&pool, TWO).await;
        later(&pool, 7).await;
        misses(&pool, ONE, Reachability::Unreachable).await;
        assert_eq!(shown(&pool).await, "unknown");
        later(&pool, 8).await;
        misses(&pool, ONE, Reachability::Unreachable).await;
        assert_eq!(shown(&pool).await, "unreachable", "nobody had an answer");
        misses(&pool, TWO, Reachability::Reachable).await;
        assert_eq!(shown(&pool).await, "unreachable", "a miss is no answer");
        assert_eq!(answers(&pool, TWO).await, Some(true), "it was away");
    }

    #[sqlx::test(migrations = "../migrations")]
    async fn another_host_key_is_said_at_once_and_kept(pool: PgPool) {
        node(&pool).await;
        answers(&pool, ONE).await;
        misses(&pool, TWO, Reachability::HostKeyChanged).await;
        assert_eq!(shown(&pool).await, "host_key_changed");
        assert_eq!(answers(&pool, ONE).await, None, "its connection is older than the change");
    }
}
