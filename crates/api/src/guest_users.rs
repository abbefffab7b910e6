//! Users that all guests of a project have, beside those of their image: with which keys they enter, and what they may.
//!
//! They are accounts of guests and nobody of Corpus: whoever has such a key enters these guests and sees nothing here.

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, ProjectName, UnixUser};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::nodes::Environments;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::Text;

/// The most such users of a project, so a page shows them all.
pub const MOST_GUEST_USERS: u32 = 50;
/// The most keys of one.
pub const MOST_USER_KEYS: u32 = 16;

/// Lists the users that all guests of a project have, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListGuestUsers {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for ListGuestUsers {
    type Kind = Read;
    type Output = GuestUsers;
    const META: Meta<Read> = get("list_guest_users", "/projects/{project}/users").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Has all guests of a project have a user, or changes what it is. Guests that don't run get it when they do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetGuestUser {
    /// Of which project.
    pub project: ProjectName,
    /// What it is called.
    pub user: UnixUser,
    /// In which environments; in all unless said.
    #[serde(default)]
    pub environments: Environments,
    /// Whether it may do all that root may.
    #[serde(default)]
    pub sudo: bool,
    /// The public keys that open it, one a line, 16 at most: lines of `.pub` files.
    pub keys: Text,
}
impl Operation for SetGuestUser {
    type Kind = Write;
    type Output = GuestUserSet;
    const META: Meta<Write> = post("set_guest_user", "/projects/{project}/users").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Takes a user from all guests of a project: nobody enters by it any more, what runs as it ends, and its files stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveGuestUser {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub user: UnixUser,
}
impl Operation for RemoveGuestUser {
    type Kind = Write;
    type Output = GuestUserSet;
    const META: Meta<Write> = delete("remove_guest_user", "/projects/{project}/users/{user}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// A user of guests is brought to them, or taken from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestUserSet {
    /// Which.
    pub user: UnixUser,
    /// To so many guests.
    pub guests: u64,
}
impl Reply for GuestUserSet {}

/// The users that all guests of a project have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestUsers {
    /// Of this project.
    pub project: ProjectName,
    /// By name.
    pub items: Vec<GuestUserLine>,
    /// How many guests they are still to be brought to.
    pub waiting: u64,
    /// So many a project may have.
    pub most: u32,
    /// Whether the caller may change them.
    pub may_change: bool,
}
impl Reply for GuestUsers {}

/// A user that guests have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestUserLine {
    /// What it is called.
    pub user: UnixUser,
    /// In which environments; none named: in all.
    pub environments: Vec<Environment>,
    /// Whether it may do all that root may.
    pub sudo: bool,
    /// The public keys that open it.
    pub keys: Vec<String>,
    /// Who set it last: their login.
    pub by: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}
