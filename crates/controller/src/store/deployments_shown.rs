//! Deployments as they are listed and shown. Where an environment has followers, lists tell of what ran on
//! leaders, unless they are of a guest.

use chrono::{DateTime, Utc};
use corpus_api::deployments::report::DeploymentReport;
use corpus_api::deployments::{DeploymentLine, DeploymentOrder, DeploymentPart, ListDeployments};
use corpus_api::environments::LiveRelease;
use corpus_api::words::SearchText;
use corpus_domain::{DeploymentId, DeploymentState, Environment, GuestId, GuestName, JobId, ProjectId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::environments_shown::release;
use super::{Seen, evidence, json_opt, number, reports, word, word_opt};

/// Where a deployment is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// When it was ordered.
    pub ordered_at: DateTime<Utc>,
    /// Its id.
    pub id: Uuid,
    /// Milliseconds that it took.
    pub elapsed_ms: Option<i64>,
}

/// A statement in each order: what is beyond a place of it, the order, and what of the place comes before the id.
/// Statements are checked when they are compiled, so each order is a statement of its own.
macro_rules! in_order {
    ($asked:ident, $after:ident, $statement:ident) => {
        match $asked.sort.unwrap_or_default() {
            DeploymentOrder::Newest => $statement!(
                "($4::timestamptz is null or (ordered_at, id) < ($4, $5))",
                "ordered_at desc, id desc",
                $after.map(|after| after.ordered_at)
            ),
            DeploymentOrder::Oldest => $statement!(
                "($4::timestamptz is null or (ordered_at, id) > ($4, $5))",
                "ordered_at, id",
                $after.map(|after| after.ordered_at)
            ),
            DeploymentOrder::Longest => $statement!(
                "elapsed_ms is not null and ($4::bigint is null or (elapsed_ms, id) < ($4, $5))",
                "elapsed_ms desc, id desc",
                $after.and_then(|after| after.elapsed_ms)
            ),
        }
    };
}

/// The places of the deployments that match, in the order that is asked, those beyond a place.
pub async fn page(
    conn: &mut PgConnection,
    asked: &ListDeployments,
    seen: Seen<'_>,
    after: Option<Position>,
    limit: i64,
) -> sqlx::Result<Vec<Position>> {
    let within = seen.environments;
    let mut projects: Option<Vec<Uuid>> =
        seen.projects.map(|visible| visible.iter().map(|project| project.0).collect());
    if let Some(name) = &asked.project {
        let project = super::projects::by_name(conn, name).await?.map(|project| project.0);
        let is_seen = |one: &Uuid| projects.as_ref().is_none_or(|visible| visible.contains(one));
        projects = Some(project.into_iter().filter(is_seen).collect());
    }
    match (asked.guest, projects) {
        (Some(guest), projects) => on_guest(conn, asked, (guest, within), projects.as_deref(), after, limit).await,
        (None, Some(projects)) if asked.by.is_none() => {
            of_projects(conn, asked, (&projects, within), after, limit).await
        }
        (None, projects) => of_all(conn, asked, (projects.as_deref(), within), after, limit).await,
    }
}

/// The beginning of a commit, if that may be what is looked for: words and the beginnings of commits both have an
/// index.
fn commit(asked: &ListDeployments) -> Option<String> {
    let text = asked.q.as_ref()?.as_str().trim().to_lowercase();
    (text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(text)
}

/// By the time at which they were ordered, or by who ordered them, which both have an index.
async fn of_all(
    conn: &mut PgConnection,
    asked: &ListDeployments,
    (projects, within): (Option<&[Uuid]>, Option<&[String]>),
    after: Option<Position>,
    limit: i64,
) -> sqlx::Result<Vec<Position>> {
    macro_rules! statement {
        ($beyond:tt, $order:tt, $place:expr) => {
            sqlx::query_as!(
                Position,
                "select ordered_at, id, elapsed_ms from deployments
                 where leader_id is null and ($1::text is null or environment = $1) and ($2::text is null or state = $2)
                   and ($3::text is null or by = $3) and " + $beyond + "
                   and ($7::uuid[] is null or project_id = any($7)) and ($10::text[] is null or environment = any($10))
                   and ($8::text is null or words_of(subject) @@ words_asked($8)
                        or (commit collate \"C\" >= $9 and commit collate \"C\" < $9 || 'g'))
                 order by " + $order + " limit $6",
                asked.environment.map(Environment::as_str),
                asked.state.map(DeploymentState::as_str),
                asked.by.as_ref().map(SearchText::as_str),
                $place,
                after.map(|after| after.id),
                limit,
                projects,
                asked.q.as_ref().map(SearchText::as_str),
                commit(asked),
                within,
            )
            .fetch_all(conn)
            .await
        };
    }
    in_order!(asked, after, statement)
}

/// A page of each project is read, and the page of all is made from these: what others deploy is not gone through.
async fn of_projects(
    conn: &mut PgConnection,
    asked: &ListDeployments,
    (projects, within): (&[Uuid], Option<&[String]>),
    after: Option<Position>,
    limit: i64,
) -> sqlx::Result<Vec<Position>> {
    macro_rules! statement {
        ($beyond:tt, $order:tt, $place:expr) => {
            sqlx::query_as!(
                Position,
                "select d.ordered_at, d.id, d.elapsed_ms from unnest($7::uuid[]) p (id) cross join lateral (
                     select ordered_at, id, elapsed_ms from deployments
                     where project_id = p.id and leader_id is null
                       and ($1::text is null or environment = $1) and ($2::text is null or state = $2)
                       and ($10::text[] is null or environment = any($10))
                       and ($3::text is null or by = $3) and "
                    + $beyond
                    + "
                       and ($8::text is null or words_of(subject) @@ words_asked($8)
                            or (commit collate \"C\" >= $9 and commit collate \"C\" < $9 || 'g'))
                     order by "
                    + $order
                    + " limit $6
                 ) d
                 order by "
                    + $order
                    + " limit $6",
                asked.environment.map(Environment::as_str),
                asked.state.map(DeploymentState::as_str),
                asked.by.as_ref().map(SearchText::as_str),
                $place,
                after.map(|after| after.id),
                limit,
                projects,
                asked.q.as_ref().map(SearchText::as_str),
                commit(asked),
                within,
            )
            .fetch_all(conn)
            .await
        };
    }
    in_order!(asked, after, statement)
}

async fn on_guest(
    conn: &mut PgConnection,
    asked: &ListDeployments,
    (guest, within): (GuestId, Option<&[String]>),
    projects: Option<&[Uuid]>,
    after: Option<Position>,
    limit: i64,
) -> sqlx::Result<Vec<Position>> {
    macro_rules! statement {
        ($beyond:tt, $order:tt, $place:expr) => {
            sqlx::query_as!(
                Position,
                "select ordered_at, id, elapsed_ms from deployments
                 where guest_id = $7 and ($8::uuid[] is null or project_id = any($8))
                   and ($11::text[] is null or environment = any($11))
                   and ($1::text is null or environment = $1) and ($2::text is null or state = $2)
                   and ($3::text is null or by = $3) and "
                    + $beyond
                    + "
                   and ($9::text is null or words_of(subject) @@ words_asked($9)
                        or (commit collate \"C\" >= $10 and commit collate \"C\" < $10 || 'g'))
                 order by "
                    + $order
                    + " limit $6",
                asked.environment.map(Environment::as_str),
                asked.state.map(DeploymentState::as_str),
                asked.by.as_ref().map(SearchText::as_str),
                $place,
                after.map(|after| after.id),
                limit,
                guest.0,
                projects,
                asked.q.as_ref().map(SearchText::as_str),
                commit(asked),
                within,
            )
            .fetch_all(conn)
            .await
        };
    }
    in_order!(asked, after, statement)
}

/// The lines of these deployments, in this order. One that has just gone live is so before its job has written
/// it down with its environment.
pub async fn lines(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<DeploymentLine>> {
    let rows = sqlx::query!(
        "select d.id, d.number, p.name as project, d.environment, d.state, d.trigger, d.by, d.commit, d.subject, d.fault,
                d.ordered_at, d.ended_at, d.elapsed_ms, d.job_id, d.guest_id, d.guest, d.leader_id,
                l.is_live as \"is_live!\", case when l.is_live then seen_guests(
                    eg.project_id, eg.environment, case when d.leader_id is not null then d.guest_id end) end as seen
         from deployments d join projects p on p.id = d.project_id
         left join environment_guests eg on eg.guest_id = d.guest_id
         left join jobs j on j.id = d.job_id
         cross join lateral (
             select coalesce((eg.live ->> 'deployment')::uuid = d.id, false)
                    or d.state = 'live' and coalesce(j.state in ('waiting', 'running'), false) as is_live
         ) l
         where d.id = any($1) order by array_position($1, d.id)",
        ids,
    );
    let rows = rows.fetch_all(conn).await?;
    let shown = rows.into_iter().map(|row| {
        Ok(DeploymentLine {
            id: DeploymentId(row.id),
            number: row.number,
            project: word(&row.project)?,
            environment: word(&row.environment)?,
            state: word(&row.state)?,
            trigger: word(&row.trigger)?,
            by: row.by,
            commit: word_opt(row.commit.as_deref())?,
            subject: row.subject,
            fault: row.fault,
            ordered_at: row.ordered_at,
            ended_at: row.ended_at,
            elapsed_ms: row.elapsed_ms.map(number).transpose()?,
            job: row.job_id.map(JobId),
            guest: GuestId(row.guest_id),
            guest_name: word(&row.guest)?,
            leader: row.leader_id.map(DeploymentId),
            is_live: row.is_live,
            seen: evidence::seen(row.seen)?,
        })
    });
    shown.collect()
}

/// The line of one.
pub async fn line(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<DeploymentLine>> {
    Ok(lines(conn, &[id.0]).await?.pop())
}

/// The deployment of a number, as it went on the guest of a name, or on the leader.
pub async fn by_number(
    conn: &mut PgConnection,
    project: ProjectId,
    deployment: i64,
    guest: Option<&GuestName>,
) -> sqlx::Result<Option<DeploymentId>> {
    // The newest of several parts on one guest.
    let id = sqlx::query_scalar!(
        "select c.id from deployments l join deployments c on c.id = l.id or c.leader_id = l.id
         where l.project_id = $1 and l.number = $2 and l.leader_id is null
           and (c.guest = $3 or ($3::text is null and c.id = l.id))
         order by c.ordered_at desc, c.id desc limit 1",
        project.0,
        deployment,
        guest.map(GuestName::as_str),
    );
    Ok(id.fetch_optional(conn).await?.map(DeploymentId))
}

/// The job that sees a deployment to its end, while that is not there.
pub async fn open_job(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<JobId>> {
    let job = sqlx::query_scalar!("select job_id from deployments where id = $1 and ended_at is null", id.0);
    Ok(job.fetch_optional(conn).await?.flatten().map(JobId))
}

/// The report of a deployment as far as it has come.
pub async fn report(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<DeploymentReport>> {
    let report = sqlx::query_scalar!("select report from deployments where id = $1", id.0).fetch_optional(conn).await?;
    Ok(json_opt(report.flatten())?.map(reports::report))
}

/// What is live now on the guest of a deployment.
pub async fn live_beside(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<LiveRelease>> {
    let row = sqlx::query!(
        "select eg.live, b.number as \"number?\" from deployments d join environment_guests eg on eg.guest_id = d.guest_id
         left join deployments b on b.id = (eg.live ->> 'deployment')::uuid
         where d.id = $1",
        id.0,
    );
    match row.fetch_optional(conn).await? {
        Some(row) => release(row.live, row.number),
        None => Ok(None),
    }
}

/// How a deployment goes on the followers of its environment, in their order; the latest of each.
pub async fn on_followers(conn: &mut PgConnection, leader: DeploymentId) -> sqlx::Result<Vec<DeploymentPart>> {
    let rows = sqlx::query!(
        "select f.id, f.guest, f.state, f.fault, f.elapsed_ms from (
             select distinct on (guest_id) id, guest, state, fault, elapsed_ms, ordered_at from deployments
             where leader_id = $1 order by guest_id, ordered_at desc, id desc
         ) f order by f.ordered_at, f.guest",
        leader.0,
    );
    let rows = rows.fetch_all(conn).await?;
    let shown = rows.into_iter().map(|row| {
        Ok(DeploymentPart {
            deployment: DeploymentId(row.id),
            guest: word(&row.guest)?,
            state: word(&row.state)?,
            fault: row.fault,
            elapsed_ms: row.elapsed_ms.map(number).transpose()?,
        })
    });
    shown.collect()
}

/// The followers of an environment that deploy with it now, by name.
pub async fn ready_followers(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Vec<GuestName>> {
    let names = sqlx::query_scalar!(
        "select g.name from environment_guests f join guests g on g.id = f.guest_id
         where f.project_id = $1 and f.environment = $2 and f.role = 'follower' and f.state = 'ready' order by g.name",
        project.0,
        environment.as_str(),
    );
    names.fetch_all(conn).await?.iter().map(|name| word(name)).collect()
}

/// Where one looks at what came of a push.
#[derive(Debug)]
pub struct Whereabouts {
    /// The number of its deployment, once it has one.
    pub number: Option<i64>,
    /// A few of the addresses, by HTTPS where a certificate is served, that lead to where it is live.
    pub sites: Vec<String>,
}

/// The same, of a deployment on this guest.
pub async fn whereabouts(conn: &mut PgConnection, id: DeploymentId, guest: GuestId) -> sqlx::Result<Whereabouts> {
    sqlx::query_as!(
        Whereabouts,
        r#"select (select number from deployments where id = $1) as number,
            array(select case when n.certificate_id is null then 'http://' else 'https://' end || n.name || '/'
                  from dns_names n where n.guest_id = $2 and n.state = 'attached' and not n.wildcard
                  order by n.name limit 3) as "sites!"
        "#,
        id.0,
        guest.0,
    )
    .fetch_one(conn)
    .await
}
