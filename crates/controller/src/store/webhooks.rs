//! Webhooks, and what is sent to them: enqueued once for each event, taken by one server at a time.

use chrono::{DateTime, Utc};
use corpus_api::webhooks::Webhook;
use corpus_domain::{ProjectId, ProjectName, UserId, WebhookDeliveryId, WebhookEvent, WebhookId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::word;

/// Deliveries that wait for one webhook, at most; what comes beyond them is not sent.
const MAX_WAITING: i64 = 1_000;
/// Deliveries of one project that are taken at once.
const OF_ONE_PROJECT: i64 = 4;
/// For how long a webhook must fail to be switched off, in days.
const DAYS: i32 = 3;

/// A webhook to be kept.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// Its id.
    pub id: WebhookId,
    /// Its project.
    pub project: ProjectId,
    /// What it is called.
    pub name: &'a str,
    /// Where it leads.
    pub url: &'a str,
    /// What it tells of.
    pub events: &'a [WebhookEvent],
    /// Its secret, sealed.
    pub secret: &'a [u8],
    /// Who adds it.
    pub by: UserId,
}

/// Keeps a webhook; a name that another one has breaks the unique rule.
pub async fn insert(conn: &mut PgConnection, new: &NewRow<'_>) -> sqlx::Result<()> {
    let events: Vec<String> = new.events.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into webhooks (id, project_id, name, url, events, secret, created_by) values ($1, $2, $3, $4, $5, $6, $7)",
        new.id.0,
        new.project.0,
        new.name,
        new.url,
        &events,
        new.secret,
        new.by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// How many a project has; its row is held, so that they are counted by one at a time.
pub async fn count(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<i64> {
    sqlx::query!("select id from projects where id = $1 for no key update", project.0)
        .fetch_optional(&mut *conn)
        .await?;
    sqlx::query_scalar!(r#"select count(*) as "count!" from webhooks where project_id = $1"#, project.0)
        .fetch_one(conn)
        .await
}

struct Row {
    id: Uuid,
    project: String,
    name: String,
    url: String,
    events: Vec<String>,
    created_at: DateTime<Utc>,
    failing_since: Option<DateTime<Utc>>,
    off_at: Option<DateTime<Utc>>,
}

impl Row {
    fn read(self) -> sqlx::Result<Webhook> {
        let Self { name, created_at, failing_since, off_at, .. } = self;
        let events = self.events.iter().map(|event| word(event)).collect::<sqlx::Result<_>>()?;
        let (id, project, url) = (WebhookId(self.id), word(&self.project)?, word(&self.url)?);
        Ok(Webhook { id, project, name, url, events, created_at, failing_since, off_at })
    }
}

/// Those of a project, by name, after one of them.
pub async fn page(conn: &mut PgConnection, project: ProjectId, after: &str, limit: i64) -> sqlx::Result<Vec<Webhook>> {
    let rows = sqlx::query_as!(
        Row,
        "select w.id, p.name as project, w.name, w.url, w.events, w.created_at, w.failing_since, w.off_at
         from webhooks w join projects p on p.id = w.project_id
         where w.project_id = $1 and w.name > $2 order by w.name limit $3",
        project.0,
        after,
        limit,
    );
    rows.fetch_all(conn).await?.into_iter().map(Row::read).collect()
}

/// One of a project.
pub async fn get(conn: &mut PgConnection, project: ProjectId, id: WebhookId) -> sqlx::Result<Option<Webhook>> {
    let row = sqlx::query_as!(
        Row,
        "select w.id, p.name as project, w.name, w.url, w.events, w.created_at, w.failing_since, w.off_at
         from webhooks w join projects p on p.id = w.project_id where w.id = $1 and w.project_id = $2",
        id.0,
        project.0,
    );
    row.fetch_optional(conn).await?.map(Row::read).transpose()
}

/// Removes one of a project; tells its name.
pub async fn remove(conn: &mut PgConnection, project: ProjectId, id: WebhookId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("delete from webhooks where id = $1 and project_id = $2 returning name", id.0, project.0)
        .fetch_optional(conn)
        .await
}

/// Switches one on again; tells its name.
pub async fn resume(conn: &mut PgConnection, project: ProjectId, id: WebhookId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        "update webhooks set off_at = null, failing_since = null where id = $1 and project_id = $2 returning name",
        id.0,
        project.0,
    )
    .fetch_optional(conn)
    .await
}

/// Enqueues what happened for every webhook of the project that tells of it, once.
pub async fn enqueue(
    conn: &mut PgConnection,
    project: ProjectId,
    event: WebhookEvent,
    key: &str,
    payload: &Value,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into webhook_deliveries (id, webhook_id, project_id, key, event, payload)
         select gen_random_uuid(), w.id, w.project_id, $2, $3, $4 from webhooks w
         where w.project_id = $1 and $3 = any(w.events) and w.off_at is null
             and (select count(*) from webhook_deliveries d where d.webhook_id = w.id and d.state = 'waiting') < $5
         on conflict (webhook_id, key) do nothing",
        project.0,
        key,
        event.as_str(),
        payload,
        MAX_WAITING,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Enqueues a delivery for one webhook, switched off or not.
pub async fn enqueue_one(
    conn: &mut PgConnection,
    (project, webhook): (ProjectId, WebhookId),
    event: WebhookEvent,
    payload: &Value,
) -> sqlx::Result<WebhookDeliveryId> {
    let id = WebhookDeliveryId(Uuid::now_v7());
    sqlx::query!(
        "insert into webhook_deliveries (id, webhook_id, project_id, key, event, payload) values ($1, $2, $3, $4, $5, $6)",
        id.0,
        webhook.0,
        project.0,
        format!("by hand:{id}"),
        event.as_str(),
        payload,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// A delivery that is to be sent now.
#[derive(Debug)]
pub struct Due {
    /// Its id.
    pub id: WebhookDeliveryId,
    /// The webhook.
    pub webhook: WebhookId,
    /// What the webhook is called.
    pub name: String,
    /// The project.
    pub project: ProjectId,
    /// The project's name.
    pub project_name: ProjectName,
    /// Where it goes.
    pub url: String,
    /// The webhook's secret, sealed.
    pub secret: Vec<u8>,
    /// What it tells of.
    pub event: WebhookEvent,
    /// What happened.
    pub payload: Value,
    /// How often it was tried, this time included.
    pub attempts: i32,
}

/// Takes deliveries that are due, a few of each project; they are due again after a while that grows, from half a
/// minute to an hour, unless it is told what came of them. No two servers take the same.
pub async fn claim(conn: &mut PgConnection, busy: &[ProjectId], limit: i64) -> sqlx::Result<Vec<Due>> {
    let busy: Vec<Uuid> = busy.iter().map(|project| project.0).collect();
    let rows = sqlx::query!(
        "update webhook_deliveries d
         set attempts = d.attempts + 1, next_try = now() + least(interval '30 s' * power(2, d.attempts), interval '1 h')
         from webhooks w, projects p
         where w.id = d.webhook_id and p.id = w.project_id and d.id in (
             select c.id from webhook_deliveries c
             where c.state = 'waiting' and c.next_try <= now() and c.id in (
                 select t.id from (
                     select id, row_number() over (partition by project_id order by next_try, id) as turn
                     from webhook_deliveries
                     where state = 'waiting' and next_try <= now() and project_id <> all($1)
                 ) t where t.turn <= $3)
             order by c.next_try limit $2 for update skip locked)
         returning d.id, d.webhook_id, w.name, w.project_id, p.name as project, w.url, w.secret, d.event, d.payload, d.attempts",
        &busy,
        limit,
        OF_ONE_PROJECT,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        Ok(Due {
            id: WebhookDeliveryId(row.id),
            webhook: WebhookId(row.webhook_id),
            name: row.name,
            project: ProjectId(row.project_id),
            project_name: word(&row.project)?,
            url: row.url,
            secret: row.secret,
            event: word(&row.event)?,
            payload: row.payload,
            attempts: row.attempts,
        })
    })
    .collect()
}

/// What came of a try.
#[derive(Debug)]
pub struct Tried {
    /// The status of the answer, if there was one.
    pub status: Option<i32>,
    /// How long it took.
    pub elapsed_ms: i64,
    /// Why it failed.
    pub error: Option<String>,
    /// The beginning of the answer.
    pub response: Option<String>,
}

/// It was answered with success.
pub async fn delivered(conn: &mut PgConnection, due: &Due, tried: &Tried) -> sqlx::Result<()> {
    note(conn, due, tried, "delivered").await?;
    sqlx::query!("update webhooks set failing_since = null where id = $1 and failing_since is not null", due.webhook.0)
        .execute(conn)
        .await
        .map(drop)
}

/// It was not: it waits for its next try, or is given up after so many. Tells whether the webhook is switched off now, since
/// nothing arrived for days; then nothing waits for it any more.
pub async fn not_delivered(conn: &mut PgConnection, due: &Due, tried: &Tried, max_attempts: i32) -> sqlx::Result<bool> {
    let state = if due.attempts >= max_attempts { "failed" } else { "waiting" };
    note(conn, due, tried, state).await?;
    let failing = sqlx::query!(
        "update webhooks set failing_since = coalesce(failing_since, now()),
             off_at = case when failing_since < now() - make_interval(days => $2) then coalesce(off_at, now()) end
         where id = $1 and off_at is null returning off_at is not null as \"is_off!\"",
        due.webhook.0,
        DAYS,
    );
    let is_off = failing.fetch_optional(&mut *conn).await?.is_some_and(|row| row.is_off);
    if is_off {
        let waiting = sqlx::query!(
            "update webhook_deliveries set state = 'failed', error = coalesce(error, 'the webhook was switched off')
             where webhook_id = $1 and state = 'waiting'",
            due.webhook.0,
        );
        waiting.execute(conn).await?;
    }
    Ok(is_off)
}

async fn note(conn: &mut PgConnection, due: &Due, tried: &Tried, state: &str) -> sqlx::Result<()> {
    // One that took so long that another server has it by now is not this one's to note.
    sqlx::query!(
        "update webhook_deliveries
         set state = $3, status = $4, elapsed_ms = $5, error = $6, response = $7, tried_at = now()
         where id = $1 and attempts = $2 and state = 'waiting'",
        due.id.0,
        due.attempts,
        state,
        tried.status,
        tried.elapsed_ms,
        tried.error,
        tried.response,
    )
    .execute(conn)
    .await
    .map(drop)
}
