//! Snapshots of guests: what is kept on their nodes, and what is being done with each.

use corpus_api::snapshots::Snapshot;
use corpus_domain::{Bytes, GuestId, SnapshotId, SnapshotState, UserId};
use sqlx::PgConnection;

use super::guests::{GuestRow, bytes};
use super::{number, word, word_opt};

/// Notes one that is about to be taken, and that it may take so much storage.
pub async fn insert(
    conn: &mut PgConnection,
    id: SnapshotId,
    (guest, storage): (&GuestRow, Bytes),
    comment: Option<&str>,
    by: Option<UserId>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into snapshots (id, guest_id, project_id, node_id, storage, comment, created_by)
         values ($1, $2, $3, $4, $5, $6, $7)",
        id.0,
        guest.id.0,
        guest.project_id.0,
        guest.node_id.0,
        bytes(storage),
        comment,
        by.map(|by| by.0),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// How many a guest has, those that come and go too.
pub async fn count(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<i64> {
    sqlx::query_scalar!(r#"select count(*) as "count!" from snapshots where guest_id = $1"#, guest.0)
        .fetch_one(conn)
        .await
}

/// Those of a guest, the newest first.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<Snapshot>> {
    let rows = sqlx::query!(
        r#"select s.id, s.comment, s.state, s.bytes, s.taken_at, s.created_at, u.login as "login?"
         from snapshots s left join users u on u.id = s.created_by
         where s.guest_id = $1 order by s.created_at desc, s.id"#,
        guest.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(Snapshot {
            id: SnapshotId(row.id),
            comment: word_opt(row.comment.as_deref())?,
            state: word(&row.state)?,
            bytes: row.bytes.map(number).transpose()?.map(Bytes),
            taken_at: row.taken_at,
            asked_at: row.created_at,
            by: row.login,
        })
    });
    rows.collect()
}

/// Moves one of this guest from a state to another; tells whether it was there in that state.
pub async fn set_state(
    conn: &mut PgConnection,
    (id, guest): (SnapshotId, GuestId),
    from: SnapshotState,
    to: SnapshotState,
) -> sqlx::Result<bool> {
    let moved = sqlx::query!(
        "update snapshots set state = $4 where id = $1 and guest_id = $2 and state = $3",
        id.0,
        guest.0,
        from.as_str(),
        to.as_str(),
    );
    Ok(moved.execute(conn).await?.rows_affected() > 0)
}

/// The state of one of this guest.
pub async fn state(conn: &mut PgConnection, (id, guest): (SnapshotId, GuestId)) -> sqlx::Result<Option<SnapshotState>> {
    let found = sqlx::query_scalar!("select state from snapshots where id = $1 and guest_id = $2", id.0, guest.0);
    word_opt(found.fetch_optional(conn).await?.as_deref())
}

/// It is on the node, and there is so much in it: what it counts for from now on, if that is less. A node that lies takes
/// nothing of a quota by that.
pub async fn taken(conn: &mut PgConnection, id: SnapshotId, size: Bytes) -> sqlx::Result<()> {
    sqlx::query!(
        "update snapshots set state = 'ready', bytes = $2, storage = least(storage, $2), taken_at = coalesce(taken_at, now())
         where id = $1",
        id.0,
        bytes(size),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whatever was to be done with one that was taken is over.
pub async fn back(conn: &mut PgConnection, id: SnapshotId) -> sqlx::Result<()> {
    sqlx::query!("update snapshots set state = 'ready' where id = $1 and taken_at is not null", id.0)
        .execute(conn)
        .await
        .map(drop)
}

/// It is gone.
pub async fn delete(conn: &mut PgConnection, id: SnapshotId) -> sqlx::Result<()> {
    sqlx::query!("delete from snapshots where id = $1", id.0).execute(conn).await.map(drop)
}
