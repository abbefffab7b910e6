//! The audit: who did what to what. Written in the transaction of the change itself.

use corpus_api::Principal;
use corpus_domain::AuditId;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

/// A row to be written.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// What was done: `guest.destroy`.
    pub action: &'static str,
    /// To what, by the name that people know.
    pub subject: &'a str,
    /// Its id, if it has one.
    pub subject_id: Option<Uuid>,
    /// More, never a secret.
    pub detail: Value,
}

impl<'a> Entry<'a> {
    /// That something was done to what has this name.
    pub fn new(action: &'static str, subject: &'a str) -> Self {
        Self { action, subject, subject_id: None, detail: json!({}) }
    }

    /// The id of what it was done to.
    #[must_use]
    pub fn id(mut self, id: Uuid) -> Self {
        self.subject_id = Some(id);
        self
    }

    /// What else is to be kept, never a secret.
    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }
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
