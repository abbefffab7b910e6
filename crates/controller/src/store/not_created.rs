//! Jobs that made nothing, when somebody has read it.

use corpus_domain::{DnsName, Environment, JobId, JobKind, ProjectId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

/// What the job was to make.
#[derive(Debug, Clone, Copy)]
pub enum About {
    /// A guest of this project.
    Guest(ProjectId),
    /// A link to a node.
    Node,
}

impl About {
    const fn kind(self) -> JobKind {
        match self {
            Self::Guest(_) => JobKind::GuestCreate,
            Self::Node => JobKind::NodeLink,
        }
    }

    const fn project(self) -> Option<Uuid> {
        match self {
            Self::Guest(project) => Some(project.0),
            Self::Node => None,
        }
    }
}

/// Dismisses that a job made nothing, if it was undone, and was about this where that is said. Tells whether
/// it is dismissed now.
pub async fn dismiss(conn: &mut PgConnection, job: JobId, by: UserId, about: Option<About>) -> sqlx::Result<bool> {
    let found = sqlx::query!(
        "update jobs set dismissed_by = case when dismissed_at is null then $2 else dismissed_by end,
             dismissed_at = coalesce(dismissed_at, now())
         where id = $1 and state = 'undone'
             and ($3::text is null or kind = $3 and project_id is not distinct from $4)",
        job.0,
        by.0,
        about.map(About::kind).map(JobKind::as_str),
        about.and_then(About::project),
    );
    found.execute(conn).await.map(|done| done.rows_affected() == 1)
}

/// Dismisses that an environment could not be set up: somebody asks for it again.
pub async fn set_up_again(
    conn: &mut PgConnection,
    (project, environment): (ProjectId, Environment),
    by: UserId,
) -> sqlx::Result<()> {
    let again = sqlx::query!(
        "update jobs set dismissed_by = $3, dismissed_at = now()
         where state = 'undone' and dismissed_at is null and kind = 'environment_set_up' and project_id = $1
             and params #>> '{on,environment}' = $2",
        project.0,
        environment.as_str(),
        by.0,
    );
    again.execute(conn).await.map(drop)
}

/// Dismisses that a name could not be attached: somebody asks for it again.
pub async fn attached_again(
    conn: &mut PgConnection,
    project: ProjectId,
    name: &DnsName,
    by: UserId,
) -> sqlx::Result<()> {
    let again = sqlx::query!(
        "update jobs set dismissed_by = $3, dismissed_at = now()
         where state = 'undone' and dismissed_at is null and kind = 'name_attach' and project_id = $1
             and params ->> 'name' = $2",
        project.0,
        name.as_str(),
        by.0,
    );
    again.execute(conn).await.map(drop)
}
