//! What was sent to a webhook, as it is shown, sent again, and forgotten.

use chrono::{DateTime, Utc};
use corpus_api::webhooks::deliveries::WebhookDelivery;
use corpus_domain::{DeliveryState, DeploymentId, ProjectId, WebhookDeliveryId, WebhookEvent, WebhookId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, word};

/// As many that are over are kept of a webhook, the newest.
const KEPT: i64 = 500;

/// Where a page goes on: after this one.
pub type Position = (DateTime<Utc>, Uuid);

/// A page of the deliveries of a webhook, the newest first, and the position of each: all, or those that stand so. The
/// body of a request is made of what happened by `body`.
pub async fn page(
    conn: &mut PgConnection,
    webhook: WebhookId,
    state: Option<DeliveryState>,
    after: Option<Position>,
    limit: i64,
    body: impl Fn(&Value) -> String,
) -> sqlx::Result<Vec<(Position, WebhookDelivery)>> {
    let states: Vec<String> = match state {
        Some(state) => vec![state.to_string()],
        None => DeliveryState::ALL.iter().map(ToString::to_string).collect(),
    };
    let (at, id) = after.unwrap_or((DateTime::<Utc>::MAX_UTC, Uuid::max()));
    // What PostgreSQL takes for a time ends before what chrono does.
    let at = at.min(Utc::now() + chrono::TimeDelta::days(1));
    let rows = sqlx::query!(
        "select id, event, state, attempts, status, elapsed_ms, error, payload, response, created_at, tried_at, next_try
         from webhook_deliveries
         where webhook_id = $1 and state = any($2) and (created_at, id) < ($3, $4::uuid)
         order by created_at desc, id desc limit $5",
        webhook.0,
        &states,
        at,
        id,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let state: DeliveryState = word(&row.state)?;
        let delivery = WebhookDelivery {
            id: WebhookDeliveryId(row.id),
            event: word(&row.event)?,
            state,
            attempts: number(i64::from(row.attempts))?,
            status: row.status.map(|status| number(i64::from(status))).transpose()?,
            elapsed_ms: row.elapsed_ms.map(number).transpose()?,
            error: row.error,
            request: body(&row.payload),
            response: row.response,
            created_at: row.created_at,
            tried_at: row.tried_at,
            next_try_at: (state == DeliveryState::Waiting).then_some(row.next_try),
        };
        Ok(((row.created_at, row.id), delivery))
    })
    .collect()
}

/// What a delivery of a project's webhook told of.
pub async fn told(
    conn: &mut PgConnection,
    (project, webhook): (ProjectId, WebhookId),
    id: WebhookDeliveryId,
) -> sqlx::Result<Option<(WebhookEvent, Value)>> {
    let row = sqlx::query!(
        "select d.event, d.payload from webhook_deliveries d join webhooks w on w.id = d.webhook_id
         where d.id = $1 and w.id = $2 and w.project_id = $3",
        id.0,
        webhook.0,
        project.0,
    );
    row.fetch_optional(conn).await?.map(|row| Ok((word(&row.event)?, row.payload))).transpose()
}

/// How many wait that a person sent.
pub async fn by_hand(conn: &mut PgConnection, webhook: WebhookId) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from webhook_deliveries
           where webhook_id = $1 and state = 'waiting' and starts_with(key, 'by hand:')"#,
        webhook.0,
    )
    .fetch_one(conn)
    .await
}

/// Forgets what is over since a month, and of each webhook all but the newest.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from webhook_deliveries d using webhooks w left join lateral (
             select created_at from webhook_deliveries k where k.webhook_id = w.id
             order by k.created_at desc, k.id desc offset $1 limit 1
         ) oldest on true
         where d.webhook_id = w.id and d.state <> 'waiting'
             and d.created_at <= greatest(oldest.created_at, now() - interval '30 days')",
        KEPT,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A deployment, as a webhook tells of it.
#[derive(Debug)]
pub struct ToldDeployment {
    /// Its project.
    pub project_id: Uuid,
    /// The project's name.
    pub project: String,
    /// Its environment.
    pub environment: String,
    /// Its number.
    pub number: i64,
    /// Its state.
    pub state: String,
    /// What set it off.
    pub trigger: String,
    /// Who, for people.
    pub by: String,
    /// Its commit.
    pub commit: Option<String>,
    /// The first line of the commit's message.
    pub subject: Option<String>,
    /// Why it failed.
    pub fault: Option<String>,
    /// The follower that this is the part of, if it is one.
    pub follower: Option<String>,
}

/// The deployment.
pub async fn deployment(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<ToldDeployment>> {
    sqlx::query_as!(
        ToldDeployment,
        r#"select d.project_id, p.name as project, d.environment, d.number, d.state, d.trigger, d.by, d.commit, d.subject,
                  d.fault, case when d.leader_id is not null then d.guest end as follower
           from deployments d join projects p on p.id = d.project_id where d.id = $1"#,
        id.0,
    )
    .fetch_optional(conn)
    .await
}

/// A guest that a job made or destroyed, as a webhook tells of it: its id and its name, and the project's.
pub async fn guest_of_job(
    conn: &mut PgConnection,
    job: corpus_domain::JobId,
) -> sqlx::Result<Option<(String, String, String)>> {
    let row = sqlx::query!(
        r#"select j.params ->> 'guest' as "guest!", j.params ->> 'name' as "name!", p.name as project
           from jobs j join projects p on p.id = j.project_id
           where j.id = $1 and j.params ? 'guest' and j.params ? 'name'"#,
        job.0,
    );
    Ok(row.fetch_optional(conn).await?.map(|row| (row.guest, row.name, row.project)))
}

/// The maintainers of a project.
pub async fn maintainers(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<corpus_domain::UserId>> {
    let found = sqlx::query_scalar!(
        "select distinct m.user_id as \"user_id!\" from memberships m join users u on u.id = m.user_id
         where m.project_id = $1 and m.role = 'maintainer' and u.disabled_at is null",
        project.0,
    );
    Ok(found.fetch_all(conn).await?.into_iter().map(corpus_domain::UserId).collect())
}
