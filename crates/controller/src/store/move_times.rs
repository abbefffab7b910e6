//! How long guests answered nothing while they were moved, and what is expected of the next move by that.

use corpus_api::moves::{Downtime, LastMove, MovesOf};
use corpus_domain::{Bytes, GuestId, JobId, NodeId};
use sqlx::PgConnection;

use super::{number, word_opt};

/// For so long it is known.
const KEPT_DAYS: i32 = 90;

/// A move that is over.
#[derive(Debug, Clone, Copy)]
pub struct Moved {
    /// The guest, which is where it went to.
    pub guest: GuestId,
    /// Where it was.
    pub from: NodeId,
    /// What was brought while it stood still.
    pub bytes: Bytes,
    /// For how long it answered nothing, in milliseconds.
    pub downtime_ms: u64,
}

/// Notes how long a guest answered nothing, once for each job.
pub async fn note(conn: &mut PgConnection, job: JobId, moved: Moved) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into guest_move_times (job_id, guest_id, from_node_id, to_node_id, backing, bytes, downtime_ms)
         select $1, g.id, (select n.id from nodes n where n.id = $3), g.node_id, g.backing, $4, $5 from guests g where g.id = $2
         on conflict (job_id) do nothing",
        job.0,
        moved.guest.0,
        moved.from.0,
        i64::try_from(moved.bytes.0).unwrap_or(i64::MAX),
        i64::try_from(moved.downtime_ms).unwrap_or(i64::MAX),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// What is expected of moving a guest; none where nothing was moved yet.
pub async fn expected(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Downtime>> {
    let row = sqlx::query!(
        r#"select e.downtime_ms as "downtime_ms!", e.moves as "moves!", e.moves_of as "moves_of!"
           from guests g cross join lateral expected_downtime(g.id, g.backing) e where g.id = $1"#,
        guest.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    downtime(Some(row.downtime_ms), Some(row.moves), Some(&row.moves_of))
}

/// The downtime of these columns of `expected_downtime`.
pub(super) fn downtime(ms: Option<i64>, of: Option<i64>, by: Option<&str>) -> sqlx::Result<Option<Downtime>> {
    let (Some(ms), Some(of)) = (ms, of) else { return Ok(None) };
    let moves_of = match by {
        Some("guest") => MovesOf::Guest,
        Some("backing") => MovesOf::Backing,
        _ => MovesOf::All,
    };
    Ok(Some(Downtime { downtime_ms: number(ms)?, of: number(of)?, moves_of }))
}

/// What the last move of a guest was like.
pub async fn last(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<LastMove>> {
    let row = sqlx::query!(
        r#"select t.at, n.address as "from?", t.bytes, t.downtime_ms from guest_move_times t
           left join nodes n on n.id = t.from_node_id
           where t.guest_id = $1 order by t.at desc limit 1"#,
        guest.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let (from, bytes) = (word_opt(row.from.as_deref())?, Bytes(number(row.bytes)?));
    Ok(Some(LastMove { at: row.at, from, bytes, downtime_ms: number(row.downtime_ms)? }))
}

/// Forgets what is too long ago to say something.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("delete from guest_move_times where at < now() - make_interval(days => $1)", KEPT_DAYS)
        .execute(conn)
        .await
        .map(drop)
}
