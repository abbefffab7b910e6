//! Robots of projects, with what they hold. A robot's tokens and keys are kept where members' are; when its row goes,
//! the database ends them in the same statement.

use chrono::{DateTime, Utc};
use corpus_api::robots::RobotLine;
use corpus_api::robots::keys::DeployKey;
use corpus_api::tokens::Token;
use corpus_domain::{ActorName, Environment, Grant, ProjectId, ProjectName, ProjectRole, RobotName, SshKeyId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, tokens, word, word_opt};

/// What a robot is bounded to.
#[derive(Debug)]
pub struct Bounds<'a> {
    /// Its role.
    pub role: ProjectRole,
    /// Its environments, each once.
    pub environments: &'a [Environment],
    /// Until when it may.
    pub expires_at: Option<DateTime<Utc>>,
}

impl Bounds<'_> {
    fn words(&self) -> Vec<String> {
        self.environments.iter().map(ToString::to_string).collect()
    }
}

/// The robots of a project by name, those after a name; or the one of a name.
pub async fn of_project(
    conn: &mut PgConnection,
    project: ProjectId,
    one: Option<&RobotName>,
    after: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<RobotLine>> {
    let rows = sqlx::query!(
        r#"select r.name, r.role, r.environments, r.expires_at, r.created_at, maker.login as "maker?",
            (select count(*) from tokens t
             where t.user_id = r.user_id and t.revoked_at is null and t.expires_at > now()) as "tokens!",
            (select count(*) from ssh_keys k
             where k.user_id = r.user_id and (k.expires_at > now()) is not false) as "keys!",
            greatest((select max(last_used_at) from tokens t where t.user_id = r.user_id),
                     (select max(last_used_at) from ssh_keys k where k.user_id = r.user_id)) as last_used_at
         from robots r left join users maker on maker.id = r.created_by
         where r.project_id = $1 and ($2::text is null or r.name = $2) and ($3::text is null or r.name > $3)
         order by r.name limit $4"#,
        project.0,
        one.map(RobotName::as_str),
        after,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        Ok(RobotLine {
            robot: word(&row.name)?,
            role: word(&row.role)?,
            environments: row.environments.iter().map(|one| word(one)).collect::<sqlx::Result<_>>()?,
            expires_at: row.expires_at,
            created_by: word_opt(row.maker.as_deref())?,
            created_at: row.created_at,
            tokens: row.tokens,
            keys: row.keys,
            last_used_at: row.last_used_at,
        })
    })
    .collect()
}

/// Who is told what concerns these: each member themselves, and for a robot the maintainers of its project.
pub async fn answerable(conn: &mut PgConnection, own: &[UserId]) -> sqlx::Result<Vec<UserId>> {
    let own: Vec<Uuid> = own.iter().map(|id| id.0).collect();
    let found = sqlx::query_scalar!(
        r#"select id as "id!" from users where id = any($1) and realm <> 'robot'
         union select m.user_id from robots r join member_roles m on m.project_id = r.project_id
         where r.user_id = any($1) and m.role = 'maintainer'"#,
        &own,
    );
    Ok(found.fetch_all(conn).await?.into_iter().map(UserId).collect())
}

/// How many robots a project has.
pub async fn count(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<i64> {
    sqlx::query_scalar!("select count(*) as \"count!\" from robots where project_id = $1", project.0)
        .fetch_one(conn)
        .await
}

/// Keeps a robot; a name that another one of the project has breaks the unique rule. The account of one that ended
/// is taken up again, with nothing of what it held.
pub async fn insert(
    conn: &mut PgConnection,
    (project, of): (ProjectId, &ProjectName),
    name: &RobotName,
    bounds: &Bounds<'_>,
    by: UserId,
) -> sqlx::Result<UserId> {
    let login = ActorName::of_robot(of, name);
    let id = sqlx::query_scalar!(
        "insert into users (id, realm, login, display_name) values ($1, 'robot', $2, $3)
         on conflict (realm, login) do update set disabled_at = null
         returning id",
        Uuid::now_v7(),
        login.as_str(),
        name.as_str(),
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into robots (user_id, project_id, name, role, environments, expires_at, created_by)
         values ($1, $2, $3, $4, $5, $6, $7)",
        id,
        project.0,
        name.as_str(),
        bounds.role.as_str(),
        &bounds.words(),
        bounds.expires_at,
        by.0,
    )
    .execute(conn)
    .await?;
    Ok(UserId(id))
}

/// The robot of that name, held until the transaction ends: what it holds changes one at a time, and none is added
/// to one that ends.
pub async fn hold(conn: &mut PgConnection, project: ProjectId, name: &RobotName) -> sqlx::Result<Option<UserId>> {
    sqlx::query_scalar!(
        "select user_id from robots where project_id = $1 and name = $2 for update",
        project.0,
        name.as_str(),
    )
    .fetch_optional(conn)
    .await
    .map(|found| found.map(UserId))
}

/// The robot of that name.
pub async fn get(conn: &mut PgConnection, project: ProjectId, name: &RobotName) -> sqlx::Result<Option<UserId>> {
    sqlx::query_scalar!("select user_id from robots where project_id = $1 and name = $2", project.0, name.as_str())
        .fetch_optional(conn)
        .await
        .map(|found| found.map(UserId))
}

/// Sets what a robot is bounded to.
pub async fn set(conn: &mut PgConnection, robot: UserId, bounds: &Bounds<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "update robots set role = $2, environments = $3, expires_at = $4 where user_id = $1",
        robot.0,
        bounds.role.as_str(),
        &bounds.words(),
        bounds.expires_at,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Ends a robot.
pub async fn delete(conn: &mut PgConnection, robot: UserId) -> sqlx::Result<()> {
    sqlx::query!("delete from robots where user_id = $1", robot.0).execute(conn).await.map(drop)
}

/// A robot's tokens that are not revoked, the newest first; it has few.
pub async fn tokens(conn: &mut PgConnection, robot: UserId, limit: i64) -> sqlx::Result<Vec<Token>> {
    tokens::of_user(conn, robot, None, limit).await
}

/// A robot's deploy keys, the oldest first; it has few.
pub async fn keys(conn: &mut PgConnection, robot: UserId, limit: i64) -> sqlx::Result<Vec<DeployKey>> {
    let rows = sqlx::query!(
        r#"select id, algorithm, bits, fingerprint, comment, grant_ as "grant!", created_at, expires_at, last_used_at
         from ssh_keys where user_id = $1 and grant_ is not null order by id limit $2"#,
        robot.0,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        Ok(DeployKey {
            id: SshKeyId(row.id),
            algorithm: row.algorithm,
            bits: number(row.bits)?,
            fingerprint: row.fingerprint,
            comment: row.comment,
            scope: word(&row.grant)?,
            created_at: row.created_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
        })
    })
    .collect()
}

/// Makes a robot's key, which was just kept, a deploy key.
pub async fn set_key(
    conn: &mut PgConnection,
    key: SshKeyId,
    grant: Grant,
    expires_at: Option<DateTime<Utc>>,
) -> sqlx::Result<()> {
    sqlx::query!("update ssh_keys set grant_ = $2, expires_at = $3 where id = $1", key.0, grant.as_str(), expires_at)
        .execute(conn)
        .await
        .map(drop)
}

/// How many keys a robot has.
pub async fn count_keys(conn: &mut PgConnection, robot: UserId) -> sqlx::Result<i64> {
    sqlx::query_scalar!("select count(*) as \"count!\" from ssh_keys where user_id = $1", robot.0).fetch_one(conn).await
}
