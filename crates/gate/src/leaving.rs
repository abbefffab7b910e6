//! A project that is being destroyed is not written to any more. That is decided here, once, for every change that
//! is about a project: where its transaction begins.
//!
//! The project's row is held shared by each change until it is over, and alone by the one that says that the project
//! is to go. So of a change and that one, whichever comes first has happened when the other one looks.

use corpus_domain::{JobId, JobState, ProjectId, ProjectName};
use sqlx::PgConnection;

use crate::{Error, Result};

/// A project that is to go, or that went only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Its name.
    pub project: ProjectName,
    /// The job that destroys it, or did so in part.
    pub job: JobId,
    /// Whether there is no way back any more.
    pub for_good: bool,
    /// Whether that job is over, so that it takes another one.
    pub is_left: bool,
}

impl Leaving {
    /// Why the project is not written to, and what can be done.
    pub fn sentence(&self) -> String {
        let Self { project, job, for_good, is_left } = self;
        match (is_left, for_good) {
            (true, _) => format!(
                "Project {project} was not destroyed completely by job {job}: destroy it again, that goes on where the job ended."
            ),
            (false, true) => {
                format!("Project {project} is being destroyed by job {job}, and there is no way back any more.")
            }
            (false, false) => format!(
                "Project {project} is being destroyed by job {job}: nothing of it can be changed meanwhile. To keep it, cancel \
                 that job before it begins to destroy the first guest."
            ),
        }
    }
}

/// Whether the project is to go; it stays as it is told until the transaction ends.
pub async fn leaving(conn: &mut PgConnection, project: ProjectId) -> Result<Option<Leaving>> {
    let row = sqlx::query!(
        "select name, leaving_job, destroying_since is not null as \"for_good!\"
         from projects where id = $1 for key share",
        project.0,
    );
    let row = row.fetch_optional(&mut *conn).await?.ok_or(corpus_api::Denied::NotFound)?;
    let Some(job) = row.leaving_job else { return Ok(None) };
    // In a statement of its own: one that had to wait for the row sees of other tables what was before that.
    let state = sqlx::query_scalar!("select state from jobs where id = $1", job).fetch_optional(conn).await?;
    let state: Option<JobState> = state.and_then(|word| word.parse().ok());
    Ok(Some(Leaving {
        project: row.name.parse()?,
        job: JobId(job),
        for_good: row.for_good,
        // One that is stuck is settled by whoever decides about it.
        is_left: state.is_none_or(|state| state.is_over() && state != JobState::Stuck),
    }))
}

/// Refuses what would change a project that is to go.
pub(crate) async fn refuse(conn: &mut PgConnection, project: ProjectId) -> Result<()> {
    match leaving(conn, project).await? {
        None => Ok(()),
        Some(leaving) => Err(Error::Conflict(leaving.sentence())),
    }
}
