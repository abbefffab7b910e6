//! The numbers beside the navigation: each page has them, so they are one statement.

use corpus_domain::ProjectId;
use sqlx::PgConnection;

use super::number;
use crate::views::Counts;

/// What the rows of the projects come to; nodes and jobs have their own rules and are left at 0.
pub async fn of_projects(conn: &mut PgConnection, projects: Option<&[ProjectId]>) -> sqlx::Result<Counts> {
    let projects = projects.map(|ids| ids.iter().map(|id| id.0).collect::<Vec<_>>());
    let row = sqlx::query!(
        r#"
        with seen as (
            select id, state from guests where $1::uuid[] is null or project_id = any($1)
        ), names as (
            select n.state from dns_names n join seen on seen.id = n.guest_id
        )
        select
            (select count(*) from seen) as "guests!",
            (select count(*) from seen where state = 'running') as "running!",
            (select count(*) from seen where state = 'failed') as "failed!",
            (select count(*) from seen where state = 'stopped') as "stopped!",
            (select count(*) from names) as "names!",
            (select count(*) from names where state = 'attached') as "attached!",
            (select count(*) from projects where $1 is null or id = any($1)) as "projects!",
            (select count(*) from deployments
                where ended_at is null and leader_id is null and ($1 is null or project_id = any($1))) as "deployments!"
        "#,
        projects.as_deref(),
    )
    .fetch_one(conn)
    .await?;
    Ok(Counts {
        guests: number(row.guests)?,
        guests_running: number(row.running)?,
        guests_failed: number(row.failed)?,
        guests_stopped: number(row.stopped)?,
        names: number(row.names)?,
        names_attached: number(row.attached)?,
        projects: number(row.projects)?,
        deployments_running: number(row.deployments)?,
        ..Counts::default()
    })
}
