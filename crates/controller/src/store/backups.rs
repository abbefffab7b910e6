//! Backups of guests: which there are, what is being done with each, and what opens their repositories.

use std::net::Ipv4Addr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use corpus_api::backups::{Backup, BackupDump, BackupProof, ProjectBackup};
use corpus_domain::{BackupId, BackupState, Bytes, Environment, GuestId, GuestName, ProjectId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::guests::{GuestRow, bytes};
use super::{number, word, word_opt};

/// What became of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The moment that it is of.
    pub at: DateTime<Utc>,
    /// Its name in the repository.
    pub snapshot: String,
    /// How much is in it.
    pub bytes: u64,
    /// How many files are in it.
    pub files: u64,
    /// How much of it the repository did not hold before.
    pub added_bytes: u64,
    /// How long it took.
    pub took: Duration,
    /// What was dumped before.
    pub dump: Option<BackupDump>,
}

/// Notes one that is about to be taken.
pub async fn insert(
    conn: &mut PgConnection,
    id: BackupId,
    guest: &GuestRow,
    comment: Option<&str>,
    by: Option<UserId>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into guest_backups (id, project_id, guest_id, guest_name, environment, comment, created_by, ip)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        id.0,
        guest.project_id.0,
        guest.id.0,
        guest.name.as_str(),
        guest.environment.as_str(),
        comment,
        by.map(|by| by.0),
        guest.ip.map(|ip| ip.to_string()),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// How many a guest has, those that come and go too.
pub async fn count(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<i64> {
    sqlx::query_scalar!(r#"select count(*) as "count!" from guest_backups where guest_id = $1"#, guest.0)
        .fetch_one(conn)
        .await
}

/// Those of a guest, the newest first.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<Backup>> {
    let rows = sqlx::query!(
        r#"select b.id, b.comment, b.state, b.taken_at, b.snapshot, b.bytes, b.files, b.added_bytes, b.took_ms,
            b.dumped_bytes, b.dump_problem, b.created_at, u.login as "login?", p.began_at as "began_at?", p.ended_at,
            p.passed, p.told
         from guest_backups b left join users u on u.id = b.created_by left join backup_proofs p on p.backup_id = b.id
         where b.guest_id = $1 order by b.created_at desc, b.id"#,
        guest.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(Backup {
            id: BackupId(row.id),
            comment: word_opt(row.comment.as_deref())?,
            state: word(&row.state)?,
            taken_at: row.taken_at,
            snapshot: row.snapshot,
            bytes: row.bytes.map(number).transpose()?.map(Bytes),
            files: row.files.map(number).transpose()?,
            added_bytes: row.added_bytes.map(number).transpose()?.map(Bytes),
            took_ms: row.took_ms.map(number).transpose()?,
            dump: dump(row.dumped_bytes, row.dump_problem)?,
            proof: proof(row.began_at, row.ended_at, row.passed, row.told),
            asked_at: row.created_at,
            by: row.login,
        })
    });
    rows.collect()
}

pub(super) fn dump(size: Option<i64>, problem: Option<String>) -> sqlx::Result<Option<BackupDump>> {
    size.map(|size| Ok(BackupDump { bytes: Bytes(number(size)?), problem })).transpose()
}

pub(super) fn proof(
    began_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    passed: Option<bool>,
    told: Option<String>,
) -> Option<BackupProof> {
    began_at.map(|began_at| BackupProof { began_at, ended_at, passed, told })
}

/// Where a page goes on: after this one.
pub type Position = (DateTime<Utc>, Uuid);

/// A page of those of a project, the newest first, and the position of each; all, or those whose guest is gone or there.
/// Who may read them is judged by who asks for it.
pub async fn of_project(
    conn: &mut PgConnection,
    project: ProjectId,
    gone: Option<bool>,
    after: Option<Position>,
    limit: i64,
) -> sqlx::Result<Vec<(Position, ProjectBackup)>> {
    let (at, id) = after.unwrap_or((DateTime::<Utc>::MAX_UTC, Uuid::max()));
    // What PostgreSQL takes for a time ends before what chrono does.
    let at = at.min(Utc::now() + TimeDelta::days(1));
    let rows = sqlx::query!(
        r#"select b.id, b.guest_id, b.guest_name, b.environment, b.comment, b.state, b.taken_at, b.snapshot, b.bytes,
            b.files, b.added_bytes, b.took_ms, b.dumped_bytes, b.dump_problem, b.created_at, u.login as "login?",
            g.id is null as "gone!", p.began_at as "began_at?", p.ended_at, p.passed, p.told
         from guest_backups b left join users u on u.id = b.created_by left join guests g on g.id = b.guest_id
            left join backup_proofs p on p.backup_id = b.id
         where b.project_id = $1 and ($2::bool is null or (g.id is null) = $2) and (b.created_at, b.id) < ($3, $4::uuid)
         order by b.created_at desc, b.id desc limit $5"#,
        project.0,
        gone,
        at,
        id,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let backup = Backup {
            id: BackupId(row.id),
            comment: word_opt(row.comment.as_deref())?,
            state: word(&row.state)?,
            taken_at: row.taken_at,
            snapshot: row.snapshot,
            bytes: row.bytes.map(number).transpose()?.map(Bytes),
            files: row.files.map(number).transpose()?,
            added_bytes: row.added_bytes.map(number).transpose()?.map(Bytes),
            took_ms: row.took_ms.map(number).transpose()?,
            dump: dump(row.dumped_bytes, row.dump_problem)?,
            proof: proof(row.began_at, row.ended_at, row.passed, row.told),
            asked_at: row.created_at,
            by: row.login,
        };
        let (guest, name) = (GuestId(row.guest_id), word(&row.guest_name)?);
        let one = ProjectBackup {
            guest,
            name,
            environment: word(&row.environment)?,
            gone: row.gone,
            may_read: false,
            backup,
        };
        Ok(((row.created_at, row.id), one))
    });
    rows.collect()
}

/// Whose one of this project is, and what is being done with it.
pub async fn in_project(
    conn: &mut PgConnection,
    (id, project): (BackupId, ProjectId),
) -> sqlx::Result<Option<(GuestId, BackupState, Option<Bytes>)>> {
    let row = sqlx::query!(
        "select guest_id, state, bytes from guest_backups where id = $1 and project_id = $2",
        id.0,
        project.0
    );
    let row = row.fetch_optional(conn).await?;
    row.map(|row| Ok((GuestId(row.guest_id), word(&row.state)?, row.bytes.map(number).transpose()?.map(Bytes))))
        .transpose()
}

/// One of a project that is to be looked at.
#[derive(Debug, Clone)]
pub struct Held {
    /// Of which guest.
    pub guest: GuestId,
    /// What it was called.
    pub name: GuestName,
    /// The environment that it was of.
    pub environment: Environment,
    /// What is being done with it.
    pub state: BackupState,
    /// The moment that it is of.
    pub taken_at: Option<DateTime<Utc>>,
    /// Its name in the repository.
    pub snapshot: Option<String>,
}

/// One of this project.
pub async fn held(conn: &mut PgConnection, (id, project): (BackupId, ProjectId)) -> sqlx::Result<Option<Held>> {
    let row = sqlx::query!(
        "select guest_id, guest_name, environment, state, taken_at, snapshot from guest_backups
         where id = $1 and project_id = $2",
        id.0,
        project.0
    );
    let held = row.fetch_optional(conn).await?.map(|row| {
        Ok(Held {
            guest: GuestId(row.guest_id),
            name: word(&row.guest_name)?,
            environment: word(&row.environment)?,
            state: word(&row.state)?,
            taken_at: row.taken_at,
            snapshot: row.snapshot,
        })
    });
    held.transpose()
}

/// The state of one of this guest.
pub async fn state(conn: &mut PgConnection, (id, guest): (BackupId, GuestId)) -> sqlx::Result<Option<BackupState>> {
    let found = sqlx::query_scalar!("select state from guest_backups where id = $1 and guest_id = $2", id.0, guest.0);
    word_opt(found.fetch_optional(conn).await?.as_deref())
}

/// One of this guest that can be brought back is about to be deleted; tells whether it could be.
pub async fn removing(conn: &mut PgConnection, (id, guest): (BackupId, GuestId)) -> sqlx::Result<bool> {
    let moved = sqlx::query!(
        "update guest_backups set state = 'removing' where id = $1 and guest_id = $2 and state = 'ready'",
        id.0,
        guest.0,
    );
    Ok(moved.execute(conn).await?.rows_affected() > 0)
}

/// Those that can be brought back are about to be deleted; tells which these are.
pub async fn removing_all(conn: &mut PgConnection, ids: &[BackupId]) -> sqlx::Result<Vec<BackupId>> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let moved = sqlx::query_scalar!(
        "update guest_backups set state = 'removing' where id = any($1) and state = 'ready' returning id",
        &ids
    );
    Ok(moved.fetch_all(conn).await?.into_iter().map(BackupId).collect())
}

/// It is in its repository, and this is what it is.
pub async fn taken(conn: &mut PgConnection, id: BackupId, taken: &Taken) -> sqlx::Result<()> {
    let Taken { at, snapshot, bytes: size, files, added_bytes, took, dump } = taken;
    sqlx::query!(
        "update guest_backups set state = 'ready', taken_at = coalesce(taken_at, $7), snapshot = $2, bytes = $3,
            files = $4, added_bytes = $5, took_ms = $6, dumped_bytes = $8, dump_problem = $9 where id = $1",
        id.0,
        snapshot,
        bytes(Bytes(*size)),
        bytes(Bytes(*files)),
        bytes(Bytes(*added_bytes)),
        i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
        at,
        dump.as_ref().map(|dump| bytes(dump.bytes)),
        dump.as_ref().and_then(|dump| dump.problem.as_deref()),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Its project begins to dump for it, or has ended.
pub async fn set_dumping(conn: &mut PgConnection, id: BackupId, dumping: bool) -> sqlx::Result<()> {
    sqlx::query!("update guest_backups set dumping = $2 where id = $1", id.0, dumping).execute(conn).await.map(drop)
}

/// Whatever was to be done with those that were taken is over.
pub async fn back(conn: &mut PgConnection, ids: &[BackupId]) -> sqlx::Result<()> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    sqlx::query!("update guest_backups set state = 'ready' where id = any($1) and state = 'removing'", &ids)
        .execute(conn)
        .await
        .map(drop)
}

/// They are gone.
pub async fn delete(conn: &mut PgConnection, ids: &[BackupId]) -> sqlx::Result<()> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    sqlx::query!("delete from guest_backups where id = any($1)", &ids).execute(conn).await.map(drop)
}

/// What they are called in their repository, of those that are there.
pub async fn snapshots(conn: &mut PgConnection, ids: &[BackupId]) -> sqlx::Result<Vec<String>> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let found = sqlx::query_scalar!(
        r#"select snapshot as "snapshot!" from guest_backups where id = any($1) and snapshot is not null"#,
        &ids
    );
    found.fetch_all(conn).await
}

/// What one is called in its repository, and how much is in it.
pub async fn snapshot(conn: &mut PgConnection, id: BackupId) -> sqlx::Result<Option<(String, Bytes)>> {
    let row = sqlx::query!(
        r#"select snapshot as "snapshot!", bytes as "bytes!" from guest_backups where id = $1 and state = 'ready'"#,
        id.0
    );
    row.fetch_optional(conn).await?.map(|row| Ok((row.snapshot, Bytes(number(row.bytes)?)))).transpose()
}

/// The address that the guest had when it was taken; none where an earlier release took it.
pub async fn address(conn: &mut PgConnection, id: BackupId) -> sqlx::Result<Option<Ipv4Addr>> {
    let found = sqlx::query_scalar!("select ip from guest_backups where id = $1", id.0).fetch_optional(conn).await?;
    word_opt(found.flatten().as_deref())
}

/// What opens the repository of a project, sealed; the given one where there is none yet.
pub async fn password(conn: &mut PgConnection, project: ProjectId, fresh: &[u8]) -> sqlx::Result<Vec<u8>> {
    sqlx::query!(
        "insert into backup_repositories (project_id, password_sealed) values ($1, $2) on conflict do nothing",
        project.0,
        fresh
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query_scalar!("select password_sealed from backup_repositories where project_id = $1", project.0)
        .fetch_one(conn)
        .await
}
