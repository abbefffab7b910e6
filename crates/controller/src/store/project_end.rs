//! The end of a project: what goes with it, that it is to go, and its rows as they go.
//!
//! What is added to a project later must go with it: a table with a foreign key to projects that deletes its rows
//! by itself, or a statement in [`forget`]. A test looks through all tables for what is left.

use chrono::{DateTime, Utc};
use corpus_api::projects::ending::{GoingEnvironment, GoingGuest, LeavingProject, NAMED, ProjectRemains};
use corpus_domain::{DnsName, DnsNameId, GuestId, GuestName, GuestState, JobId, NodeId, ProjectId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::names::Held;
use super::{number, word};

/// Deployments that are forgotten at once, with their logs.
const BATCH: i64 = 200;

/// A guest that is to be destroyed with its project.
#[derive(Debug, Clone)]
pub struct Going {
    /// The guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its node.
    pub node: NodeId,
}

/// A name that is to go with its project.
#[derive(Debug, Clone)]
pub struct GoingName {
    /// The name.
    pub id: DnsNameId,
    /// The same for people.
    pub name: DnsName,
    /// Whether it is all names below it.
    pub wildcard: bool,
    /// Who holds it; none: a zone that is not ours.
    pub held: Option<Held>,
}

/// The project is to go: this job destroys it.
pub async fn leave(conn: &mut PgConnection, id: ProjectId, job: JobId) -> sqlx::Result<()> {
    sqlx::query!(
        "update projects set leaving_job = $2, leaving_since = coalesce(leaving_since, now()) where id = $1",
        id.0,
        job.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The project stays, unless there is no way back; then it is left to be destroyed again. Repeatable.
pub async fn stay(conn: &mut PgConnection, id: ProjectId, job: JobId) -> sqlx::Result<()> {
    sqlx::query!(
        "update projects set leaving_job = null, leaving_since = null
         where id = $1 and leaving_job = $2 and destroying_since is null",
        id.0,
        job.0,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update guests set state = 'failed', state_reason = $3, state_since = now()
         where state = $4 and project_id = (select id from projects where id = $1 and leaving_job = $2)",
        id.0,
        job.0,
        "its project was not destroyed completely; destroy the project again",
        GuestState::Destroying.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The same when the job never began.
pub async fn left_by(conn: &mut PgConnection, job: JobId) -> sqlx::Result<()> {
    sqlx::query!(
        "update projects set leaving_job = null, leaving_since = null
         where leaving_job = $1 and destroying_since is null",
        job.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// From now on there is no way back. Tells whether that is so: not when the job is to be cancelled, which nobody asks
/// for before the transaction ends.
pub async fn begin(conn: &mut PgConnection, id: ProjectId, job: JobId) -> sqlx::Result<bool> {
    let cancelled = sqlx::query_scalar!(
        "select cancel_requested_at is not null as \"cancelled!\" from jobs where id = $1 for no key update",
        job.0,
    );
    let begun = sqlx::query_scalar!(
        "select destroying_since is not null as \"begun!\" from projects where id = $1 for no key update",
        id.0,
    );
    let cancelled = cancelled.fetch_one(&mut *conn).await?;
    let begun = begun.fetch_optional(&mut *conn).await?.unwrap_or(true);
    if cancelled && !begun {
        return Ok(false);
    }
    sqlx::query!("update projects set destroying_since = coalesce(destroying_since, now()) where id = $1", id.0)
        .execute(conn)
        .await
        .map(|_| true)
}

/// Whether this job destroys a project, and there is no way back.
pub async fn is_for_good(conn: &mut PgConnection, job: JobId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        "select exists (select from projects where leaving_job = $1 and destroying_since is not null) as \"so!\"",
        job.0,
    )
    .fetch_one(conn)
    .await
}

/// That the project is to go, if it is.
pub async fn leaving(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Option<LeavingProject>> {
    let row = sqlx::query!(
        "select p.leaving_job as \"job!\", p.leaving_since as \"since!\", p.destroying_since, j.state as \"state?\"
         from projects p left join jobs j on j.id = p.leaving_job
         where p.id = $1 and p.leaving_job is not null",
        id.0,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let since: DateTime<Utc> = row.since;
    let job_state = word(row.state.as_deref().unwrap_or("abandoned"))?;
    Ok(Some(LeavingProject { job: JobId(row.job), job_state, since, for_good_since: row.destroying_since }))
}

/// A job of the project that is begun and not over, besides this one.
pub async fn other_job(conn: &mut PgConnection, id: ProjectId, job: JobId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        "select title from jobs
         where project_id = $1 and id <> $2 and state in ('running', 'undoing', 'stuck') order by queue_order limit 1",
        id.0,
        job.0,
    )
    .fetch_optional(conn)
    .await
}

/// The project's guests that are there still, those of one node together.
pub async fn guests(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Vec<Going>> {
    let rows = sqlx::query!("select id, name, node_id from guests where project_id = $1 order by node_id, name", id.0);
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(Going { guest: GuestId(row.id), name: word(&row.name)?, node: NodeId(row.node_id) })).collect()
}

/// No way leads to the project's guests any more: the nodes are to be told so. Nothing is deployed to them either; of an
/// environment that lost some of its guests nothing true could be shown.
pub async fn close(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<()> {
    sqlx::query!(
        "update guests set routed = false, state = $2, state_reason = null,
             state_since = case when state = $2 then state_since else now() end
         where project_id = $1",
        id.0,
        GuestState::Destroying.as_str(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("update dns_names set routed = false where project_id = $1", id.0).execute(&mut *conn).await?;
    sqlx::query!("delete from environment_guests where project_id = $1", id.0).execute(&mut *conn).await?;
    sqlx::query!("delete from environments where project_id = $1", id.0).execute(conn).await.map(drop)
}

/// The project's names that are there still, and before each its aliases.
pub async fn names(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Vec<GoingName>> {
    let rows = sqlx::query!(
        "select n.id, n.name, n.wildcard, z.name as \"zone?\", z.provider as \"provider?\", z.ttl_s as \"ttl_s?\"
         from dns_names n left join zones z on z.id = n.zone_id
         where n.project_id = $1 order by n.alias_of is null, n.name",
        id.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let held = Held::of(row.zone.as_deref(), row.provider.as_deref(), row.ttl_s)?;
        Ok(GoingName { id: DnsNameId(row.id), name: word(&row.name)?, wildcard: row.wildcard, held })
    })
    .collect()
}

/// Forgets a guest that is destroyed.
pub async fn forget_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    super::names::delete_of_guest(conn, guest).await?;
    super::guests::delete(conn, guest).await
}

/// Forgets some of the project's deployments, with their logs; tells how many.
pub async fn forget_deployments(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<u64> {
    sqlx::query!(
        "delete from deployments where id in (select id from deployments where project_id = $1 limit $2)",
        id.0,
        BATCH,
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected())
}

/// Forgets the project and all that still names it. Members, notices, what could be undone, and the zones that were
/// open to it go with its row; its name is kept from others by a trigger.
pub async fn forget(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<()> {
    super::projects::delete(conn, id).await?;
    // Sums of what is gone are none.
    sqlx::query!("delete from project_tallies where project_id = $1", id.0).execute(&mut *conn).await?;
    sqlx::query!("delete from zone_tallies where project_id = $1", id.0).execute(conn).await.map(drop)
}

/// What goes with the project.
pub async fn remains(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<ProjectRemains> {
    let few = i64::try_from(NAMED).unwrap_or(i64::MAX);
    let counts = sqlx::query!(
        "select (select count(*) from guests where project_id = $1) as \"guests!\",
             (select count(*) from dns_names where project_id = $1) as \"names!\",
             (select coalesce(sum(jsonb_array_length(archives)), 0) from environment_guests
                 where project_id = $1) as \"archives!\",
             (select count(*) from deployments where project_id = $1 and leader_id is null) as \"deployments!\",
             (select count(distinct user_id) from memberships where project_id = $1) as \"members!\",
             (select count(*) from robots where project_id = $1) as \"robots!\",
             (select count(*) from projects where parent_id = $1) as \"previews!\",
             (select count(*) from jobs where project_id = $1 and state in ('waiting', 'running', 'undoing', 'stuck')
                 and id is distinct from (select leaving_job from projects where id = $1)) as \"jobs!\"",
        id.0,
    );
    let counts = counts.fetch_one(&mut *conn).await?;
    let guests = sqlx::query!(
        "select id, name, environment from guests where project_id = $1 order by name limit $2",
        id.0,
        few
    );
    let guests = guests.fetch_all(&mut *conn).await?.into_iter().map(|row| {
        Ok(GoingGuest { guest: GuestId(row.id), name: word(&row.name)?, environment: word(&row.environment)? })
    });
    let guests = guests.collect::<sqlx::Result<Vec<_>>>()?;
    let names =
        sqlx::query_scalar!("select name from dns_names where project_id = $1 order by name limit $2", id.0, few);
    let names = names.fetch_all(&mut *conn).await?.iter().map(|name| word(name)).collect::<sqlx::Result<_>>()?;
    let environments = sqlx::query!(
        "select e.environment, exists (select from environment_guests g where g.project_id = e.project_id
             and g.environment = e.environment and g.live is not null) as \"is_live!\"
         from environments e where e.project_id = $1
         order by array_position(array['dev', 'staging', 'prod'], e.environment)",
        id.0,
    );
    let environments = environments.fetch_all(&mut *conn).await?.into_iter();
    let environments = environments
        .map(|row| Ok(GoingEnvironment { environment: word(&row.environment)?, is_live: row.is_live }))
        .collect::<sqlx::Result<_>>()?;
    let members = sqlx::query_scalar!(
        "select distinct u.login from memberships m join users u on u.id = m.user_id
         where m.project_id = $1 order by u.login limit $2",
        id.0,
        few,
    );
    let members = members.fetch_all(&mut *conn).await?.iter().map(|login| word(login)).collect::<sqlx::Result<_>>()?;
    Ok(ProjectRemains {
        guest_count: number(counts.guests)?,
        guests,
        name_count: number(counts.names)?,
        names,
        environments,
        archive_count: number(counts.archives)?,
        deployment_count: number(counts.deployments)?,
        member_count: number(counts.members)?,
        members,
        robot_count: number(counts.robots)?,
        preview_count: number(counts.previews)?,
        open_jobs: number(counts.jobs)?,
        leaving: leaving(conn, id).await?,
    })
}

/// The nodes that the project's guests are on.
pub async fn nodes(conn: &mut PgConnection, id: ProjectId) -> sqlx::Result<Vec<NodeId>> {
    let found: Vec<Uuid> =
        sqlx::query_scalar!("select distinct node_id from guests where project_id = $1", id.0).fetch_all(conn).await?;
    Ok(found.into_iter().map(NodeId).collect())
}
