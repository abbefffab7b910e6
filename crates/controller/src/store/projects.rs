//! Projects and their members. A role is given by the directory or here, and of several the
//! strongest counts: the view `member_roles` says which.

use std::collections::BTreeMap;

use corpus_domain::{ProjectId, ProjectName, ProjectRole, UserId, UserName};
use sqlx::PgConnection;

use super::{word, word_opt};

/// Keeps a project; a name that is there already breaks the unique rule.
pub async fn insert(conn: &mut PgConnection, id: ProjectId, name: &ProjectName) -> sqlx::Result<()> {
    sqlx::query!("insert into projects (id, name) values ($1, $2)", id.0, name.as_str()).execute(conn).await.map(drop)
}

/// Forgets a project, its members, and its deployments; guests or environments of it break a
/// foreign key. Its end is in [`super::project_end`].
pub async fn delete(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<()> {
    sqlx::query!("delete from projects where id = $1", id.0).execute(conn).await.map(drop)
}

/// The project's name, held until the transaction ends, so that of changes that hold it one comes after the other. What
/// refers to the project goes on meanwhile: each change about it does, and two of them may come to hold it.
pub async fn hold(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Option<ProjectName>> {
    let name = sqlx::query_scalar!("select name from projects where id = $1 for no key update", id.0);
    word_opt(name.fetch_optional(conn).await?.as_deref())
}

/// The same alone: what is about the project is over, or begins when the transaction has ended.
pub async fn hold_alone(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Option<ProjectName>> {
    let name = sqlx::query_scalar!("select name from projects where id = $1 for update", id.0);
    word_opt(name.fetch_optional(conn).await?.as_deref())
}

/// The project of that name.
pub async fn by_name(conn: &mut PgConnection, name: &ProjectName) -> sqlx::Result<Option<ProjectId>> {
    sqlx::query_scalar!("select id from projects where name = $1", name.as_str())
        .fetch_optional(conn)
        .await
        .map(|found| found.map(ProjectId))
}

/// The project that a preview is of; any other project itself.
pub async fn root(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<ProjectId> {
    let parent = sqlx::query_scalar!("select parent_id from projects where id = $1", id.0);
    Ok(parent.fetch_optional(conn).await?.flatten().map_or(id, ProjectId))
}

/// Whether a project of that name was destroyed.
pub async fn is_former(conn: &mut PgConnection, name: &ProjectName) -> sqlx::Result<bool> {
    sqlx::query_scalar!("select exists (select from former_projects where name = $1) as \"former!\"", name.as_str(),)
        .fetch_one(conn)
        .await
}

/// The project's name.
pub async fn name(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Option<ProjectName>> {
    let name = sqlx::query_scalar!("select name from projects where id = $1", id.0).fetch_optional(conn).await?;
    word_opt(name.as_deref())
}

/// The member of that login name who is not disabled, held until the transaction ends: what else
/// changes the member's keys and roles waits. The directory's comes before a local one.
pub async fn hold_member(conn: &mut PgConnection, login: &UserName) -> sqlx::Result<Option<UserId>> {
    sqlx::query_scalar!(
        "select id from users where login = $1 and disabled_at is null order by realm limit 1 for update",
        login.as_str(),
    )
    .fetch_optional(conn)
    .await
    .map(|found| found.map(UserId))
}

/// What the directory and what Corpus made the member in the project.
pub async fn roles_of(
    conn: &mut PgConnection,
    id: ProjectId,
    user: UserId,
) -> sqlx::Result<(Option<ProjectRole>, Option<ProjectRole>)> {
    let rows =
        sqlx::query!("select source, role from memberships where project_id = $1 and user_id = $2", id.0, user.0)
            .fetch_all(conn)
            .await?;
    let of = |source: &str| rows.iter().find(|row| row.source == source).map(|row| word(&row.role)).transpose();
    Ok((of("ldap")?, of("corpus")?))
}

/// Gives a member a role here, or takes the one that was given here.
pub async fn set_role(
    conn: &mut PgConnection,
    id: ProjectId,
    user: UserId,
    role: Option<ProjectRole>,
) -> sqlx::Result<()> {
    let Some(role) = role else {
        return sqlx::query!(
            "delete from memberships where project_id = $1 and user_id = $2 and source = 'corpus'",
            id.0,
            user.0,
        )
        .execute(conn)
        .await
        .map(drop);
    };
    sqlx::query!(
        "insert into memberships (user_id, project_id, role, source) values ($1, $2, $3, 'corpus')
         on conflict (user_id, project_id, source) do update set role = excluded.role",
        user.0,
        id.0,
        role.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether anybody can still give roles in the project.
pub async fn has_maintainer(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        "select exists (select 1 from member_roles m join users u on u.id = m.user_id and u.disabled_at is null
                        where m.project_id = $1 and m.role = 'maintainer') as \"any!\"",
        id.0,
    )
    .fetch_one(conn)
    .await
}

/// Whether the project's developers may enter prod.
pub async fn is_entered_by_developers(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar!("select developers_enter_prod from projects where id = $1", id.0).fetch_optional(conn).await
}

/// Those of the projects that are there, and whether their developers may enter prod.
pub async fn entered_by_developers(
    conn: &mut PgConnection,
    ids: &[ProjectId],
) -> sqlx::Result<BTreeMap<ProjectId, bool>> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let rows = sqlx::query!("select id, developers_enter_prod from projects where id = any($1)", &ids);
    let rows = rows.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (ProjectId(row.id), row.developers_enter_prod)).collect())
}

/// Sets whether the project's developers may enter prod; tells whether that is a change.
pub async fn set_entered_by_developers(conn: &mut PgConnection, id: ProjectId, open: bool) -> sqlx::Result<bool> {
    let changed = sqlx::query!(
        "update projects set developers_enter_prod = $2 where id = $1 and developers_enter_prod <> $2",
        id.0,
        open,
    );
    Ok(changed.execute(conn).await?.rows_affected() == 1)
}
