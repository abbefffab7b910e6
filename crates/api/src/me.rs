//! What is one's own: who one is here, and which mail one wants.

use corpus_domain::{MailPreference, ProjectName, ProjectRole, UserId, UserName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::operation::{Grant, Meta, Operation, Read, Reply, Role, Scope, Write, get, put};

/// Shows who asks, and what they may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetMe {}
impl Operation for GetMe {
    type Kind = Read;
    type Output = Me;
    const META: Meta<Read> = get("get_me", "/me").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Shows which mail one wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetMail {}
impl Operation for GetMail {
    type Kind = Read;
    type Output = MailChoice;
    const META: Meta<Read> = get("get_mail", "/me/mail").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Sets which mail one wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetMail {
    /// Which.
    pub wants: MailPreference,
    /// The version that was read.
    pub version: Version,
}
impl Operation for SetMail {
    type Kind = Write;
    type Output = MailChoice;
    const META: Meta<Write> = put("set_mail", "/me/mail").needs(Role::Member).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// A member, as they are here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// Their id.
    pub id: UserId,
    /// Their login name.
    pub login: UserName,
    /// Their name for people.
    pub display_name: String,
    /// Whether they are of the operators.
    pub ops: bool,
    /// Their roles in projects, by the project's name.
    pub roles: Vec<OwnRole>,
    /// What the token is good for that the request came with; none without one.
    pub token: Option<Grant>,
}
impl Reply for Me {}

/// A member's role in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnRole {
    /// The project.
    pub project: ProjectName,
    /// The role in it.
    pub role: ProjectRole,
}

/// Which mail a member wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MailChoice {
    /// Which.
    pub wants: MailPreference,
    /// Its version, to set it.
    pub version: Version,
}
impl MailChoice {
    /// This choice with its version.
    pub fn of(wants: MailPreference) -> Self {
        Self { wants, version: Version::of(&wants) }
    }
}
impl Reply for MailChoice {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}
