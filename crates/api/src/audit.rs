//! The audit: who did what to what, by which door.
//!
//! Operators read all of it. A member reads what concerns the projects that they have a role in now, and what they did
//! themselves; a row that tells of others is for operators alone.

use chrono::{DateTime, Utc};
use corpus_domain::{ActorName, AuditId, Door, ExportFormat, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{File, FileType, Grant, Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::words::{Limit, SearchText, When};

/// Lists what was done: operators all of it, members what concerns their projects and what they did themselves.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListAudit {
    /// Only by this member.
    pub actor: Option<ActorName>,
    /// Only what was done so: `guest.destroy`, or `guest` for all that was done to guests.
    pub action: Option<SearchText>,
    /// Only to what has these words, or words that begin so, in its name.
    pub subject: Option<SearchText>,
    /// Only what concerns this project, or one that had its name.
    pub project: Option<ProjectName>,
    /// Only from then on.
    pub from: Option<When>,
    /// Only until then: with the whole of a day, and without an instant itself.
    pub until: Option<When>,
    /// Only where what else is known (a reason, a comment, what was so before) has these words, or words that begin so.
    pub q: Option<SearchText>,
    /// The newest first unless said.
    pub sort: Option<AuditOrder>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}

impl Operation for ListAudit {
    type Kind = Read;
    type Output = AuditPage;
    const META: Meta<Read> = get("list_audit", "/audit").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Exports what was done to a file, the newest first: all that the list has, with the same filters. That it was
/// exported is a row of the audit too.
///
/// One export of a member runs at a time. What they may see is judged anew as it goes on; when they may see nothing any
/// more the file breaks off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportAudit {
    /// How the file is written.
    pub format: ExportFormat,
    /// Only by this member.
    pub actor: Option<ActorName>,
    /// Only what was done so: `guest.destroy`, or `guest` for all that was done to guests.
    pub action: Option<SearchText>,
    /// Only to what has these words, or words that begin so, in its name.
    pub subject: Option<SearchText>,
    /// Only what concerns this project, or one that had its name.
    pub project: Option<ProjectName>,
    /// Only from then on.
    pub from: Option<When>,
    /// Only until then: with the whole of a day, and without an instant itself.
    pub until: Option<When>,
    /// Only where what else is known (a reason, a comment, what was so before) has these words, or words that begin so.
    pub q: Option<SearchText>,
}

impl Operation for ExportAudit {
    type Kind = Write;
    type Output = AuditExport;
    // It changes nothing but the audit, and sends no more than reading does.
    const META: Meta<Write> = post("export_audit", "/audit/export").needs(Role::Member).token(Grant::Read);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

impl ExportAudit {
    /// What is exported.
    pub fn list(&self) -> ListAudit {
        let Self { format: _, actor, action, subject, project, from, until, q } = self.clone();
        ListAudit { actor, action, subject, project, from, until, q, sort: None, cursor: None, limit: None }
    }
}

/// What is exported, and how. A door answers with the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditExport {
    /// How the file is written.
    pub format: ExportFormat,
    /// What it holds.
    pub asked: ListAudit,
}
impl Reply for AuditExport {
    const FILE: Option<FileType> = Some(FileType::Rows);
    fn file(&self) -> Option<File> {
        Some(File::Audit { asked: Box::new(self.asked.clone()), format: self.format })
    }
}

/// The order of the audit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditOrder {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// When.
    pub at: DateTime<Utc>,
    /// Who, by login name; empty for Corpus itself.
    pub actor: String,
    /// Whether that is a robot.
    pub robot: bool,
    /// By which door; none where it was not recorded yet.
    pub door: Option<Door>,
    /// With which token, by its name.
    pub token: Option<String>,
    /// What: `guest.destroy`.
    pub action: String,
    /// To what, by name.
    pub subject: String,
    /// Which project it concerns; none for what concerns none.
    pub project: Option<String>,
    /// More, as it differs from action to action; never a secret.
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
}

crate::page!(
    /// A page of the audit.
    AuditPage, AuditEntry
);
