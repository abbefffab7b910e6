//! The Salt masters of the controller: which there are, what they have, and who asked them in vain.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Role, Scope, get};
use crate::words::Limit;

/// Lists the Salt masters of the controller, by name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListSaltMasters {
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListSaltMasters {
    type Kind = Read;
    type Output = SaltMasterPage;
    const META: Meta<Read> = get("list_salt_masters", "/salt-masters").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

crate::page!(
    /// A page of Salt masters.
    SaltMasterPage, SaltMaster
);

/// A Salt master of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SaltMaster {
    /// What it is called.
    pub name: String,
    /// Where guests reach it.
    pub address: String,
    /// Where it publishes.
    pub publish_port: u16,
    /// Where it answers.
    pub request_port: u16,
    /// Whether it has said so within the last minute.
    pub is_there: bool,
    /// When it said so last.
    pub seen_at: DateTime<Utc>,
    /// How many guests follow it.
    pub guests: u64,
    /// What it has its states from, where that is a git repository.
    pub tree: Option<SaltTree>,
    /// Minions that it did not take, the latest first, ten at most.
    pub strangers: Vec<SaltStranger>,
}

/// The git repository that a master has its states from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SaltTree {
    /// Which commit it has.
    pub commit: Option<String>,
    /// Why it does not have the latest one, for a person.
    pub problem: Option<String>,
}

/// A minion that a master did not take: nobody knows its key, or somebody else has its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SaltStranger {
    /// What it calls itself.
    pub minion: String,
    /// Whether a guest that follows the master has this name, with another key.
    pub is_known: bool,
    /// When it asked last.
    pub at: DateTime<Utc>,
    /// How often, as far as it was told.
    pub times: u64,
}
