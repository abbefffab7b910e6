//! Repositories of backups: when each is looked at next, and what was found.

use corpus_api::backups::BackupsChecked;
use corpus_domain::{Bytes, ProjectId};
use sqlx::PgConnection;

use super::guests::bytes;
use super::number;

/// When that of a project was last looked at, and what was found.
pub async fn checked(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Option<BackupsChecked>> {
    let row = sqlx::query!(
        r#"select checked_at as "at!", damage from backup_repositories where project_id = $1 and checked_at is not null"#,
        project.0
    );
    Ok(row.fetch_optional(conn).await?.map(|row| BackupsChecked { at: row.at, damage: row.damage }))
}

/// What that of a project takes, as it was counted last.
pub async fn size(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Bytes> {
    let found = sqlx::query_scalar!("select bytes from backup_repositories where project_id = $1", project.0);
    found.fetch_optional(conn).await?.map_or(Ok(Bytes(0)), |size| number(size).map(Bytes))
}

/// Keeps what it takes.
pub async fn counted(conn: &mut PgConnection, project: ProjectId, size: Bytes) -> sqlx::Result<()> {
    sqlx::query!("update backup_repositories set bytes = $2 where project_id = $1", project.0, bytes(size))
        .execute(conn)
        .await
        .map(drop)
}

/// Keeps what was found.
pub async fn found(conn: &mut PgConnection, project: ProjectId, damage: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!(
        "update backup_repositories set checked_at = now(), damage = left($2, 2000) where project_id = $1",
        project.0,
        damage
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether that of a project was made.
pub async fn is_there(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select from backup_repositories where project_id = $1) as "is!""#,
        project.0
    );
    found.fetch_one(conn).await
}

/// The one that is due for longest, unless one is being looked at: it is not due again for a week. What ends with its project
/// is not looked at.
pub async fn take_due(conn: &mut PgConnection) -> sqlx::Result<Option<ProjectId>> {
    let due = sqlx::query_scalar!(
        "update backup_repositories set check_at = now() + interval '7 days' where project_id = (
            select r.project_id from backup_repositories r join projects p on p.id = r.project_id
            where r.check_at <= now() and p.leaving_job is null
              and not exists (select from jobs where kind = 'backup_check' and state in ('waiting', 'running', 'undoing'))
            order by r.check_at limit 1 for update of r skip locked)
         returning project_id"
    );
    Ok(due.fetch_optional(conn).await?.map(ProjectId))
}
