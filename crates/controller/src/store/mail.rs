//! What is queued to be told by letter, who wants which, and what of an event is needed to tell of it.

use std::collections::BTreeMap;

use corpus_api::mail::MailChoice;
use corpus_domain::{DeploymentId, Environment, GuestId, MailDelivery, MailKind, MailPreference, ProjectId, UserId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::notices::SeenBy;
use super::word;
use crate::mail::{GuestLetter, Letter};

/// Queues it for each of these members who has an address and wants to be told, once for each event: what is
/// urgent for now, what they want once a day for the next morning, the rest for a minute later, with what comes
/// until then.
pub async fn enqueue(
    conn: &mut PgConnection,
    event: &str,
    to: &[UserId],
    letter: &Letter,
    seen_by: SeenBy,
) -> sqlx::Result<()> {
    let kind = letter.kind();
    let by_default = kind.map_or(MailDelivery::AtOnce, MailKind::default_delivery);
    let (project, for_ops) = match seen_by {
        SeenBy::Project(project) => (Some(project.0), false),
        SeenBy::Ops => (None, true),
        SeenBy::Each | SeenBy::Claim(_) => (None, false),
    };
    let about = serde_json::to_value(letter).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let users: Vec<Uuid> = to.iter().map(|id| id.0).collect();
    let ids: Vec<Uuid> = users.iter().map(|_| Uuid::now_v7()).collect();
    sqlx::query!(
        "insert into mail_queue (id, key, user_id, letter, kind, project_id, for_ops, urgent, digest, due_at)
         select told.id, $3 || ':' || u.id, u.id, $4, $5, $6, $7, $8, wanted.delivery = 'digest',
             case when wanted.delivery = 'digest' then
                 (date_trunc('day', now() at time zone 'utc' - interval '6 h') + interval '30 h') at time zone 'utc'
             when $8 then now() else now() + interval '1 minute' end
         from unnest($1::uuid[], $2::uuid[]) as told (id, user_id)
         join users u on u.id = told.user_id and u.disabled_at is null and u.mail <> ''
         left join mail_preferences p on p.user_id = u.id
         cross join lateral (
             select case when $5::text is null then 'at_once' when p.wants = 'none' then 'never'
                 else coalesce(p.kinds ->> $5, $9) end as delivery) wanted
         where wanted.delivery <> 'never' and ($6::uuid is null or exists (select 1 from projects where id = $6))
         order by u.id
         on conflict (key) do nothing",
        &ids,
        &users,
        event,
        about,
        kind.map(MailKind::as_str),
        project,
        for_ops,
        letter.is_urgent(),
        by_default.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Which mail the member wants.
pub async fn preference(conn: &mut PgConnection, user: UserId) -> sqlx::Result<MailChoice> {
    let chosen = sqlx::query!("select wants, kinds from mail_preferences where user_id = $1", user.0);
    let Some(row) = chosen.fetch_optional(conn).await? else { return Ok(MailChoice::of(MailPreference::Own)) };
    Ok(MailChoice::new(word(&row.wants)?, &kinds(&row.kinds)))
}

/// What this release knows of it.
fn kinds(kept: &Value) -> BTreeMap<MailKind, MailDelivery> {
    let all = kept.as_object().into_iter().flatten();
    all.filter_map(|(kind, delivery)| Some((kind.parse().ok()?, delivery.as_str()?.parse().ok()?))).collect()
}

/// Sets which mail the member wants; kinds that are not among those chosen stay as they are.
pub async fn set_preference(
    conn: &mut PgConnection,
    user: UserId,
    wants: MailPreference,
    chosen: &BTreeMap<MailKind, MailDelivery>,
) -> sqlx::Result<()> {
    let chosen = chosen.iter().map(|(kind, delivery)| (kind.to_string(), Value::from(delivery.as_str())));
    sqlx::query!(
        "insert into mail_preferences (user_id, wants, kinds) values ($1, $2, $3)
         on conflict (user_id) do update
             set wants = excluded.wants, kinds = mail_preferences.kinds || excluded.kinds",
        user.0,
        wants.as_str(),
        Value::Object(chosen.collect()),
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

/// A guest, as far as a letter needs it.
pub async fn guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<(ProjectId, GuestLetter)>> {
    let row = sqlx::query!(
        "select g.name, g.environment, g.ssh_port, g.project_id, p.name as project, n.address
         from guests g join projects p on p.id = g.project_id join nodes n on n.id = g.node_id where g.id = $1",
        guest.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let letter = GuestLetter {
        guest,
        name: word(&row.name)?,
        project: word(&row.project)?,
        environment: word(&row.environment)?,
        ssh: row.ssh_port.map(|port| format!("ssh -p {port} sysadmin@{}", row.address)),
        git: None,
        hosts: Vec::new(),
        pushed_to: false,
    };
    Ok(Some((ProjectId(row.project_id), letter)))
}
