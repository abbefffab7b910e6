//! Snapshots of guests: what is kept on their nodes, and what is being done with each.

use corpus_api::snapshots::{Snapshot, SnapshotBefore};
use corpus_domain::{Bytes, DeploymentId, GuestId, GuestName, NodeId, ProjectId, SnapshotId, SnapshotState, UserId};
use sqlx::PgConnection;

use super::guests::{GuestRow, bytes};
use super::{number, word, word_opt};

/// What one is for.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// Somebody asked for it, with a comment.
    Asked(Option<&'a str>, UserId),
    /// It was time.
    Scheduled,
    /// They deploy.
    Before(DeploymentId, UserId),
}

/// Notes one that is about to be taken, and that it may take so much storage.
pub async fn insert(
    conn: &mut PgConnection,
    id: SnapshotId,
    (guest, storage): (&GuestRow, Bytes),
    what: What<'_>,
) -> sqlx::Result<()> {
    let (comment, by, deployment) = match what {
        What::Asked(comment, by) => (comment, Some(by), None),
        What::Scheduled => (None, None, None),
        What::Before(deployment, by) => (None, Some(by), Some(deployment)),
    };
    sqlx::query!(
        "insert into snapshots (id, guest_id, project_id, node_id, backing, storage, comment, created_by, deployment_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        id.0,
        guest.id.0,
        guest.project_id.0,
        guest.node_id.0,
        guest.backing.as_str(),
        bytes(storage),
        comment,
        by.map(|by| by.0),
        deployment.map(|deployment| deployment.0),
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
        r#"select s.id, s.comment, s.state, s.bytes, s.taken_at, s.created_at, u.login as "login?", s.deployment_id,
            d.number as "number?"
         from snapshots s left join users u on u.id = s.created_by left join deployments d on d.id = s.deployment_id
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
            before: row.deployment_id.map(|id| SnapshotBefore { deployment: DeploymentId(id), number: row.number }),
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

/// One of a project that a guest may be made of.
#[derive(Debug)]
pub struct Held {
    /// Of which guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// The node that has it.
    pub node: NodeId,
    /// What is being done with it.
    pub state: SnapshotState,
    /// How much there is in it, once it was taken.
    pub bytes: Option<Bytes>,
}

/// One of this project.
pub async fn in_project(conn: &mut PgConnection, (id, project): (SnapshotId, ProjectId)) -> sqlx::Result<Option<Held>> {
    let row = sqlx::query!(
        "select s.guest_id, g.name, s.node_id, s.state, s.bytes from snapshots s join guests g on g.id = s.guest_id
         where s.id = $1 and s.project_id = $2",
        id.0,
        project.0
    );
    let row = row.fetch_optional(conn).await?;
    row.map(|row| {
        Ok(Held {
            guest: GuestId(row.guest_id),
            name: word(&row.name)?,
            node: NodeId(row.node_id),
            state: word(&row.state)?,
            bytes: row.bytes.map(number).transpose()?.map(Bytes),
        })
    })
    .transpose()
}

/// How many of these were taken and are there.
pub async fn count_taken(conn: &mut PgConnection, ids: &[SnapshotId]) -> sqlx::Result<i64> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let found = sqlx::query_scalar!(
        r#"select count(*) as "count!" from snapshots where id = any($1) and taken_at is not null"#,
        &ids
    );
    found.fetch_one(conn).await
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
