//! Guests that are to leave a node, and what a lost node has of those that left it.
//!
//! One that is to leave waits until it is its turn, then a job does it; when that is over it has left, or why it could not
//! is kept until it is asked for again.

use chrono::{DateTime, Utc};
use corpus_api::leaving::{LatestBackup, Leaves, LeavingGuest, LeavingGuests, LeftBehind};
use corpus_domain::{BackupId, Bytes, GuestId, GuestName, JobId, Leaving, NodeId, ProjectId};
use sqlx::PgConnection;

use super::{move_times, number, word, word_opt};

/// So many are moved from a node at a time: each is read and written by this machine.
const MOVES: i64 = 2;
/// So many are brought elsewhere at a time of a node that is lost.
const FROM_BACKUPS: i64 = 4;
/// As many are begun at a look.
const MOST: i64 = 16;

/// All guests of the node are to leave it; those that could not are tried again. Tells how many that are.
pub async fn ask(conn: &mut PgConnection, node: NodeId, how: Leaving) -> sqlx::Result<u64> {
    let asked = sqlx::query!(
        "insert into leaving_guests as l (guest_id, node_id, how) select id, node_id, $2 from guests where node_id = $1
         on conflict (guest_id) do update set node_id = excluded.node_id, how = excluded.how, asked_at = now(),
             job_id = null, problem = null
         where l.job_id is null or l.problem is not null",
        node.0,
        how.as_str(),
    );
    asked.execute(conn).await.map(|done| done.rows_affected())
}

/// Those that have not begun to leave stay. Tells how many that are.
pub async fn keep(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<u64> {
    let kept = sqlx::query!(
        "delete from leaving_guests where node_id = $1 and (job_id is null or problem is not null)",
        node.0
    );
    kept.execute(conn).await.map(|done| done.rows_affected())
}

/// Forgets those that have left, and notes of those whose job is over without that why they could not.
pub async fn settle(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from leaving_guests l using guests g
         where g.id = l.guest_id
           and (g.node_id <> l.node_id or exists (select from jobs j where j.id = l.job_id and j.state = 'done'))
           and not exists (select from jobs j where j.id = l.job_id and j.state in ('waiting', 'running', 'undoing', 'stuck'))"
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update leaving_guests l set problem = left(coalesce(nullif(j.error, ''), 'its job was ended'), 1000)
         from jobs j where j.id = l.job_id and l.problem is null and j.state in ('undone', 'stuck', 'abandoned')"
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Those whose turn it is: prod first, and a node that moves are to leave has to answer.
pub async fn due(conn: &mut PgConnection) -> sqlx::Result<Vec<GuestId>> {
    let due = sqlx::query_scalar!(
        "select d.guest_id from (
            select l.guest_id, l.how, l.asked_at,
                row_number() over (partition by l.node_id
                    order by case g.environment when 'prod' then 0 when 'staging' then 1 else 2 end, g.name)
                + (select count(*) from leaving_guests o
                   where o.node_id = l.node_id and o.job_id is not null and o.problem is null) as at_once
            from leaving_guests l join guests g on g.id = l.guest_id join nodes n on n.id = l.node_id
            where l.job_id is null and l.problem is null and (l.how = 'backup' or n.reachability = 'reachable')) d
         where d.at_once <= case d.how when 'move' then $1::bigint else $2::bigint end
         order by d.asked_at, d.at_once limit $3",
        MOVES,
        FROM_BACKUPS,
        MOST,
    );
    Ok(due.fetch_all(conn).await?.into_iter().map(GuestId).collect())
}

/// Holds that a guest is to leave, if it has not begun to; how, and whether its node answers.
pub async fn hold(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<(Leaving, bool)>> {
    let row = sqlx::query!(
        r#"select l.how, n.reachability = 'reachable' as "answers!" from leaving_guests l join nodes n on n.id = l.node_id
           where l.guest_id = $1 and l.job_id is null and l.problem is null for update of l"#,
        guest.0
    );
    row.fetch_optional(conn).await?.map(|row| Ok((word(&row.how)?, row.answers))).transpose()
}

/// This job has it leave.
pub async fn goes(conn: &mut PgConnection, guest: GuestId, job: JobId) -> sqlx::Result<()> {
    sqlx::query!("update leaving_guests set job_id = $2 where guest_id = $1", guest.0, job.0)
        .execute(conn)
        .await
        .map(drop)
}

/// It can't leave, if it has not begun to.
pub async fn can_not(conn: &mut PgConnection, guest: GuestId, why: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update leaving_guests set problem = left($2, 1000) where guest_id = $1 and job_id is null",
        guest.0,
        why
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The latest backup of a guest that can be brought back, and the project whose repository holds it.
pub async fn latest_backup(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<(LatestBackup, ProjectId)>> {
    let row = sqlx::query!(
        r#"select id, project_id, taken_at as "taken_at!", bytes as "bytes!" from guest_backups
           where guest_id = $1 and state = 'ready' order by created_at desc limit 1"#,
        guest.0
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let backup = LatestBackup { id: BackupId(row.id), taken_at: row.taken_at, bytes: number(row.bytes).map(Bytes)? };
    Ok(Some((backup, ProjectId(row.project_id))))
}

/// Where a page of guests goes on: after this one, with what it waits for.
pub type Position = (i32, String);

/// A page of the guests of a node, those first that could not leave, and how many there are of each.
pub async fn page(
    conn: &mut PgConnection,
    node: NodeId,
    after: Option<Position>,
    limit: i64,
) -> sqlx::Result<(Vec<(Position, LeavingGuest)>, LeavingGuests)> {
    let (rank, name) = after.unwrap_or((-1, String::new()));
    let rows = sqlx::query!(
        r#"select r.rank as "rank!", g.id, g.name, p.name as project, g.environment, g.state, g.storage,
             b.id as "backup?", b.taken_at as "taken_at?", b.bytes as "bytes?",
             l.how as "how?", l.asked_at as "asked_at?", l.job_id as "job?", l.problem as "problem?",
             d.name as "pointer?", e.downtime_ms as "downtime_ms?", e.moves as "moves?", e.moves_of as "moves_of?"
           from guests g join projects p on p.id = g.project_id left join leaving_guests l on l.guest_id = g.id
           left join dns_names d on d.guest_id = g.id and d.pointed_address is not null
           left join lateral expected_downtime(g.id, g.backing) e on g.state = 'running'
           cross join lateral (
             select case when l.guest_id is null then 3 when l.problem is not null then 0
                 when l.job_id is not null then 1 else 2 end as rank) r
           left join lateral (
             select b.id, b.taken_at, b.bytes from guest_backups b where b.guest_id = g.id and b.state = 'ready'
             order by b.created_at desc limit 1) b on true
           where g.node_id = $1 and (r.rank, g.name) > ($2, $3) order by r.rank, g.name limit $4"#,
        node.0,
        rank,
        name,
        limit,
    );
    let items = rows.fetch_all(&mut *conn).await?.into_iter().map(|row| {
        let backup = row.backup.zip(row.taken_at).zip(row.bytes);
        let backup = backup.map(|((id, taken_at), size)| {
            Ok::<_, sqlx::Error>(LatestBackup { id: BackupId(id), taken_at, bytes: number(size).map(Bytes)? })
        });
        let leaves = row.how.zip(row.asked_at).map(|(how, asked_at)| {
            Ok::<_, sqlx::Error>(Leaves { how: word(&how)?, asked_at, job: row.job.map(JobId), problem: row.problem })
        });
        let one = LeavingGuest {
            guest: GuestId(row.id),
            name: word(&row.name)?,
            project: word(&row.project)?,
            environment: word(&row.environment)?,
            state: word(&row.state)?,
            storage: number(row.storage).map(Bytes)?,
            pointer: word_opt(row.pointer.as_deref())?,
            downtime: move_times::downtime(row.downtime_ms, row.moves, row.moves_of.as_deref())?,
            backup: backup.transpose()?,
            leaves: leaves.transpose()?,
        };
        Ok(((row.rank, row.name), one))
    });
    let items = items.collect::<sqlx::Result<Vec<_>>>()?;
    let all = sqlx::query!(
        r#"select count(*) as "guests!", count(b.taken_at) as "backed_up!", min(b.taken_at) as oldest,
             count(*) filter (where l.guest_id is not null and l.job_id is null and l.problem is null) as "waiting!",
             count(*) filter (where l.job_id is not null and l.problem is null) as "going!",
             count(*) filter (where l.problem is not null) as "failed!", count(d.id) as "pointed!"
           from guests g left join leaving_guests l on l.guest_id = g.id
           left join dns_names d on d.guest_id = g.id and d.pointed_address is not null
           left join lateral (
             select b.taken_at from guest_backups b where b.guest_id = g.id and b.state = 'ready'
             order by b.created_at desc limit 1) b on true
           where g.node_id = $1"#,
        node.0,
    );
    let all = all.fetch_one(conn).await?;
    let counts = LeavingGuests {
        items: Vec::new(),
        guests: number(all.guests)?,
        backed_up: number(all.backed_up)?,
        oldest_backup: all.oldest,
        waiting: number(all.waiting)?,
        going: number(all.going)?,
        failed: number(all.failed)?,
        pointed: number(all.pointed)?,
        lost_at: Vec::new(),
        next: None,
    };
    Ok((items, counts))
}

/// Notes that a lost node has files of a guest that goes on elsewhere.
pub async fn leave_behind(
    conn: &mut PgConnection,
    node: NodeId,
    (guest, name): (GuestId, &GuestName),
    backup_of: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into left_behind (node_id, guest_id, name, backup_of) values ($1, $2, $3, $4)
         on conflict (node_id, guest_id) do nothing",
        node.0,
        guest.0,
        name.as_str(),
        backup_of,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The guest goes on there after all.
pub async fn forget(conn: &mut PgConnection, node: NodeId, guest: GuestId) -> sqlx::Result<()> {
    sqlx::query!("delete from left_behind where node_id = $1 and guest_id = $2", node.0, guest.0)
        .execute(conn)
        .await
        .map(drop)
}

/// Whether the node has files of the guest still.
pub async fn is_left_at(conn: &mut PgConnection, node: NodeId, guest: GuestId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select from left_behind where node_id = $1 and guest_id = $2) as "is!""#,
        node.0,
        guest.0
    );
    found.fetch_one(conn).await
}

/// Whether something may run at the node that went on elsewhere.
pub async fn may_run_at(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select from left_behind where node_id = $1 and stopped_at is null) as "is!""#,
        node.0
    );
    found.fetch_one(conn).await
}

/// A page of what a node has of guests that went on elsewhere, by name.
pub async fn left_behind(
    conn: &mut PgConnection,
    node: NodeId,
    after: Option<(String, uuid::Uuid)>,
    limit: i64,
) -> sqlx::Result<Vec<LeftBehind>> {
    let (name, guest) = after.unwrap_or_default();
    let rows = sqlx::query!(
        "select guest_id, name, left_at, backup_of, stopped_at, removing from left_behind
         where node_id = $1 and (name, guest_id) > ($2, $3::uuid) order by name, guest_id limit $4",
        node.0,
        name,
        guest,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(LeftBehind {
            guest: GuestId(row.guest_id),
            name: word(&row.name)?,
            left_at: row.left_at,
            backup_of: row.backup_of,
            stopped_at: row.stopped_at,
            removing: row.removing,
        })
    });
    rows.collect()
}

/// It is to be removed. Tells what it is called; none where there is none.
pub async fn remove(conn: &mut PgConnection, node: NodeId, guest: GuestId) -> sqlx::Result<Option<GuestName>> {
    let found = sqlx::query_scalar!(
        "update left_behind set removing = true, try_at = now() where node_id = $1 and guest_id = $2 returning name",
        node.0,
        guest.0
    );
    found.fetch_optional(conn).await?.map(|name| word(&name)).transpose()
}

/// Takes what is to be stopped or removed at nodes that answer: in a while it is taken again, unless it was done.
pub async fn take_to_clear(conn: &mut PgConnection) -> sqlx::Result<Vec<(NodeId, GuestId, GuestName, bool)>> {
    let rows = sqlx::query!(
        "update left_behind set try_at = now() + interval '1 minute' where (node_id, guest_id) in (
             select l.node_id, l.guest_id from left_behind l join nodes n on n.id = l.node_id
             where (l.stopped_at is null or l.removing) and l.try_at <= now() and n.reachability = 'reachable'
             order by l.left_at limit $1)
         returning node_id, guest_id, name, removing",
        MOST,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok((NodeId(row.node_id), GuestId(row.guest_id), word(&row.name)?, row.removing))).collect()
}

/// It does not run there, and does not start by itself.
pub async fn rests(conn: &mut PgConnection, node: NodeId, guest: GuestId) -> sqlx::Result<()> {
    sqlx::query!(
        "update left_behind set stopped_at = now() where node_id = $1 and guest_id = $2 and stopped_at is null",
        node.0,
        guest.0
    )
    .execute(conn)
    .await
    .map(drop)
}
