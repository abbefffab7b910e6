//! What is looked at when a node is checked, and what was found to differ.

use corpus_domain::{DriftKind, GuestId, GuestName};
use serde::{Deserialize, Serialize};

use crate::guest::AuthorizedKeys;

/// A guest as it should be, as far as that can be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestCheck {
    /// Its name.
    pub name: GuestName,
    /// Which of this name.
    #[serde(default)]
    pub id: Option<GuestId>,
    /// Whether its container must be there; a job may just be making or destroying it.
    pub there: bool,
    /// Whether it should run; absent when either is right.
    pub running: Option<bool>,
    /// The keys that Corpus keeps in it, looked at while it runs: a stopped guest gets them
    /// when it is started.
    pub keys: Option<AuthorizedKeys>,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What of the node it concerns.
    pub kind: DriftKind,
    /// The guest it concerns, if one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestName>,
    /// What was found, for a person; the same finding always has the same text.
    pub text: String,
}

impl Difference {
    /// Something about the node itself.
    pub fn of_node(kind: DriftKind, text: impl Into<String>) -> Self {
        Self { kind, guest: None, text: text.into() }
    }

    /// Something about a guest.
    pub fn of_guest(kind: DriftKind, guest: &GuestName, text: impl Into<String>) -> Self {
        Self { kind, guest: Some(guest.clone()), text: text.into() }
    }
}
