//! Members, projects, and who is what in which project.

use std::collections::BTreeMap;

use corpus_domain::{ProjectId, ProjectName, ProjectRole, UserId, UserName};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{word, word_opt};
use crate::authz::Principal;
use crate::views::ProjectView;

/// What a successful login tells of a member.
#[derive(Debug, Clone)]
pub struct SignIn {
    /// Where the account is kept: `ldap` or `local`.
    pub realm: &'static str,
    /// The login name.
    pub login: UserName,
    /// The name for people.
    pub display_name: String,
    /// The mail address.
    pub mail: Option<String>,
    /// Whether the member is of the operators.
    pub ops: bool,
    /// The member's role in each project, by its name.
    pub roles: Vec<(ProjectName, ProjectRole)>,
}

/// Records a login: the member and the roles are as the directory says now.
pub async fn sign_in(conn: &mut PgConnection, who: &SignIn) -> sqlx::Result<UserId> {
    let id = sqlx::query_scalar!(
        "insert into users (id, realm, login, display_name, mail, ops, last_login_at)
         values ($1, $2, $3, $4, $5, $6, now())
         on conflict (realm, login) do update set display_name = excluded.display_name, mail = excluded.mail,
             ops = excluded.ops, last_login_at = now(), disabled_at = null
         returning id",
        Uuid::now_v7(),
        who.realm,
        who.login.as_str(),
        who.display_name,
        who.mail,
        who.ops,
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query!("delete from memberships where user_id = $1", id).execute(&mut *conn).await?;
    for (project, role) in &who.roles {
        let project = ensure_project(conn, project).await?;
        sqlx::query!(
            "insert into memberships (user_id, project_id, role) values ($1, $2, $3)
             on conflict (user_id, project_id) do update set role = excluded.role",
            id,
            project.0,
            role.as_str(),
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(UserId(id))
}

/// The project of that name; made when it is not there.
pub async fn ensure_project(conn: &mut PgConnection, name: &ProjectName) -> sqlx::Result<ProjectId> {
    sqlx::query_scalar!(
        "insert into projects (id, name) values ($1, $2) on conflict (name) do update set name = excluded.name returning id",
        Uuid::now_v7(),
        name.as_str(),
    )
    .fetch_one(conn)
    .await
    .map(ProjectId)
}

/// The member as principal; none when unknown or disabled.
pub async fn principal(conn: &mut PgConnection, id: UserId) -> sqlx::Result<Option<Principal>> {
    let Some(row) =
        sqlx::query!("select login, display_name, ops from users where id = $1 and disabled_at is null", id.0)
            .fetch_optional(&mut *conn)
            .await?
    else {
        return Ok(None);
    };
    let memberships =
        sqlx::query!("select project_id, role from memberships where user_id = $1", id.0).fetch_all(conn).await?;
    let mut roles = BTreeMap::new();
    for membership in memberships {
        roles.insert(ProjectId(membership.project_id), word(&membership.role)?);
    }
    let login: UserName = word(&row.login)?;
    Ok(Some(Principal { id, login, display_name: row.display_name, ops: row.ops, roles }))
}

/// The projects that the principal may see.
pub async fn projects(conn: &mut PgConnection, principal: &Principal) -> sqlx::Result<Vec<ProjectView>> {
    let rows = sqlx::query!(
        "select p.id, p.name, m.role as \"role?\" from projects p
         left join memberships m on m.project_id = p.id and m.user_id = $1
         where $2 or m.role is not null order by p.name",
        principal.id.0,
        principal.ops,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ProjectView { id: ProjectId(row.id), name: word(&row.name)?, role: word_opt(row.role.as_deref())? })
        })
        .collect()
}
