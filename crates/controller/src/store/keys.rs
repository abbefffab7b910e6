//! Members' SSH keys, and which of them enter which guest.

use std::collections::{BTreeMap, BTreeSet};

use corpus_api::keys::OwnKey;
use corpus_domain::{Door, GuestId, NodeId, ProjectId, SshKeyId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, users, word, word_opt};
use crate::ssh_keys::MemberKey;
use corpus_api::Principal;
use corpus_api::principal::CameBy;

/// Who has a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    /// The member.
    pub principal: Principal,
    /// What began in an earlier epoch of the member is over.
    pub epoch: i32,
}

/// A member's keys, the oldest first, those after one of them.
pub async fn of_user(
    conn: &mut PgConnection,
    user: UserId,
    after: Option<SshKeyId>,
    limit: i64,
) -> sqlx::Result<Vec<OwnKey>> {
    let rows = sqlx::query!(
        "select id, algorithm, bits, fingerprint, comment, created_at, last_used_at from ssh_keys
         where user_id = $1 and ($2::uuid is null or id > $2) order by id limit $3",
        user.0,
        after.map(|id| id.0),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let (id, bits) = (SshKeyId(row.id), number(row.bits)?);
        let (algorithm, fingerprint, comment) = (row.algorithm, row.fingerprint, row.comment);
        let (created_at, last_used_at) = (row.created_at, row.last_used_at);
        Ok(OwnKey { id, algorithm, bits, fingerprint, comment, created_at, last_used_at })
    })
    .collect()
}

/// Keeps a key; a fingerprint that is there already breaks the unique rule.
pub async fn insert(conn: &mut PgConnection, user: UserId, key: &MemberKey) -> sqlx::Result<SshKeyId> {
    let id = SshKeyId(Uuid::now_v7());
    sqlx::query!(
        "insert into ssh_keys (id, user_id, line, algorithm, bits, fingerprint, comment) values ($1, $2, $3, $4, $5, $6, $7)",
        id.0,
        user.0,
        key.line(),
        key.algorithm().as_str(),
        i32::try_from(key.bits()).unwrap_or(i32::MAX),
        key.fingerprint(),
        key.comment(),
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// A key that was removed.
#[derive(Debug)]
pub struct RemovedKey {
    /// The line by which it was added.
    pub line: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// Its comment.
    pub comment: String,
}

/// Removes a member's own key; none when it was not the member's.
pub async fn delete(conn: &mut PgConnection, user: UserId, id: SshKeyId) -> sqlx::Result<Option<RemovedKey>> {
    let removed = sqlx::query_as!(
        RemovedKey,
        "delete from ssh_keys where id = $1 and user_id = $2 returning line, fingerprint, comment",
        id.0,
        user.0,
    );
    removed.fetch_optional(conn).await
}

/// The lines of all members who may enter a guest: ops, maintainers of its project, and developers
/// of it unless it is one of prod that is closed to them. The view `guest_entrants` is the rule.
pub async fn lines_for_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"select concat_ws(' ', split_part(k.line, ' ', 1), split_part(k.line, ' ', 2), u.login) as "line!"
         from guest_entrants e join ssh_keys k on k.user_id = e.user_id join users u on u.id = e.user_id
         where e.guest_id = $1 order by k.line"#,
        guest.0,
    )
    .fetch_all(conn)
    .await
}

/// The same for each guest of a node, in the same order.
pub async fn lines_on_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<(GuestId, String)>> {
    let rows = sqlx::query!(
        r#"select e.guest_id as "id!", concat_ws(' ', split_part(k.line, ' ', 1), split_part(k.line, ' ', 2), u.login) as "line!"
         from guest_entrants e join ssh_keys k on k.user_id = e.user_id join users u on u.id = e.user_id
         where e.node_id = $1 order by k.line"#,
        node.0,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (GuestId(row.id), row.line)).collect())
}

/// The guests that the member may enter, each with its node.
pub async fn guests_of_user(conn: &mut PgConnection, user: UserId) -> sqlx::Result<BTreeSet<(NodeId, GuestId)>> {
    let rows = sqlx::query!(
        r#"select node_id as "node_id!", guest_id as "guest_id!" from guest_entrants where user_id = $1"#,
        user.0,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (NodeId(row.node_id), GuestId(row.guest_id))).collect())
}

/// Whether the member may enter the guest.
pub async fn may_enter(conn: &mut PgConnection, user: UserId, guest: GuestId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select 1 from guest_entrants where user_id = $1 and guest_id = $2) as "any!""#,
        user.0,
        guest.0,
    )
    .fetch_one(conn)
    .await
}

/// The nodes with guests of prod of a project.
pub async fn nodes_of_prod(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<BTreeSet<NodeId>> {
    let nodes = sqlx::query_scalar!(
        "select distinct node_id from guests where project_id = $1 and environment = 'prod'",
        project.0,
    )
    .fetch_all(conn)
    .await?;
    Ok(nodes.into_iter().map(NodeId).collect())
}

/// Takes a key from whoever holds it; tells who that was.
pub async fn delete_held(conn: &mut PgConnection, fingerprint: &str) -> sqlx::Result<Option<UserId>> {
    sqlx::query_scalar!("delete from ssh_keys where fingerprint = $1 returning user_id", fingerprint)
        .fetch_optional(conn)
        .await
        .map(|found| found.map(UserId))
}

/// Whose key has this fingerprint.
pub async fn owner(conn: &mut PgConnection, fingerprint: &str) -> sqlx::Result<Option<UserId>> {
    sqlx::query_scalar!("select user_id from ssh_keys where fingerprint = $1", fingerprint)
        .fetch_optional(conn)
        .await
        .map(|found| found.map(UserId))
}

/// Whether the member has any key.
pub async fn has_any(conn: &mut PgConnection, user: UserId) -> sqlx::Result<bool> {
    sqlx::query_scalar!("select exists (select 1 from ssh_keys where user_id = $1) as \"any!\"", user.0)
        .fetch_one(conn)
        .await
}

/// Who has the keys of these fingerprints and is not disabled, by fingerprint: in two queries for any number. A robot's
/// key is good for what it was made for, until its day or the robot's.
pub async fn holders(conn: &mut PgConnection, fingerprints: &[String]) -> sqlx::Result<BTreeMap<String, KeyHolder>> {
    let rows = sqlx::query!(
        r#"select k.fingerprint, k.grant_, u.id, u.login, u.display_name, u.ops, u.epoch,
                r.environments as "environments?"
         from ssh_keys k join users u on u.id = k.user_id and u.disabled_at is null
         left join robots r on r.user_id = u.id
         where k.fingerprint = any($1) and (k.expires_at > now()) is not false
           and (r.expires_at > now()) is not false"#,
        fingerprints,
    )
    .fetch_all(&mut *conn)
    .await?;
    let members: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let roles = users::roles(conn, &members).await?;
    rows.into_iter()
        .map(|row| {
            let (id, roles) = (UserId(row.id), roles.get(&UserId(row.id)).cloned().unwrap_or_default());
            let robot = row.environments.as_deref().map(users::bounds).transpose()?;
            let (login, token) = (word(&row.login)?, word_opt(row.grant_.as_deref())?);
            let (display_name, ops, came_by) = (row.display_name, row.ops, CameBy::door(Door::Git));
            let principal = Principal { id, login, display_name, ops, roles, token, robot, came_by };
            Ok((row.fingerprint, KeyHolder { principal, epoch: row.epoch }))
        })
        .collect()
}

/// Notes that git is used with a key now, once a minute at most.
pub async fn note_use(conn: &mut PgConnection, fingerprint: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update ssh_keys set last_used_at = now()
         where fingerprint = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')",
        fingerprint,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether a job waits that brings the keys of that moment to the guests of a node.
pub async fn sync_waits(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        "select exists (select 1 from jobs where node_id = $1 and kind = 'keys_sync' and state = 'waiting') as \"any!\"",
        node.0,
    )
    .fetch_one(conn)
    .await
}
