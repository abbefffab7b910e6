//! Environments and their guests as pages show them.

use corpus_domain::{Environment, GuestId, GuestName, ProjectId};
use sqlx::PgConnection;

use super::{json, json_opt, word};
use crate::project_views::{EnvironmentView, OtherGuestView};

/// The environments of projects as pages show them, without names and jobs; each with its project.
pub async fn views(
    conn: &mut PgConnection,
    projects: &[ProjectId],
    git_url: Option<&str>,
) -> sqlx::Result<Vec<(ProjectId, EnvironmentView)>> {
    let projects: Vec<_> = projects.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        "select e.project_id, p.name, e.environment, e.state, e.state_reason, e.guest_id, g.name as guest,
                g.state as guest_state, e.live, d.number as \"live_number?\", e.archives, e.configuration,
                e.observed_at, e.settings
         from environments e join projects p on p.id = e.project_id join guests g on g.id = e.guest_id
         left join deployments d on d.id::text = e.live ->> 'deployment'
         where e.project_id = any($1)
         order by p.name, array_position(array['dev', 'staging', 'prod'], e.environment)",
        &projects,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let address = git_url.map(|begin| format!("{begin}/{}/{}", row.name, row.environment));
            let view = EnvironmentView {
                environment: word(&row.environment)?,
                state: word(&row.state)?,
                state_reason: row.state_reason,
                guest_id: GuestId(row.guest_id),
                guest: word(&row.guest)?,
                guest_state: word(&row.guest_state)?,
                hosts: Vec::new(),
                others: Vec::new(),
                pillar_url: address.as_ref().map(|address| format!("{address}/pillar")),
                git_url: address,
                live: json_opt(row.live)?,
                live_number: row.live_number,
                archives: json(row.archives)?,
                configuration: json(row.configuration)?,
                observed_at: row.observed_at,
                settings: json(row.settings)?,
                job: None,
            };
            Ok((ProjectId(row.project_id), view))
        })
        .collect()
}

/// The other guests of the projects' environments as pages show them, without names and jobs.
pub async fn other_views(
    conn: &mut PgConnection,
    projects: &[ProjectId],
) -> sqlx::Result<Vec<(ProjectId, Environment, OtherGuestView)>> {
    let projects: Vec<_> = projects.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        "select o.project_id, o.environment, o.state, o.state_reason, o.guest_id, g.name as guest,
                g.state as guest_state, o.live, d.number as \"live_number?\", o.observed_at
         from environment_guests o join guests g on g.id = o.guest_id
         left join deployments d on d.id::text = o.live ->> 'deployment'
         where o.project_id = any($1) order by g.name",
        &projects,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let view = OtherGuestView {
                guest_id: GuestId(row.guest_id),
                guest: word(&row.guest)?,
                guest_state: word(&row.guest_state)?,
                state: word(&row.state)?,
                state_reason: row.state_reason,
                hosts: Vec::new(),
                live: json_opt(row.live)?,
                live_number: row.live_number,
                observed_at: row.observed_at,
                job: None,
            };
            Ok((ProjectId(row.project_id), word(&row.environment)?, view))
        })
        .collect()
}

/// The running guests of a project that no environment stands on.
pub async fn free_guests(
    conn: &mut PgConnection,
    project: ProjectId,
) -> sqlx::Result<Vec<(GuestId, GuestName, Environment)>> {
    let rows = sqlx::query!(
        "select g.id, g.name, g.environment from guests g
         where g.project_id = $1 and g.state = 'running'
           and not exists (select 1 from environment_places s where s.guest_id = g.id)
         order by g.name",
        project.0,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((GuestId(row.id), word(&row.name)?, word(&row.environment)?))).collect()
}
