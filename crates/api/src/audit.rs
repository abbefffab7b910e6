//! The audit: who did what to what.

use chrono::{DateTime, Utc};
use corpus_domain::UserName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Role, Scope, get};
use crate::words::{Limit, SearchText};

/// Lists what was done, the newest first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListAudit {
    /// Only by this member.
    pub actor: Option<UserName>,
    /// Only what was done so: `guest.destroy`.
    pub action: Option<SearchText>,
    /// Only to what has this name.
    pub subject: Option<SearchText>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}

impl Operation for ListAudit {
    type Kind = Read;
    type Output = AuditPage;
    const META: Meta<Read> = get("list_audit", "/audit").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// When.
    pub at: DateTime<Utc>,
    /// Who, by login name; empty for Corpus itself.
    pub actor: String,
    /// What: `guest.destroy`.
    pub action: String,
    /// To what, by name.
    pub subject: String,
    /// More, as it differs from action to action; never a secret.
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
}

crate::page!(
    /// A page of the audit.
    AuditPage, AuditEntry
);
