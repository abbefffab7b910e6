//! The audit: who did what to what. Written in the transaction of the change itself.

use corpus_domain::AuditId;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::authz::Principal;
use crate::views::AuditView;

/// Rows on a page of the audit.
pub const PAGE: i64 = 50;

/// A row to be written.
#[derive(Debug)]
pub struct Entry<'a> {
    /// What was done: `guest.destroy`.
    pub action: &'static str,
    /// To what, by the name that people know.
    pub subject: &'a str,
    /// Its id, if it has one.
    pub subject_id: Option<Uuid>,
    /// More, never a secret.
    pub detail: serde_json::Value,
}

/// Writes a row in the name of `actor`.
pub async fn write(conn: &mut PgConnection, actor: &Principal, entry: Entry<'_>) -> sqlx::Result<()> {
    write_as(conn, Some(actor.id.0), actor.login.as_str(), entry).await
}

/// Writes a row for an actor who is no member (yet): a refused login, the system.
pub async fn write_as(
    conn: &mut PgConnection,
    actor_id: Option<Uuid>,
    actor: &str,
    entry: Entry<'_>,
) -> sqlx::Result<()> {
    let id = AuditId(Uuid::now_v7());
    sqlx::query!(
        "insert into audit (id, actor_id, actor, action, subject, subject_id, detail) values ($1, $2, $3, $4, $5, $6, $7)",
        id.0,
        actor_id,
        actor,
        entry.action,
        entry.subject,
        entry.subject_id,
        entry.detail,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A page of the audit, newest first; the first page is 0.
pub async fn page(conn: &mut PgConnection, page: u32) -> sqlx::Result<Vec<AuditView>> {
    sqlx::query_as!(
        AuditView,
        "select at, actor, action, subject, detail from audit order by at desc, id desc limit $1 offset $2",
        PAGE,
        PAGE * i64::from(page),
    )
    .fetch_all(conn)
    .await
}
