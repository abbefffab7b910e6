//! The keys of badges, and how an environment stands that one shows.

use chrono::{DateTime, Utc};
use corpus_domain::{CommitId, DeploymentState, Environment, ProjectId, UserId};
use sqlx::PgConnection;

use super::word_opt;

/// The key of a project's badges, sealed, and when it was made.
pub async fn key(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Option<(Vec<u8>, DateTime<Utc>)>> {
    let row = sqlx::query!("select key, made_at from badge_keys where project_id = $1", project.0);
    Ok(row.fetch_optional(conn).await?.map(|row| (row.key, row.made_at)))
}

/// Keeps a key, in place of the one before.
pub async fn set(
    conn: &mut PgConnection,
    project: ProjectId,
    (hash, key): (&[u8], &[u8]),
    by: UserId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into badge_keys (project_id, hash, key, made_by) values ($1, $2, $3, $4)
         on conflict (project_id) do update set hash = $2, key = $3, made_by = $4, made_at = now()",
        project.0,
        hash,
        key,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Takes it away; tells whether there was one.
pub async fn remove(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<bool> {
    let removed = sqlx::query!("delete from badge_keys where project_id = $1", project.0);
    Ok(removed.execute(conn).await?.rows_affected() == 1)
}

/// How an environment stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What is live.
    pub live: Option<CommitId>,
    /// Whether something is live, also if it has no commit.
    pub is_live: bool,
    /// The state of its newest deployment.
    pub newest: Option<DeploymentState>,
}

/// How the environment stands, for who has the key of its project's badges. A wrong key, a wrong name and a project
/// without badges are one question with no answer.
pub async fn shown(
    conn: &mut PgConnection,
    hash: &[u8],
    project: &str,
    environment: Environment,
) -> sqlx::Result<Option<Shown>> {
    let row = sqlx::query!(
        r#"select l.live ->> 'commit' as live, l.live is not null as "is_live!", d.state as "newest?"
           from badge_keys b join projects p on p.id = b.project_id
           left join environment_guests l on l.project_id = p.id and l.environment = $3 and l.role = 'leader'
           left join lateral (
               select state from deployments
               where project_id = p.id and environment = $3 and leader_id is null
                   and trigger <> 'drill' and state <> 'superseded'
               order by number desc limit 1
           ) d on true
           where b.hash = $1 and p.name = $2"#,
        hash,
        project,
        environment.as_str(),
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let (live, newest) = (word_opt(row.live.as_deref())?, word_opt(row.newest.as_deref())?);
    Ok(Some(Shown { live, is_live: row.is_live, newest }))
}
