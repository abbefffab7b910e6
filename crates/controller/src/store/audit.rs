//! The audit: who did what to what. It is written where a change is committed, and only ever added to.

use chrono::{DateTime, Utc};
use corpus_api::audit::{AuditEntry, AuditOrder, ListAudit};
use corpus_api::words::{SearchText, When};
use corpus_domain::{ActorName, AuditId, ProjectId, ProjectName, UserId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::word_opt;

pub use corpus_gate::audit::{Author, Entry, write};

/// Where a row is in the list: by its time, and by its id among those of one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place(DateTime<Utc>, Uuid);

impl Place {
    /// Of a row.
    pub const fn of(entry: &AuditEntry) -> Self {
        Self(entry.at, entry.id.0)
    }
}

/// Where to go on: at the end of the order unless said, so that each question bounds what is read of an index. What is
/// before all time is written by hand, and no time of PostgreSQL.
fn place(beyond: Option<Place>, order: AuditOrder) -> Place {
    let end = match order {
        AuditOrder::Newest => Place(DateTime::<Utc>::MAX_UTC, Uuid::max()),
        AuditOrder::Oldest => Place(DateTime::UNIX_EPOCH, Uuid::nil()),
    };
    let Place(at, id) = beyond.unwrap_or(end);
    Place(at.max(DateTime::UNIX_EPOCH), id)
}

/// Who reads.
#[derive(Debug, Clone, Copy)]
pub enum Reader<'a> {
    /// Operators: all of it.
    Ops,
    /// A member: what concerns the projects that they have a role in now, and what they did themselves, but for what
    /// tells of others.
    Member(UserId, &'a [ProjectId]),
}

/// Something that was done to a thing.
#[derive(Debug)]
pub struct Done {
    /// When.
    pub at: DateTime<Utc>,
    /// Who.
    pub actor: String,
    /// More.
    pub detail: serde_json::Value,
}

/// The newest of what was done so to a thing.
pub async fn of(conn: &mut PgConnection, action: &str, subject: Uuid, limit: usize) -> sqlx::Result<Vec<Done>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    sqlx::query_as!(
        Done,
        "select at, actor, detail from audit where subject_id = $1 and action = $2 order by id desc limit $3",
        subject,
        action,
        limit,
    )
    .fetch_all(conn)
    .await
}

macro_rules! entries {
    ($rows:expr) => {
        $rows
            .into_iter()
            .map(|row| {
                Ok(AuditEntry {
                    id: AuditId(row.id),
                    at: row.at,
                    actor: row.actor,
                    robot: row.robot,
                    door: word_opt(row.door.as_deref())?,
                    token: row.token,
                    action: row.action,
                    subject: row.subject,
                    project: row.project,
                    detail: row.detail,
                })
            })
            .collect()
    };
}

/// As many rows are looked through in order for words before an index is asked which rows have them.
const NEAR: i64 = 200;

/// The rows that match, in the order that is asked, those beyond a place.
///
/// Of words nobody knows beforehand how many rows have them. Those that many have fill the page from the nearest rows;
/// those that do not are rare, and an index has them all.
pub async fn list(
    conn: &mut PgConnection,
    reader: Reader<'_>,
    asked: &ListAudit,
    beyond: Option<Place>,
    limit: i64,
) -> sqlx::Result<Vec<AuditEntry>> {
    let (order, between) = (asked.sort.unwrap_or_default(), between(asked));
    let place = place(beyond, order);
    if asked.subject.is_none() && asked.q.is_none() {
        return in_order(conn, reader, asked, between, place, limit).await;
    }
    let near = near(conn, between, place, order).await?;
    let found = in_order(conn, reader, asked, near, place, limit).await?;
    if near == between || i64::try_from(found.len()).is_ok_and(|many| many >= limit) {
        return Ok(found);
    }
    of_words(conn, reader, asked, between, place, limit).await
}

type Between = (DateTime<Utc>, DateTime<Utc>);

/// What of a time holds the nearest rows beyond a place; all of it when there are no more.
async fn near(
    conn: &mut PgConnection,
    (from, until): Between,
    Place(at, id): Place,
    order: AuditOrder,
) -> sqlx::Result<Between> {
    Ok(match order {
        AuditOrder::Newest => {
            let last = sqlx::query_scalar!(
                "select at from audit where at >= $1 and at < $2 and (at, id) < ($3, $4)
                 order by at desc, id desc offset $5 limit 1",
                from,
                until,
                at,
                id,
                NEAR,
            );
            (last.fetch_optional(conn).await?.unwrap_or(from), until)
        }
        AuditOrder::Oldest => {
            let last = sqlx::query_scalar!(
                "select at from audit where at >= $1 and at < $2 and (at, id) > ($3, $4)
                 order by at, id offset $5 limit 1",
                from,
                until,
                at,
                id,
                NEAR,
            );
            (from, last.fetch_optional(conn).await?.unwrap_or(until))
        }
    })
}

async fn in_order(
    conn: &mut PgConnection,
    reader: Reader<'_>,
    asked: &ListAudit,
    between: Between,
    place: Place,
    limit: i64,
) -> sqlx::Result<Vec<AuditEntry>> {
    match reader {
        Reader::Ops => all(conn, asked, between, place, limit).await,
        Reader::Member(who, projects) => of_member(conn, (who, projects), asked, between, place, limit).await,
    }
}

/// What has the words, by their index, and of that what else is asked.
async fn of_words(
    conn: &mut PgConnection,
    reader: Reader<'_>,
    asked: &ListAudit,
    (from, until): Between,
    Place(at, id): Place,
    limit: i64,
) -> sqlx::Result<Vec<AuditEntry>> {
    let (who, projects) = match reader {
        Reader::Ops => (None, Vec::new()),
        Reader::Member(who, projects) => (Some(who.0), projects.iter().map(|project| project.0).collect()),
    };
    macro_rules! rows {
        ($beyond:tt, $order:tt) => {{
            let rows = sqlx::query!(
                r#"with found as materialized (select * from audit where audit_has(audit, null, null, $7, $8, null))
                 select id as "id!", at as "at!", actor as "actor!", robot as "robot!", door, token, action as "action!",
                     subject as "subject!", project, detail as "detail!"
                 from found
                 where at >= $1 and at < $2
                   and ($5::text is null or actor = $5)
                   and ($6::text is null or action = $6 or starts_with(action, $6 || '.'))
                   and ($9::text is null or project = $9)
                   and ($11::uuid is null or (not ops_only and (actor_id = $11 or project_id = any($12::uuid[]))))
                   and (at, id) "#
                    + $beyond
                    + " ($3, $4) order by at "
                    + $order
                    + ", id "
                    + $order
                    + " limit $10",
                from,
                until,
                at,
                id,
                asked.actor.as_ref().map(ActorName::as_str),
                asked.action.as_ref().map(SearchText::as_str),
                asked.subject.as_ref().map(SearchText::as_str),
                asked.q.as_ref().map(SearchText::as_str),
                asked.project.as_ref().map(ProjectName::as_str),
                limit,
                who,
                &projects,
            );
            entries!(rows.fetch_all(conn).await?)
        }};
    }
    match asked.sort.unwrap_or_default() {
        AuditOrder::Newest => rows!("<", "desc"),
        AuditOrder::Oldest => rows!(">", "asc"),
    }
}

async fn all(
    conn: &mut PgConnection,
    asked: &ListAudit,
    (from, until): Between,
    Place(at, id): Place,
    limit: i64,
) -> sqlx::Result<Vec<AuditEntry>> {
    // From either end: a statement is checked when it is compiled, so each order is one of its own.
    macro_rules! rows {
        ($beyond:tt, $order:tt) => {{
            let rows = sqlx::query!(
                "select id, at, actor, robot, door, token, action, subject, project, detail from audit
                 where at >= $1 and at < $2 and audit_has(audit, $5, $6, $7, $8, $9) and (at, id) "
                    + $beyond
                    + " ($3, $4) order by at "
                    + $order
                    + ", id "
                    + $order
                    + " limit $10",
                from,
                until,
                at,
                id,
                asked.actor.as_ref().map(ActorName::as_str),
                asked.action.as_ref().map(SearchText::as_str),
                asked.subject.as_ref().map(SearchText::as_str),
                asked.q.as_ref().map(SearchText::as_str),
                asked.project.as_ref().map(ProjectName::as_str),
                limit,
            );
            entries!(rows.fetch_all(conn).await?)
        }};
    }
    match asked.sort.unwrap_or_default() {
        AuditOrder::Newest => rows!("<", "desc"),
        AuditOrder::Oldest => rows!(">", "asc"),
    }
}

/// Of each project, and of what they did, as many as a page has: so it costs what the page costs, however much there is.
async fn of_member(
    conn: &mut PgConnection,
    (who, projects): (UserId, &[ProjectId]),
    asked: &ListAudit,
    (from, until): Between,
    Place(at, id): Place,
    limit: i64,
) -> sqlx::Result<Vec<AuditEntry>> {
    let projects: Vec<Uuid> = projects.iter().map(|project| project.0).collect();
    macro_rules! rows {
        ($beyond:tt, $order:tt) => {{
            let rows = sqlx::query!(
                r#"select id as "id!", at as "at!", actor as "actor!", robot as "robot!", door, token, action as "action!",
                     subject as "subject!", project, detail as "detail!"
                 from (
                    select of_one.* from projects p cross join lateral (
                        select * from audit where audit.project_id = p.id and not ops_only
                            and at >= $1 and at < $2 and audit_has(audit, $5, $6, $7, $8, $9) and (at, id) "#
                    + $beyond
                    + " ($3, $4) order by at "
                    + $order
                    + ", id "
                    + $order
                    + " limit $10) of_one
                    where p.id = any($12) and ($9::text is null or p.name = $9)
                    union
                    (select * from audit where actor_id = $11 and not ops_only
                        and at >= $1 and at < $2 and audit_has(audit, $5, $6, $7, $8, $9) and (at, id) "
                    + $beyond
                    + " ($3, $4) order by at "
                    + $order
                    + ", id "
                    + $order
                    + " limit $10)
                 ) found order by at "
                    + $order
                    + ", id "
                    + $order
                    + " limit $10",
                from,
                until,
                at,
                id,
                asked.actor.as_ref().map(ActorName::as_str),
                asked.action.as_ref().map(SearchText::as_str),
                asked.subject.as_ref().map(SearchText::as_str),
                asked.q.as_ref().map(SearchText::as_str),
                asked.project.as_ref().map(ProjectName::as_str),
                limit,
                who.0,
                &projects,
            );
            entries!(rows.fetch_all(conn).await?)
        }};
    }
    match asked.sort.unwrap_or_default() {
        AuditOrder::Newest => rows!("<", "desc"),
        AuditOrder::Oldest => rows!(">", "asc"),
    }
}

fn between(asked: &ListAudit) -> Between {
    let from = asked.from.map_or(DateTime::UNIX_EPOCH, When::begin);
    (from, asked.until.map_or(DateTime::<Utc>::MAX_UTC, When::end))
}

/// Removes rows of days that ended so many days ago, the oldest first and so many at most: the database keeps that it
/// did. Tells how many there were; none while another server does it.
pub async fn forget_old(conn: &mut PgConnection, days: i32, most: i32) -> sqlx::Result<i64> {
    let removed = sqlx::query_scalar!("select forget_audit($1, $2)", days, most).fetch_one(conn).await?;
    Ok(removed.unwrap_or_default())
}
