//! What of the first steps is done: of the installation, and of what a member has.

use corpus_domain::{ProjectId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

/// What there is.
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
#[derive(Debug)]
pub struct There {
    /// A node is linked.
    pub node: bool,
    /// One is ready for guests.
    pub ready: bool,
    /// A zone is there.
    pub zone: bool,
    /// A project is there, of whomever.
    pub project: bool,
    /// They have a key.
    pub key: bool,
    /// One of their projects has a guest.
    pub guest: bool,
    /// One of their projects had something live.
    pub live: bool,
}

/// What there is for a member of these projects; none for an operator, for whom everybody's counts.
pub async fn there(conn: &mut PgConnection, user: UserId, projects: Option<&[ProjectId]>) -> sqlx::Result<There> {
    let projects: Option<Vec<Uuid>> = projects.map(|all| all.iter().map(|project| project.0).collect());
    sqlx::query_as!(
        There,
        r#"
        select exists (select from nodes) as "node!",
            exists (select from nodes where state = 'ready') as "ready!",
            exists (select from zones) as "zone!",
            exists (select from projects) as "project!",
            exists (select from ssh_keys where user_id = u.id) as "key!",
            exists (select from guests where $2::uuid[] is null or project_id = any($2)) as "guest!",
            exists (select from deployments
                where state = 'live' and leader_id is null and ($2::uuid[] is null or project_id = any($2))) as "live!"
        from users u where u.id = $1
        "#,
        user.0,
        projects.as_deref(),
    )
    .fetch_one(conn)
    .await
}

/// Whether they dismissed it, or have seen it done.
pub async fn is_over(conn: &mut PgConnection, user: UserId) -> sqlx::Result<bool> {
    let sql =
        sqlx::query_scalar!("select first_steps_dismissed_at is not null as \"is!\" from users where id = $1", user.0);
    sql.fetch_one(conn).await
}

/// Keeps that they want to see it no more, or need not: whether they did it or it is done.
pub async fn finish(conn: &mut PgConnection, users: &[UserId]) -> sqlx::Result<()> {
    let users: Vec<Uuid> = users.iter().map(|user| user.0).collect();
    sqlx::query!(
        "update users set first_steps_dismissed_at = now() where id = any($1) and first_steps_dismissed_at is null",
        &users,
    )
    .execute(conn)
    .await
    .map(drop)
}
