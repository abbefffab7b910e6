//! Backups of the controller: those that were wanted, and what became of each. One waits or is taken at a time.

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_api::controller_backups::{ControllerBackup, ControllerRestore};
use corpus_domain::{Bytes, ControllerBackupId, ControllerBackupState, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::number;

/// What was taken, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its name in the repository.
    pub snapshot: String,
    /// How much is in it.
    pub bytes: u64,
    /// How much of that was new.
    pub added_bytes: u64,
}

/// Wants one; tells which, or nothing when one waits or is taken already.
pub async fn want(conn: &mut PgConnection, by: Option<UserId>) -> sqlx::Result<Option<ControllerBackupId>> {
    let id = Uuid::now_v7();
    let wanted = sqlx::query_scalar!(
        "insert into controller_backups (id, wanted_by) values ($1, $2)
         on conflict ((true)) where ended_at is null do nothing returning id",
        id,
        by.map(|user| user.0)
    );
    Ok(wanted.fetch_optional(conn).await?.map(ControllerBackupId))
}

/// Whether one is to be taken: somebody wants it, or the last was wanted so long ago. One that failed is tried again
/// after a while.
pub async fn is_due(conn: &mut PgConnection, every: Option<Duration>, again: Duration) -> sqlx::Result<bool> {
    let due = sqlx::query_scalar!(
        r#"select exists (select from controller_backups where began_at is null)
            or coalesce($1::float8 > 0
                and not exists (select from controller_backups
                    where snapshot is not null and wanted_at > now() - make_interval(secs => $1))
                and not exists (select from controller_backups
                    where error is not null and ended_at > now() - make_interval(secs => $2)), false) as "due!""#,
        every.map(|every| every.as_secs_f64()),
        again.as_secs_f64(),
    );
    due.fetch_one(conn).await
}

/// Begins the one that is wanted, or one that nobody asked for. What another began and did not end has no server any
/// more: it is told why it ended. Only for who alone takes backups of this controller.
pub async fn begin(conn: &mut PgConnection) -> sqlx::Result<ControllerBackupId> {
    sqlx::query!(
        "update controller_backups set ended_at = now(), error = 'the server that took it ended before it was whole'
         where ended_at is null and began_at is not null"
    )
    .execute(&mut *conn)
    .await?;
    let begun = sqlx::query_scalar!(
        "insert into controller_backups (id, began_at) values ($1, now())
         on conflict ((true)) where ended_at is null do update set began_at = now() returning id",
        Uuid::now_v7()
    );
    begun.fetch_one(conn).await.map(ControllerBackupId)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Keeps how one ended: what was taken, or why not.
pub async fn end(conn: &mut PgConnection, id: ControllerBackupId, how: Result<&Taken, &str>) -> sqlx::Result<()> {
    let (taken, error) = (how.ok(), how.err());
    sqlx::query!(
        "update controller_backups set ended_at = now(), snapshot = $2, bytes = $3, added_bytes = $4, error = $5
         where id = $1 and ended_at is null",
        id.0,
        taken.map(|taken| taken.snapshot.as_str()),
        taken.map(|taken| signed(taken.bytes)),
        taken.map(|taken| signed(taken.added_bytes)),
        error,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The last ones that were wanted, the newest first.
pub async fn last(conn: &mut PgConnection, limit: u32) -> sqlx::Result<Vec<ControllerBackup>> {
    let rows = sqlx::query!(
        r#"select b.id, u.login as "by?", b.wanted_at, b.began_at, b.ended_at, b.snapshot, b.bytes, b.added_bytes, b.error
         from controller_backups b left join users u on u.id = b.wanted_by
         order by b.wanted_at desc, b.id desc limit $1"#,
        i64::from(limit)
    );
    let rows = rows.fetch_all(conn).await?;
    rows.into_iter()
        .map(|row| {
            Ok(ControllerBackup {
                id: ControllerBackupId(row.id),
                state: match (row.began_at, row.ended_at, &row.error) {
                    (None, ..) => ControllerBackupState::Wanted,
                    (_, None, _) => ControllerBackupState::Running,
                    (_, _, None) => ControllerBackupState::Done,
                    _ => ControllerBackupState::Failed,
                },
                wanted_by: row.by,
                wanted_at: row.wanted_at,
                began_at: row.began_at,
                ended_at: row.ended_at,
                snapshot: row.snapshot,
                bytes: row.bytes.map(number).transpose()?.map(Bytes),
                added_bytes: row.added_bytes.map(number).transpose()?.map(Bytes),
                error: row.error,
            })
        })
        .collect()
}

/// When the newest was begun that is whole.
pub async fn newest_at(conn: &mut PgConnection) -> sqlx::Result<Option<DateTime<Utc>>> {
    let newest = sqlx::query_scalar!("select max(began_at) from controller_backups where snapshot is not null");
    newest.fetch_one(conn).await
}

/// Keeps that this controller was brought back from a backup: that one, which was being taken when its database was
/// copied, is whole; what was wanted then is not any more.
pub async fn restored(conn: &mut PgConnection, taken_at: DateTime<Utc>, from: &Taken) -> sqlx::Result<()> {
    sqlx::query!("delete from controller_backups where began_at is null").execute(&mut *conn).await?;
    let own = sqlx::query_scalar!("select id from controller_backups where ended_at is null");
    if let Some(own) = own.fetch_optional(&mut *conn).await? {
        end(&mut *conn, ControllerBackupId(own), Ok(from)).await?;
    }
    sqlx::query!("insert into controller_restores (taken_at, snapshot) values ($1, $2)", taken_at, from.snapshot)
        .execute(conn)
        .await
        .map(drop)
}

/// When it was brought back, the last time.
pub async fn last_restore(conn: &mut PgConnection) -> sqlx::Result<Option<ControllerRestore>> {
    sqlx::query_as!(
        ControllerRestore,
        "select restored_at, taken_at from controller_restores order by restored_at desc limit 1"
    )
    .fetch_optional(conn)
    .await
}
