//! What a question is about: its project, and what this very thing needs.

use corpus_api::operation::Role;
use corpus_api::principal::to_start;
use corpus_api::{Denied, Scope};
use corpus_domain::{Environment, JobKind, ProjectCreators, ProjectId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Error, Result};

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The project, if it is about one.
    pub project: Option<ProjectId>,
    /// The least that this thing needs, whatever is asked of it.
    pub at_least: Role,
    /// Whether who may not ask learns nothing of it.
    pub hidden: bool,
}

impl About {
    pub(crate) const SITE: Self = Self { project: None, at_least: Role::Member, hidden: false };

    fn of(project: Uuid) -> Self {
        Self { project: Some(ProjectId(project)), ..Self::SITE }
    }
}

/// Finds what a scope names. What is not there is [`Denied::NotFound`].
pub async fn resolve(conn: &mut PgConnection, scope: &Scope, creators: ProjectCreators) -> Result<About> {
    let found = match scope {
        Scope::Visible | Scope::Own | Scope::Site => return Ok(About::SITE),
        Scope::NewProject => {
            let at_least = if creators == ProjectCreators::Ops { Role::Ops } else { Role::Member };
            return Ok(About { at_least, ..About::SITE });
        }
        Scope::Node(id) => {
            let there = sqlx::query_scalar!("select id from nodes where id = $1", id.0).fetch_optional(conn).await?;
            return there.map(|_| About::SITE).ok_or(Error::Denied(Denied::NotFound));
        }
        Scope::Zone(id) => {
            let there = sqlx::query_scalar!("select id from zones where id = $1", id.0).fetch_optional(conn).await?;
            return there.map(|_| About::SITE).ok_or(Error::Denied(Denied::NotFound));
        }
        Scope::Job(id) => return job(conn, id.0, false).await,
        Scope::JobDecision(id) => return job(conn, id.0, true).await,
        Scope::Project(name) | Scope::Environment(name, _) => {
            sqlx::query_scalar!("select id from projects where name = $1", name.as_str()).fetch_optional(conn).await?
        }
        Scope::Guest(id) => {
            sqlx::query_scalar!("select project_id from guests where id = $1", id.0).fetch_optional(conn).await?
        }
        Scope::Name(id) => {
            sqlx::query_scalar!(
                "select g.project_id from dns_names n join guests g on g.id = n.guest_id where n.id = $1",
                id.0
            )
            .fetch_optional(conn)
            .await?
        }
        Scope::Deployment(id) => {
            sqlx::query_scalar!("select project_id from deployments where id = $1", id.0).fetch_optional(conn).await?
        }
    };
    found.map(About::of).ok_or(Error::Denied(Denied::NotFound))
}

/// A job of a node tells of guests of every project: it is for operators. To decide about a job takes what
/// it takes to start one like it.
async fn job(conn: &mut PgConnection, id: Uuid, decides: bool) -> Result<About> {
    let row = sqlx::query!(
        "select project_id, kind, params #>> '{on,environment}' as environment from jobs where id = $1",
        id
    );
    let row = row.fetch_optional(conn).await?.ok_or(Error::Denied(Denied::NotFound))?;
    let Some(project) = row.project_id else {
        return Ok(About { project: None, at_least: Role::Ops, hidden: true });
    };
    let environment: Option<Environment> = row.environment.and_then(|word| word.parse().ok());
    // A kind that this release does not know is of a later one: only operators decide about it.
    let start = row.kind.parse::<JobKind>().map_or(Role::Ops, |kind| to_start(kind, environment));
    Ok(About { at_least: if decides { start } else { Role::Viewer }, ..About::of(project) })
}
