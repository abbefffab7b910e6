//! When snapshots are taken by themselves, by time and before deployments: which are due, and which are more than are kept.

use corpus_api::Version;
use corpus_api::snapshots::SnapshotSchedule;
use corpus_api::words::{Invalid, SnapshotsKept};
use corpus_domain::{GuestId, SnapshotEvery, SnapshotId};
use sqlx::PgConnection;

use super::{number, word};

/// How many are kept unless somebody says how many.
const USUAL: i32 = 7;

/// That of a guest; one that has none takes none.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<SnapshotSchedule> {
    let row = sqlx::query!(
        "select every, keep, deployments, next_at, problem from snapshot_schedules where guest_id = $1",
        guest.0
    );
    let row = row.fetch_optional(conn).await?;
    let every = row.as_ref().map_or(Ok(SnapshotEvery::Never), |row| word(&row.every))?;
    let keep = kept(row.as_ref().map_or(USUAL, |row| row.keep))?;
    let deployments = row.as_ref().and_then(|row| row.deployments).map(kept).transpose()?;
    let version = Version::of(&(every, keep, deployments));
    let (next_at, problem) = row.map(|row| (row.next_at, row.problem)).unwrap_or_default();
    Ok(SnapshotSchedule { every, keep, deployments, next_at, problem, version })
}

fn kept(number_of: i32) -> sqlx::Result<SnapshotsKept> {
    number::<u64>(number_of)?.try_into().map_err(|error: Invalid| sqlx::Error::Decode(Box::new(error)))
}

/// Sets that of a guest: the first is taken at the next look.
pub async fn set(
    conn: &mut PgConnection,
    guest: GuestId,
    (every, keep): (SnapshotEvery, SnapshotsKept),
    deployments: Option<SnapshotsKept>,
) -> sqlx::Result<()> {
    if (every, deployments) == (SnapshotEvery::Never, None) {
        let gone = sqlx::query!("delete from snapshot_schedules where guest_id = $1", guest.0);
        return gone.execute(conn).await.map(drop);
    }
    let set = sqlx::query!(
        "insert into snapshot_schedules as s (guest_id, every, keep, deployments, next_at)
         values ($1, $2, $3, $4, case when $2 <> 'never' then now() end)
         on conflict (guest_id) do update set every = excluded.every, keep = excluded.keep, problem = null,
            deployments = excluded.deployments,
            next_at = case s.every when excluded.every then s.next_at else excluded.next_at end",
        guest.0,
        every.as_str(),
        stored(keep),
        deployments.map(stored),
    );
    set.execute(conn).await.map(drop)
}

fn stored(keep: SnapshotsKept) -> i32 {
    i32::try_from(keep.get()).unwrap_or(USUAL)
}

/// Those of these guests of which one is wanted before something is deployed on them, in the order in which they are held.
pub async fn before_deployments(conn: &mut PgConnection, guests: &[GuestId]) -> sqlx::Result<Vec<GuestId>> {
    let guests: Vec<_> = guests.iter().map(|guest| guest.0).collect();
    let wanted = sqlx::query_scalar!(
        "select c.guest_id from snapshot_schedules c join guests g on g.id = c.guest_id
         where c.guest_id = any($1) and c.deployments is not null order by g.node_id, g.id",
        &guests
    );
    Ok(wanted.fetch_all(conn).await?.into_iter().map(GuestId).collect())
}

/// How many a node takes at a time by schedule: where that copies files, more would keep its guests from their disk.
const AT_A_NODE: i64 = 2;

/// The guests of which one is due and whose node has time for it, the longest first. What ends with its project has none.
pub async fn due(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<GuestId>> {
    let due = sqlx::query_scalar!(
        "select d.guest_id from (
            select c.guest_id, c.next_at, row_number() over (partition by g.node_id order by c.next_at)
                + (select count(*) from snapshots s where s.node_id = g.node_id and s.state = 'taking') as at_once
            from snapshot_schedules c join guests g on g.id = c.guest_id join projects p on p.id = g.project_id
                join nodes n on n.id = g.node_id
            where c.next_at <= now() and p.leaving_job is null and n.reachability = 'reachable') d
         where d.at_once <= $2 order by d.next_at limit $1",
        limit,
        AT_A_NODE
    );
    Ok(due.fetch_all(conn).await?.into_iter().map(GuestId).collect())
}

/// Holds that of a guest alone, if one is due still.
pub async fn hold_due(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        "select guest_id from snapshot_schedules where guest_id = $1 and next_at <= now() for update",
        guest.0
    );
    Ok(found.fetch_optional(conn).await?.is_some())
}

/// One is being taken: the next is due when it would have been, or where that is over, a whole time from now.
pub async fn taken(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    let next = sqlx::query!(
        "update snapshot_schedules set problem = null, next_at = case
            when next_at + ('1 ' || every)::interval > now() then next_at else now() end + ('1 ' || every)::interval
         where guest_id = $1",
        guest.0
    );
    next.execute(conn).await.map(drop)
}

/// None could be taken: it is tried again in a while.
pub async fn not_taken(conn: &mut PgConnection, guest: GuestId, why: &str) -> sqlx::Result<()> {
    let again = sqlx::query!(
        "update snapshot_schedules set problem = left($2, 1000), next_at = now() + interval '10 minutes'
         where guest_id = $1",
        guest.0,
        why
    );
    again.execute(conn).await.map(drop)
}

/// What was taken by itself and is more than is kept, the oldest first; of nodes that answer.
pub async fn beyond(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<(GuestId, SnapshotId)>> {
    let rows = sqlx::query!(
        r#"select old.id as "id!", c.guest_id from snapshot_schedules c cross join lateral (
            (select s.id, s.node_id, s.created_at from snapshots s
             where s.guest_id = c.guest_id and s.created_by is null and s.state = 'ready' and c.every <> 'never'
             order by s.created_at desc offset c.keep)
            union all
            (select s.id, s.node_id, s.created_at from snapshots s
             where s.guest_id = c.guest_id and s.deployment_id is not null and s.state = 'ready'
                and c.deployments is not null
             order by s.created_at desc offset c.deployments)) old
            join nodes n on n.id = old.node_id and n.reachability = 'reachable'
         order by old.created_at limit $1"#,
        limit
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (GuestId(row.guest_id), SnapshotId(row.id))).collect())
}
