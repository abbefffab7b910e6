//! The audit: who did what to what, by which door, and which project it concerns. Written in the transaction of the
//! change itself.
//!
//! Rows are only added. The database refuses everything else, to the server too: `forget_audit` alone removes what is
//! as old as configured, and that it did is a row.

use corpus_api::Principal;
use corpus_api::principal::{CameBy, UsedToken};
use corpus_domain::{AuditId, Door, ProjectId, UserId};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::approval::Approval;

/// A row to be written.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    action: &'static str,
    subject: &'a str,
    subject_id: Option<Uuid>,
    project: Option<ProjectId>,
    ops_only: bool,
    detail: Value,
}

impl<'a> Entry<'a> {
    /// That something (`guest.destroy`) was done to what people know by this name.
    pub fn new(action: &'static str, subject: &'a str) -> Self {
        Self { action, subject, subject_id: None, project: None, ops_only: false, detail: json!({}) }
    }

    /// The id of what it was done to.
    #[must_use]
    pub fn id(mut self, id: Uuid) -> Self {
        self.subject_id = Some(id);
        self
    }

    /// The project that it concerns: its members read the row. A change says it by itself where its question is about
    /// a project.
    #[must_use]
    pub const fn of_project(mut self, project: ProjectId) -> Self {
        self.project = Some(project);
        self
    }

    /// Only operators read it, not even who did it: it tells of somebody whom they don't know of.
    #[must_use]
    pub const fn ops_only(mut self) -> Self {
        self.ops_only = true;
        self
    }

    /// What else is to be kept, never a secret, and nothing that members of the project may not know.
    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }
}

/// Who did it, and how they came.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    id: Option<UserId>,
    name: &'a str,
    door: Door,
    token: Option<&'a UsedToken>,
}

impl<'a> Author<'a> {
    /// Who is here by no request of their own: a job, the directory, Corpus itself.
    pub const fn new(id: Option<UserId>, name: &'a str, door: Door) -> Self {
        Self { id, name, door, token: None }
    }
}

impl<'a> From<&'a Principal> for Author<'a> {
    fn from(who: &'a Principal) -> Self {
        let CameBy { door, token } = &who.came_by;
        Self { id: Some(who.id), name: who.login.as_str(), door: *door, token: token.as_ref() }
    }
}

/// Writes a row. Whether a robot did it, and what the project is called, is looked up and stays as it was then.
pub async fn write<'a>(conn: &mut PgConnection, by: impl Into<Author<'a>>, entry: Entry<'_>) -> sqlx::Result<()> {
    let (id, by) = (AuditId(Uuid::now_v7()), by.into());
    sqlx::query!(
        "insert into audit (id, actor_id, actor, robot, door, token_id, token, action, subject, subject_id, project_id,
            project, ops_only, detail)
         values ($1, $2, $3, exists (select from users where id = $2 and realm = 'robot'), $4, $5, $6, $7, $8, $9, $10,
            (select name from projects where id = $10), $11, $12)",
        id.0,
        by.id.map(|id| id.0),
        by.name,
        by.door.as_str(),
        by.token.map(|token| token.id.0),
        by.token.map(|token| token.name.as_str()),
        entry.action,
        entry.subject,
        entry.subject_id,
        entry.project.map(|project| project.0),
        entry.ops_only,
        entry.detail,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The project of the question that was judged, unless the row says another one, and who approved it, if it was asked
/// for.
pub(crate) fn about<'a>(entry: Entry<'a>, project: Option<ProjectId>, approval: Option<&Approval>) -> Entry<'a> {
    let project = entry.project.or(project);
    let detail = match approval {
        Some(approval) => approval.told(entry.detail),
        None => entry.detail,
    };
    Entry { project, detail, ..entry }
}
