//! How often backups are taken by themselves: which are due, and which are more than are kept.

use std::collections::BTreeMap;

use corpus_api::Version;
use corpus_api::backups::BackupSchedule;
use corpus_api::words::{BackupsKept, Invalid};
use corpus_domain::{BackupEvery, BackupId, GuestId, ProjectId};
use sqlx::PgConnection;

use super::{number, word};

/// How many are kept unless somebody says how many.
const USUAL: i32 = 14;

/// That of a guest; one that has none takes none.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<BackupSchedule> {
    let row = sqlx::query!(
        "select every, keep, next_at, problem, prove, prove_at, prove_problem from backup_schedules where guest_id = $1",
        guest.0
    );
    let row = row.fetch_optional(conn).await?;
    let every = row.as_ref().map_or(Ok(BackupEvery::Never), |row| word(&row.every))?;
    let keep = kept(row.as_ref().map_or(USUAL, |row| row.keep))?;
    let prove = row.as_ref().is_some_and(|row| row.prove);
    let version = Version::of(&(every, keep, prove));
    let (next_at, prove_at) = (row.as_ref().map(|row| row.next_at), row.as_ref().map(|row| row.prove_at));
    let (problem, prove_problem) = row.map(|row| (row.problem, row.prove_problem)).unwrap_or_default();
    let prove_at = prove_at.filter(|_| prove);
    Ok(BackupSchedule { every, keep, next_at, problem, prove, prove_at, prove_problem, version })
}

fn kept(number_of: i32) -> sqlx::Result<BackupsKept> {
    number::<u64>(number_of)?.try_into().map_err(|error: Invalid| sqlx::Error::Decode(Box::new(error)))
}

/// Sets that of a guest: the first is taken at the next look.
pub async fn set(
    conn: &mut PgConnection,
    guest: GuestId,
    (every, keep): (BackupEvery, BackupsKept),
    prove: bool,
) -> sqlx::Result<()> {
    if every == BackupEvery::Never {
        let gone = sqlx::query!("delete from backup_schedules where guest_id = $1", guest.0);
        return gone.execute(conn).await.map(drop);
    }
    let set = sqlx::query!(
        "insert into backup_schedules as s (guest_id, every, keep, prove) values ($1, $2, $3, $4)
         on conflict (guest_id) do update set every = $2, keep = $3, problem = null, prove = $4, prove_problem = null,
            next_at = case s.every when $2 then s.next_at else now() end,
            prove_at = case s.prove when $4 then s.prove_at else now() end,
            set_at = case when s.every = $2 and s.prove = $4 then s.set_at else now() end, need_look_at = now()",
        guest.0,
        every.as_str(),
        i32::try_from(keep.get()).unwrap_or(USUAL),
        prove,
    );
    set.execute(conn).await.map(drop)
}

/// How many a node gives at a time by schedule, and how many are taken at a time in all: each is read by this machine.
const AT_A_NODE: i64 = 1;
const AT_ONCE: i64 = 4;

/// The guests of which one is due and whose node has time for it, the longest first. What ends with its project has none. What
/// dumps keeps none but those of its own project waiting.
pub async fn due(conn: &mut PgConnection) -> sqlx::Result<Vec<GuestId>> {
    let due = sqlx::query_scalar!(
        "select d.guest_id from (
            select f.guest_id, f.next_at, row_number() over (partition by f.node_id order by f.next_at) + f.busy as at_once
            from (
                select c.guest_id, c.next_at, g.node_id, (
                    select count(*) from guest_backups b join guests t on t.id = b.guest_id
                    where t.node_id = g.node_id and b.state = 'taking'
                        and (not b.dumping or b.project_id = g.project_id)) as busy
                from backup_schedules c join guests g on g.id = c.guest_id join projects p on p.id = g.project_id
                    join nodes n on n.id = g.node_id
                where c.next_at <= now() and p.leaving_job is null and n.reachability = 'reachable') f
            where f.busy < $2) d
         where d.at_once <= $2 order by d.next_at
         limit greatest(0, $1 - (select count(*) from guest_backups where state = 'taking' and not dumping))",
        AT_ONCE,
        AT_A_NODE
    );
    Ok(due.fetch_all(conn).await?.into_iter().map(GuestId).collect())
}

/// Holds that of a guest alone, if one is due still.
pub async fn hold_due(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        "select guest_id from backup_schedules where guest_id = $1 and next_at <= now() for update",
        guest.0
    );
    Ok(found.fetch_optional(conn).await?.is_some())
}

/// One is being taken: the next is due when it would have been, or where that is over, a whole time from now.
pub async fn taken(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    let next = sqlx::query!(
        "update backup_schedules set problem = null, next_at = case
            when next_at + ('1 ' || every)::interval > now() then next_at else now() end + ('1 ' || every)::interval
         where guest_id = $1",
        guest.0
    );
    next.execute(conn).await.map(drop)
}

/// None could be taken: it is tried again in a while.
pub async fn not_taken(conn: &mut PgConnection, guest: GuestId, why: &str) -> sqlx::Result<()> {
    let again = sqlx::query!(
        "update backup_schedules set problem = left($2, 1000), next_at = now() + interval '10 minutes'
         where guest_id = $1",
        guest.0,
        why
    );
    again.execute(conn).await.map(drop)
}

/// What was taken by schedule and is more than is kept, of each project.
pub async fn beyond(conn: &mut PgConnection, limit: i64) -> sqlx::Result<BTreeMap<ProjectId, Vec<BackupId>>> {
    let rows = sqlx::query!(
        "select old.id, old.project_id from backup_schedules c cross join lateral (
            select b.id, b.project_id, b.created_at from guest_backups b
            where b.guest_id = c.guest_id and b.created_by is null and b.state = 'ready'
            order by b.created_at desc offset c.keep) old
         order by old.created_at limit $1",
        limit
    );
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for row in rows.fetch_all(conn).await? {
        all.entry(ProjectId(row.project_id)).or_default().push(BackupId(row.id));
    }
    Ok(all)
}

/// How many are tried at a time by schedule: each takes room for a guest.
const PROVEN_AT_ONCE: i64 = 1;

/// The guest whose latest backup is to be tried now, the longest due first; one that has none waits for it.
pub async fn to_prove(conn: &mut PgConnection) -> sqlx::Result<Option<GuestId>> {
    let found = sqlx::query_scalar!(
        "select c.guest_id from backup_schedules c join guests g on g.id = c.guest_id join projects p on p.id = g.project_id
         where c.prove and c.prove_at <= now() and p.leaving_job is null
             and exists (select from guest_backups b where b.guest_id = c.guest_id and b.state = 'ready')
             and (select count(*) from backup_proofs where node_id is not null) < $1
         order by c.prove_at limit 1",
        PROVEN_AT_ONCE
    );
    Ok(found.fetch_optional(conn).await?.map(GuestId))
}

/// Holds that of a guest alone, if one of its backups is to be tried still.
pub async fn hold_to_prove(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        "select guest_id from backup_schedules where guest_id = $1 and prove and prove_at <= now() for update",
        guest.0
    );
    Ok(found.fetch_optional(conn).await?.is_some())
}

/// One is tried: the next in a week.
pub async fn proves(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    let next = sqlx::query!(
        "update backup_schedules set prove_problem = null, prove_at = now() + interval '7 days' where guest_id = $1",
        guest.0
    );
    next.execute(conn).await.map(drop)
}

/// None could be tried: again in a while.
pub async fn not_proven(conn: &mut PgConnection, guest: GuestId, why: &str) -> sqlx::Result<()> {
    let again = sqlx::query!(
        "update backup_schedules set prove_problem = left($2, 1000), prove_at = now() + interval '1 hour'
         where guest_id = $1",
        guest.0,
        why
    );
    again.execute(conn).await.map(drop)
}
