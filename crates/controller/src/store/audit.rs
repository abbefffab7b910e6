//! The audit: who did what to what. It is written where a change is committed.

use corpus_api::audit::{AuditEntry, ListAudit};
use corpus_domain::AuditId;
use sqlx::PgConnection;

pub use corpus_gate::audit::{Entry, write, write_as};

/// A row with its place in the list: ids are in the order of time.
#[derive(Debug)]
pub struct Row {
    /// Its id.
    pub id: AuditId,
    /// What it says.
    pub entry: AuditEntry,
}

/// The rows that match, the newest first, those before a row.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListAudit,
    before: Option<AuditId>,
    limit: i64,
) -> sqlx::Result<Vec<Row>> {
    let rows = sqlx::query!(
        "select id, at, actor, action, subject, detail from audit
         where ($1::uuid is null or id < $1) and ($2::text is null or actor = $2)
           and ($3::text is null or action = $3) and ($4::text is null or subject = $4)
         order by id desc limit $5",
        before.map(|id| id.0),
        asked.actor.as_ref().map(corpus_domain::UserName::as_str),
        asked.action.as_ref().map(corpus_api::words::SearchText::as_str),
        asked.subject.as_ref().map(corpus_api::words::SearchText::as_str),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .map(|row| {
            let (at, actor, action, subject, detail) = (row.at, row.actor, row.action, row.subject, row.detail);
            Row { id: AuditId(row.id), entry: AuditEntry { at, actor, action, subject, detail } }
        })
        .collect())
}
