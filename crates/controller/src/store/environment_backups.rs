//! Backups of an environment: of each of its guests the one that it would be brought back to.

use chrono::{DateTime, Utc};
use corpus_api::environments::backups::{ChosenBackup, EnvironmentBackup};
use corpus_domain::{BackupId, Bytes, Environment, GuestId, ProjectId};
use sqlx::PgConnection;

use super::backups::{dump, proof};
use super::{number, word, word_opt};

/// Of which guests, and not taken after when.
#[derive(Debug, Clone, Copy)]
pub struct Of {
    /// Of which project.
    pub project: ProjectId,
    /// Of which environment.
    pub environment: Environment,
    /// Not taken after this moment; none: the latest.
    pub at: Option<DateTime<Utc>>,
}

/// Holds the guests of an environment until the transaction ends, in the order of their ids: two that hold several don't
/// wait for each other.
pub async fn hold(conn: &mut PgConnection, of: Of) -> sqlx::Result<()> {
    sqlx::query!(
        "select id from guests where project_id = $1 and environment = $2 order by id for update",
        of.project.0,
        of.environment.as_str(),
    )
    .fetch_all(conn)
    .await
    .map(drop)
}

/// A page of the guests of an environment by name, each with its latest backup that can be brought back.
pub async fn page(
    conn: &mut PgConnection,
    of: Of,
    after: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<EnvironmentBackup>> {
    let rows = sqlx::query!(
        r#"select g.id, g.name, g.state, b.id as "backup?", b.comment as "comment?", b.taken_at as "taken_at?",
             b.bytes as "bytes?", b.dumped_bytes as "dumped_bytes?", b.dump_problem as "dump_problem?",
             p.began_at as "began_at?", p.ended_at as "ended_at?", p.passed as "passed?", p.told as "told?"
           from guests g
           left join lateral (
             select b.id, b.comment, b.taken_at, b.bytes, b.dumped_bytes, b.dump_problem from guest_backups b
             where b.guest_id = g.id and b.state = 'ready' and b.taken_at <= coalesce($3, 'infinity'::timestamptz)
             order by b.taken_at desc, b.id desc limit 1) b on true
           left join backup_proofs p on p.backup_id = b.id
           where g.project_id = $1 and g.environment = $2 and g.name > $4 order by g.name limit $5"#,
        of.project.0,
        of.environment.as_str(),
        of.at,
        after.unwrap_or_default(),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let found = row.backup.zip(row.taken_at);
        let backup = match found {
            None => None,
            Some((id, taken_at)) => Some(ChosenBackup {
                id: BackupId(id),
                comment: word_opt(row.comment.as_deref())?,
                taken_at,
                bytes: row.bytes.map(number).transpose()?.map(Bytes),
                dump: dump(row.dumped_bytes, row.dump_problem)?,
                proof: proof(row.began_at, row.ended_at, row.passed, row.told),
            }),
        };
        Ok(EnvironmentBackup { guest: GuestId(row.id), name: word(&row.name)?, state: word(&row.state)?, backup })
    });
    rows.collect()
}

/// All of them together.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// How many guests there are.
    pub guests: u64,
    /// How many of them have such a backup.
    pub backed_up: u64,
    /// The earliest moment that one of these is of.
    pub earliest: Option<DateTime<Utc>>,
    /// The latest one.
    pub latest: Option<DateTime<Utc>>,
}

/// How many guests an environment has, and what their backups are of.
pub async fn counts(conn: &mut PgConnection, of: Of) -> sqlx::Result<Counts> {
    let row = sqlx::query!(
        r#"select count(*) as "guests!", count(b.taken_at) as "backed_up!", min(b.taken_at) as earliest,
             max(b.taken_at) as latest
           from guests g
           left join lateral (
             select max(b.taken_at) as taken_at from guest_backups b
             where b.guest_id = g.id and b.state = 'ready' and b.taken_at <= coalesce($3, 'infinity'::timestamptz)) b
             on true
           where g.project_id = $1 and g.environment = $2"#,
        of.project.0,
        of.environment.as_str(),
        of.at,
    );
    let row = row.fetch_one(conn).await?;
    Ok(Counts {
        guests: number(row.guests)?,
        backed_up: number(row.backed_up)?,
        earliest: row.earliest,
        latest: row.latest,
    })
}
