//! The users that all guests of a project have, beside those of their image.

use corpus_api::guest_users::GuestUserLine;
use corpus_domain::{Environment, GuestId, NodeId, ProjectId, UnixUser, UserId};
use corpus_protocol::GuestUser;
use sqlx::PgConnection;

use super::word;

/// A user and its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithKeys {
    /// What it is called.
    pub name: UnixUser,
    /// Lines of `authorized_keys(5)`.
    pub keys: Vec<String>,
}

/// Those of a project, by name.
pub async fn of_project(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<GuestUserLine>> {
    let rows = sqlx::query!(
        r#"select g.name, g.environments, g.sudo, g.keys, u.login as "login?", g.set_at
         from guest_users g left join users u on u.id = g.set_by where g.project_id = $1 order by g.name"#,
        project.0
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(GuestUserLine {
            user: word(&row.name)?,
            environments: row.environments.iter().map(|one| word(one)).collect::<sqlx::Result<_>>()?,
            sudo: row.sudo,
            keys: row.keys,
            by: row.login,
            at: row.set_at,
        })
    });
    rows.collect()
}

/// Sets one.
pub async fn set(
    conn: &mut PgConnection,
    (project, by): (ProjectId, UserId),
    user: &UnixUser,
    (environments, sudo, keys): (&[Environment], bool, &[String]),
) -> sqlx::Result<()> {
    let environments: Vec<String> = environments.iter().map(ToString::to_string).collect();
    let set = sqlx::query!(
        "insert into guest_users (project_id, name, environments, sudo, keys, set_by) values ($1, $2, $3, $4, $5, $6)
         on conflict (project_id, name) do update set environments = excluded.environments, sudo = excluded.sudo,
            keys = excluded.keys, set_by = excluded.set_by, set_at = now()",
        project.0,
        user.as_str(),
        &environments,
        sudo,
        keys,
        by.0,
    );
    set.execute(&mut *conn).await?;
    let had =
        sqlx::query!("update projects set had_guest_users = true where id = $1 and not had_guest_users", project.0);
    had.execute(conn).await.map(drop)
}

/// Whether a guest may have such users, also some that its project wants no more: they are in its images and backups.
pub async fn may_be_on(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<bool> {
    let had = sqlx::query_scalar!(
        "select o.had_guest_users from guests g join projects p on p.id = g.project_id
            join projects o on o.id = coalesce(p.parent_id, p.id) where g.id = $1",
        guest.0
    );
    Ok(had.fetch_optional(conn).await?.unwrap_or_default())
}

/// Takes one away; tells whether there was one.
pub async fn remove(conn: &mut PgConnection, project: ProjectId, user: &UnixUser) -> sqlx::Result<bool> {
    let gone = sqlx::query!("delete from guest_users where project_id = $1 and name = $2", project.0, user.as_str());
    Ok(gone.execute(conn).await?.rows_affected() == 1)
}

/// Those that a guest is to have.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<GuestUser>> {
    let rows = sqlx::query!(
        r#"select name as "name!", sudo as "sudo!" from users_of_guests where guest_id = $1 order by name"#,
        guest.0
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(GuestUser { name: word(&row.name)?, sudo: row.sudo })).collect()
}

/// Their keys.
pub async fn keys_of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<WithKeys>> {
    let rows =
        sqlx::query!(r#"select name as "name!", keys as "keys!" from users_of_guests where guest_id = $1"#, guest.0);
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(WithKeys { name: word(&row.name)?, keys: row.keys })).collect()
}

/// The same for each guest of a node.
pub async fn keys_on_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<(GuestId, WithKeys)>> {
    let rows = sqlx::query!(
        r#"select guest_id as "guest_id!", name as "name!", keys as "keys!" from users_of_guests where node_id = $1"#,
        node.0
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok((GuestId(row.guest_id), WithKeys { name: word(&row.name)?, keys: row.keys }))).collect()
}
