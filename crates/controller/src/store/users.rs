//! Members and robots, projects, and who is what in which project. A robot's role is its own (`robots`), and counts
//! until the robot expires.

use std::collections::BTreeMap;

use corpus_api::me::OwnRole;
use corpus_domain::{ActorName, ProjectId, ProjectName, ProjectRole, UserId, UserName};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{device_logins, tokens, word, word_opt};
use corpus_api::Principal;
use corpus_api::principal::{Bounds, CameBy};

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
    /// The member's roles by the project's name; of several in one project the strongest counts.
    pub roles: Vec<(ProjectName, ProjectRole)>,
}

/// A member's one role in each project.
pub type Roles = BTreeMap<ProjectName, ProjectRole>;

impl SignIn {
    /// The role that counts in each project: the strongest, whatever the order of the groups.
    pub fn strongest(&self) -> Roles {
        let mut roles = Roles::new();
        for (project, role) in &self.roles {
            let counts = roles.entry(project.clone()).or_insert(*role);
            *counts = (*counts).max(*role);
        }
        roles
    }
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
    set_roles(conn, UserId(id), &who.strongest()).await?;
    Ok(UserId(id))
}

/// Replaces the roles that the directory gave to the member by these; those given here stay.
async fn set_roles(conn: &mut PgConnection, id: UserId, roles: &Roles) -> sqlx::Result<()> {
    sqlx::query!("delete from memberships where user_id = $1 and source = 'ldap'", id.0).execute(&mut *conn).await?;
    for (project, role) in roles {
        let project = ensure_project(conn, project).await?;
        sqlx::query!(
            "insert into memberships (user_id, project_id, role, source) values ($1, $2, $3, 'ldap')",
            id.0,
            project.0,
            role.as_str(),
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// The members of the directory who are not disabled, oldest first.
pub async fn of_directory(conn: &mut PgConnection) -> sqlx::Result<Vec<(UserId, UserName)>> {
    let rows = sqlx::query!("select id, login from users where realm = 'ldap' and disabled_at is null order by id")
        .fetch_all(conn)
        .await?;
    rows.into_iter().map(|row| Ok((UserId(row.id), word(&row.login)?))).collect()
}

/// Finds a member by login and holds the row until the transaction ends: keys and roles of
/// the member that change at the same time wait, so that none is missed.
pub async fn hold(conn: &mut PgConnection, realm: &str, login: &UserName) -> sqlx::Result<Option<UserId>> {
    sqlx::query_scalar!("select id from users where realm = $1 and login = $2 for update", realm, login.as_str())
        .fetch_optional(conn)
        .await
        .map(|found| found.map(UserId))
}

/// A member of the directory who is not disabled, held like [`hold`] does.
pub async fn hold_of_directory(conn: &mut PgConnection, id: UserId) -> sqlx::Result<Option<SignIn>> {
    let Some(row) = sqlx::query!(
        "select login, display_name, mail, ops from users
         where id = $1 and realm = 'ldap' and disabled_at is null for update",
        id.0,
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Ok(None);
    };
    let memberships = sqlx::query!(
        "select p.name, m.role from memberships m join projects p on p.id = m.project_id where m.user_id = $1 and m.source = 'ldap'",
        id.0,
    )
    .fetch_all(conn)
    .await?;
    let roles = memberships.into_iter().map(|of| Ok((word(&of.name)?, word(&of.role)?)));
    Ok(Some(SignIn {
        realm: "ldap",
        login: word(&row.login)?,
        display_name: row.display_name,
        mail: row.mail,
        ops: row.ops,
        roles: roles.collect::<sqlx::Result<_>>()?,
    }))
}

/// Takes over name, mail, ops and roles of a member who is known already.
pub async fn update(conn: &mut PgConnection, id: UserId, who: &SignIn) -> sqlx::Result<()> {
    sqlx::query!(
        "update users set display_name = $2, mail = $3, ops = $4 where id = $1",
        id.0,
        who.display_name,
        who.mail,
        who.ops,
    )
    .execute(&mut *conn)
    .await?;
    set_roles(conn, id, &who.strongest()).await
}

/// Disables a member: no role of the directory and no session is left, and those given here are
/// worth nothing meanwhile. The next login enables again.
/// Answers how many sessions there were.
pub async fn disable(conn: &mut PgConnection, id: UserId) -> sqlx::Result<u64> {
    sqlx::query!("update users set disabled_at = now() where id = $1", id.0).execute(&mut *conn).await?;
    set_roles(conn, id, &Roles::new()).await?;
    end_sessions(conn, id).await
}

/// Ends what a member has open: sessions are gone, and what else began in this epoch is over
/// within seconds. Answers how many sessions there were.
pub async fn end_sessions(conn: &mut PgConnection, id: UserId) -> sqlx::Result<u64> {
    tokens::revoke_all(conn, id).await?;
    device_logins::forget_of(conn, id).await?;
    sqlx::query!("update users set epoch = epoch + 1 where id = $1", id.0).execute(&mut *conn).await?;
    // The server keeps the member's id in its sessions under this name.
    let ended = sqlx::query!("delete from tower_sessions where data ->> 'member' = $1", id.to_string());
    Ok(ended.execute(conn).await?.rows_affected())
}

/// The project of that name; made when it is not there.
pub async fn ensure_project(conn: &mut PgConnection, name: &ProjectName) -> sqlx::Result<ProjectId> {
    // Apart, so that one that is there is not held: changes about it go on meanwhile.
    let made = sqlx::query!(
        "insert into projects (id, name) values ($1, $2) on conflict (name) do nothing",
        Uuid::now_v7(),
        name.as_str(),
    );
    made.execute(&mut *conn).await?;
    let id = sqlx::query_scalar!("select id from projects where name = $1", name.as_str());
    id.fetch_one(conn).await.map(ProjectId)
}

/// What the member or robot is called.
pub async fn login(conn: &mut PgConnection, id: UserId) -> sqlx::Result<Option<ActorName>> {
    let login = sqlx::query_scalar!("select login from users where id = $1", id.0).fetch_optional(conn).await?;
    word_opt(login.as_deref())
}

/// The member or robot as principal; none when unknown or disabled, or expired.
pub async fn principal(conn: &mut PgConnection, id: UserId) -> sqlx::Result<Option<Principal>> {
    Ok(principal_now(conn, id).await?.map(|(principal, _)| principal))
}

/// The same with the epoch: what the member began in an earlier one is over.
pub async fn principal_now(conn: &mut PgConnection, id: UserId) -> sqlx::Result<Option<(Principal, i32)>> {
    let row = sqlx::query!(
        r#"select u.login, u.display_name, u.ops, u.epoch, r.environments as "environments?"
         from users u left join robots r on r.user_id = u.id
         where u.id = $1 and u.disabled_at is null and (r.expires_at > now()) is not false"#,
        id.0,
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let roles = roles(conn, &[id.0]).await?.remove(&id).unwrap_or_default();
    let (login, robot) = (word(&row.login)?, row.environments.as_deref().map(bounds).transpose()?);
    let (display_name, ops, came_by) = (row.display_name, row.ops, CameBy::default());
    let principal = Principal { id, login, display_name, ops, roles, token: None, robot, came_by };
    Ok(Some((principal, row.epoch)))
}

/// What a robot is bounded to.
pub fn bounds(environments: &[String]) -> sqlx::Result<Bounds> {
    Ok(Bounds { environments: environments.iter().map(|one| word(one)).collect::<sqlx::Result<_>>()? })
}

/// The one role that each of the members has in each project, and so in the previews of it.
pub async fn roles(
    conn: &mut PgConnection,
    members: &[Uuid],
) -> sqlx::Result<BTreeMap<UserId, BTreeMap<ProjectId, ProjectRole>>> {
    let memberships = sqlx::query!(
        r#"select user_id as "user_id!", project_id as "project_id!", role as "role!" from member_roles
         where user_id = any($1)
         union all select user_id, project_id, role from robots where user_id = any($1)
         union all select r.user_id, p.id, r.role from robots r join projects p on p.parent_id = r.project_id
         where r.user_id = any($1)"#,
        members,
    )
    .fetch_all(conn)
    .await?;
    let mut roles: BTreeMap<UserId, BTreeMap<_, _>> = BTreeMap::new();
    for of in memberships {
        roles.entry(UserId(of.user_id)).or_default().insert(ProjectId(of.project_id), word(&of.role)?);
    }
    Ok(roles)
}

/// The member's role in each project, by the project's name.
pub async fn own_roles(conn: &mut PgConnection, id: UserId) -> sqlx::Result<Vec<OwnRole>> {
    let rows = sqlx::query!(
        r#"select p.name as "name!", m.role as "role!"
         from (select user_id, project_id, role from member_roles union all
               select user_id, project_id, role from robots) m join projects p on p.id = m.project_id
         where m.user_id = $1 and p.parent_id is null order by p.name"#,
        id.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(OwnRole { project: word(&row.name)?, role: word(&row.role)? })).collect()
}

/// Holds the member's row until the transaction ends, so that what is theirs changes one at a time.
pub async fn lock(conn: &mut PgConnection, id: UserId) -> sqlx::Result<()> {
    sqlx::query!("select id from users where id = $1 for update", id.0).fetch_optional(conn).await.map(drop)
}
