//! Letters that are to be sent, and who wants which.

use corpus_domain::{DeploymentId, Environment, MailPreference, ProjectId, UserId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::word;
use crate::mail::Letter;

/// A letter that is to be sent now.
#[derive(Debug)]
pub struct Due {
    /// Its id.
    pub id: Uuid,
    /// What it is about and for whom.
    pub key: String,
    /// The addressee.
    pub to: String,
    /// What it says.
    pub letter: Letter,
    /// How often it was tried, this time included.
    pub attempts: i32,
}

/// Enqueues a letter to each of these members who has an address, once for each event.
pub async fn enqueue(conn: &mut PgConnection, event: &str, to: &[UserId], letter: &Letter) -> sqlx::Result<()> {
    let letter = serde_json::to_value(letter).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let users: Vec<Uuid> = to.iter().map(|id| id.0).collect();
    let ids: Vec<Uuid> = users.iter().map(|_| Uuid::now_v7()).collect();
    sqlx::query!(
        "insert into mail_queue (id, key, user_id, letter)
         select letter.id, $3 || ':' || u.id, u.id, $4
         from unnest($1::uuid[], $2::uuid[]) as letter (id, user_id)
         join users u on u.id = letter.user_id and u.disabled_at is null and u.mail <> ''
         on conflict (key) do nothing",
        &ids,
        &users,
        event,
        letter,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Takes letters that are due; they are due again after a while that grows, from half a minute
/// to an hour, unless it is told that they were sent. No two servers take the same.
pub async fn claim(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"update mail_queue m
           set attempts = attempts + 1, next_try = now() + least(interval '30 s' * power(2, attempts), interval '1 h')
           from users u
           where u.id = m.user_id and m.id in (
               select id from mail_queue where sent_at is null and given_up_at is null and next_try <= now()
               order by next_try limit $1 for update skip locked)
           returning m.id, m.key, m.letter, m.attempts, u.mail as "mail?""#,
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let letter = decoded(row.letter)?;
            Ok(Due { id: row.id, key: row.key, to: row.mail.unwrap_or_default(), letter, attempts: row.attempts })
        })
        .collect()
}

fn decoded(letter: Value) -> sqlx::Result<Letter> {
    serde_json::from_value(letter).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The relay has taken it.
pub async fn sent(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("update mail_queue set sent_at = now(), error = null where id = $1", id).execute(conn).await.map(drop)
}

/// The relay has not taken it.
pub async fn not_sent(conn: &mut PgConnection, id: Uuid, error: &str) -> sqlx::Result<()> {
    sqlx::query!("update mail_queue set error = $2 where id = $1", id, error).execute(conn).await.map(drop)
}

/// Gives up what could not be sent for a day, and tells it with the last error; forgets what is
/// over since a month.
pub async fn give_up(conn: &mut PgConnection) -> sqlx::Result<Vec<(String, String)>> {
    sqlx::query!("delete from mail_queue where created_at < now() - interval '30 days'").execute(&mut *conn).await?;
    let rows = sqlx::query!(
        "update mail_queue set given_up_at = now()
         where sent_at is null and given_up_at is null and created_at < now() - interval '1 day'
         returning key, error",
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.key, row.error.unwrap_or_else(|| "mail is not set up".to_owned()))).collect())
}

/// Which mail the member wants.
pub async fn preference(conn: &mut PgConnection, user: UserId) -> sqlx::Result<MailPreference> {
    let wants = sqlx::query_scalar!("select wants from mail_preferences where user_id = $1", user.0);
    wants.fetch_optional(conn).await?.map_or(Ok(MailPreference::Own), |wants| word(&wants))
}

/// Sets which mail the member wants.
pub async fn set_preference(conn: &mut PgConnection, user: UserId, wants: MailPreference) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into mail_preferences (user_id, wants) values ($1, $2)
         on conflict (user_id) do update set wants = excluded.wants",
        user.0,
        wants.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Who is told how a deployment ended: the members of the project who want all of it, and those
/// of `own` who want what is theirs.
pub async fn of_deployment(conn: &mut PgConnection, project: ProjectId, own: &[UserId]) -> sqlx::Result<Vec<UserId>> {
    let own: Vec<Uuid> = own.iter().map(|id| id.0).collect();
    let rows = sqlx::query_scalar!(
        "select u.id from users u left join mail_preferences p on p.user_id = u.id
         where (u.ops or exists (select 1 from memberships m where m.user_id = u.id and m.project_id = $1))
           and ((coalesce(p.wants, 'own') <> 'none' and u.id = any($2))
             or (p.wants = 'all' and exists (select 1 from memberships m where m.user_id = u.id and m.project_id = $1)))
         order by u.id",
        project.0,
        &own,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(UserId).collect())
}

/// Who is told of a new platform: who asked for it, and the operators.
pub async fn of_platform(conn: &mut PgConnection, project: ProjectId, by: Option<UserId>) -> sqlx::Result<Vec<UserId>> {
    let rows = sqlx::query_scalar!(
        "select u.id from users u left join mail_preferences p on p.user_id = u.id
         where coalesce(p.wants, 'own') <> 'none'
           and (u.ops or (u.id = $1 and exists (select 1 from memberships m where m.user_id = u.id and m.project_id = $2)))
         order by u.id",
        by.map(|id| id.0),
        project.0,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(UserId).collect())
}

/// A deployment's row, as far as a letter needs it.
#[derive(Debug)]
pub struct Ended {
    /// Its project.
    pub project_id: Uuid,
    /// The project's name.
    pub project: String,
    /// Its environment.
    pub environment: String,
    /// Its number.
    pub number: i64,
    /// The guest, when it is not the environment's first one.
    pub guest: Option<String>,
    /// Its state.
    pub state: String,
    /// What set it off.
    pub trigger: String,
    /// Who, if a member.
    pub by_id: Option<Uuid>,
    /// Who, for people.
    pub by: String,
    /// The commit's subject.
    pub subject: Option<String>,
    /// Why it failed.
    pub fault: Option<String>,
    /// Its report.
    pub report: Option<Value>,
    /// The number of the last one of the environment before it that ran, and who made it, if it failed.
    pub failed_before: Option<i64>,
    /// Whose that was.
    pub failed_by: Option<Uuid>,
}

/// The deployment, with the one before it if that failed. Drills, and what never ran, don't count;
/// and on a follower only that it is not live there, though it is on the leader.
pub async fn ended(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<Ended>> {
    sqlx::query_as!(
        Ended,
        r#"select d.project_id, p.name as project, d.environment, d.number,
                  case when l.id is not null then d.guest end as guest, d.state, d.trigger, d.by_id, d.by,
                  d.subject, d.fault, d.report, b.number as "failed_before?", b.by_id as "failed_by?"
           from deployments d join projects p on p.id = d.project_id
           left join deployments l on l.id = d.leader_id
           left join lateral (
               select number, by_id, state from deployments
               where project_id = d.project_id and environment = d.environment and number < d.number
                 and leader_id is null
                 and trigger <> 'drill' and state in ('live', 'rolled_back', 'broken')
               order by number desc limit 1
           ) b on b.state <> 'live'
           where d.id = $1 and (l.id is null or (l.state = 'live' and d.state <> 'live'))"#,
        id.0,
    )
    .fetch_optional(conn)
    .await
}

/// The number of a deployment.
pub async fn number(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!("select number from deployments where id = $1", id.0).fetch_optional(conn).await
}

/// A line of a deployment's log.
pub async fn line(conn: &mut PgConnection, id: DeploymentId, line: i64) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select text from deployment_log where deployment_id = $1 and number = $2", id.0, line)
        .fetch_optional(conn)
        .await
}

/// An environment, as far as a letter needs it.
#[derive(Debug)]
pub struct Platform {
    /// The project's name.
    pub project: String,
    /// Its guest.
    pub guest_id: Uuid,
    /// The guest's name.
    pub guest: String,
    /// The address of the guest's node.
    pub address: String,
    /// The node's port that leads to the guest's SSH.
    pub ssh_port: Option<i32>,
    /// The names that lead there.
    pub hosts: Vec<String>,
    /// Who asked for it.
    pub by_id: Option<Uuid>,
    /// By login name.
    pub by: Option<String>,
}

/// The environment.
pub async fn platform(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Option<Platform>> {
    sqlx::query_as!(
        Platform,
        r#"select p.name as project, g.id as guest_id, g.name as guest, n.address, g.ssh_port, e.created_by as by_id,
                  u.login as "by?",
                  array(select d.name from dns_names d where d.guest_id = g.id and d.state = 'attached'
                        order by d.created_at) as "hosts!"
           from environments e join projects p on p.id = e.project_id
           join environment_guests l
               on l.project_id = e.project_id and l.environment = e.environment and l.role = 'leader'
           join guests g on g.id = l.guest_id join nodes n on n.id = g.node_id left join users u on u.id = e.created_by
           where e.project_id = $1 and e.environment = $2"#,
        project.0,
        environment.as_str(),
    )
    .fetch_optional(conn)
    .await
}
