//! What one has taken away or changed and can still undo.
//!
//! For a few minutes a slip costs one press. To undo is to do the reverse: it takes what that takes at that
//! moment, and is refused where that would be.

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, GuestId, ProjectName, UndoId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::words::Limit;

/// What can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Undoable {
    /// That an SSH key of one's own was removed.
    Key,
    /// That a member was removed from a project.
    Member,
    /// That a DNS name was detached from a guest.
    Name,
    /// That the settings of an environment were changed.
    Settings,
    /// That a DNS name was switched to another guest or environment.
    Switch,
}

/// Lists what one has changed oneself and can still undo, the newest first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListUndoes {
    /// Only this.
    pub of: Option<Undoable>,
    /// Only in this project.
    pub project: Option<ProjectName>,
    /// Only in this environment.
    pub environment: Option<Environment>,
    /// Only of this guest.
    pub guest: Option<GuestId>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListUndoes {
    type Kind = Read;
    type Output = UndoPage;
    const META: Meta<Read> = get("list_undoes", "/undoes").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Undoes what one has changed oneself, once: it takes what the reverse takes. What somebody else changed since then
/// stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Undo {
    /// Which change.
    pub undo: UndoId,
}
impl Operation for Undo {
    type Kind = Write;
    type Output = Undone;
    const META: Meta<Write> = post("undo", "/undoes/{undo}").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// A change that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndoLine {
    /// Its id.
    pub id: UndoId,
    /// What it was.
    pub of: Undoable,
    /// The same in a sentence, with names.
    pub said: String,
    /// Whether it can be undone now: what is still on its way can be a moment later.
    pub ready: bool,
    /// When it was done.
    pub created_at: DateTime<Utc>,
    /// Until when it can be undone.
    pub expires_at: DateTime<Utc>,
}

crate::page!(
    /// What can be undone.
    UndoPage, UndoLine
);

/// A change was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Undone {
    /// Which.
    pub undo: UndoId,
    /// The page where it was made.
    pub path: String,
}
impl Reply for Undone {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(self.path.clone())
    }
}
