//! Members' SSH keys, and which of them enter which guest.

use std::collections::BTreeSet;

use corpus_domain::{GuestId, NodeId, SshKeyId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::number;
use crate::ssh_keys::MemberKey;
use crate::views::KeyView;

/// A member's keys, oldest first.
pub async fn of_user(conn: &mut PgConnection, user: UserId) -> sqlx::Result<Vec<KeyView>> {
    let rows = sqlx::query!(
        "select id, algorithm, bits, fingerprint, comment, created_at from ssh_keys where user_id = $1 order by created_at",
        user.0,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(KeyView {
                id: SshKeyId(row.id),
                algorithm: row.algorithm,
                bits: number(row.bits)?,
                fingerprint: row.fingerprint,
                comment: row.comment,
                created_at: row.created_at,
            })
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

/// Removes a member's own key; tells its fingerprint, or none when it was not the member's.
pub async fn delete(conn: &mut PgConnection, user: UserId, id: SshKeyId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("delete from ssh_keys where id = $1 and user_id = $2 returning fingerprint", id.0, user.0)
        .fetch_optional(conn)
        .await
}

/// The lines of all members who may enter a guest: developers and maintainers of its project, and ops.
pub async fn lines_for_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"select concat_ws(' ', split_part(k.line, ' ', 1), split_part(k.line, ' ', 2), u.login) as "line!"
         from ssh_keys k
         join users u on u.id = k.user_id and u.disabled_at is null
         where u.ops or exists (
             select 1 from guests g join memberships m on m.project_id = g.project_id
             where g.id = $1 and m.user_id = u.id and m.role in ('developer', 'maintainer'))
         order by k.line"#,
        guest.0,
    )
    .fetch_all(conn)
    .await
}

/// The same for each guest of a node, in the same order.
pub async fn lines_on_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<(GuestId, String)>> {
    let rows = sqlx::query!(
        r#"select g.id, concat_ws(' ', split_part(k.line, ' ', 1), split_part(k.line, ' ', 2), u.login) as "line!"
         from guests g cross join ssh_keys k
         join users u on u.id = k.user_id and u.disabled_at is null
         where g.node_id = $1 and (u.ops or exists (
             select 1 from memberships m where m.project_id = g.project_id and m.user_id = u.id
                 and m.role in ('developer', 'maintainer')))
         order by k.line"#,
        node.0,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (GuestId(row.id), row.line)).collect())
}

/// The guests that the member may enter, each with its node.
pub async fn guests_of_user(conn: &mut PgConnection, user: UserId) -> sqlx::Result<BTreeSet<(NodeId, GuestId)>> {
    let rows = sqlx::query!(
        "select g.node_id, g.id from guests g join users u on u.id = $1 and u.disabled_at is null
         where u.ops or exists (select 1 from memberships m where m.user_id = u.id and m.project_id = g.project_id
                                and m.role in ('developer', 'maintainer'))",
        user.0,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (NodeId(row.node_id), GuestId(row.id))).collect())
}

/// Whether the member has any key.
pub async fn has_any(conn: &mut PgConnection, user: UserId) -> sqlx::Result<bool> {
    sqlx::query_scalar!("select exists (select 1 from ssh_keys where user_id = $1) as \"any!\"", user.0)
        .fetch_one(conn)
        .await
}

/// Whose key has this fingerprint.
pub async fn owner(conn: &mut PgConnection, fingerprint: &str) -> sqlx::Result<Option<UserId>> {
    sqlx::query_scalar!("select user_id from ssh_keys where fingerprint = $1", fingerprint)
        .fetch_optional(conn)
        .await
        .map(|found| found.map(UserId))
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
