//! Who asks, and whether they may: the one place where roles are compared.

use std::collections::BTreeMap;

use corpus_domain::{Environment, Grant, JobKind, ProjectId, ProjectRole, UserId, UserName};
use serde::{Deserialize, Serialize};

use crate::operation::{Operation, Role};

/// A signed-in member, as of this request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Whose.
    pub id: UserId,
    /// The login name.
    pub login: UserName,
    /// The name for people.
    pub display_name: String,
    /// Whether the member is of the operators.
    pub ops: bool,
    /// The member's role in each project.
    pub roles: BTreeMap<ProjectId, ProjectRole>,
    /// What the token is good for that the request came with; none: the member is here in person.
    #[serde(default)]
    pub token: Option<Grant>,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The principal can't see it: there is nothing here for them.
    NotFound,
    /// The principal can see it and may not do this with it.
    Forbidden,
    /// The token is not good for it.
    Token(Grant),
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is nothing here by that name, or it is not yours to see"),
            Self::Forbidden => f.write_str("your roles do not allow this"),
            Self::Token(needed) => write!(f, "the token is not good for this: make one with the scope {needed}"),
        }
    }
}

impl std::error::Error for Denied {}

impl Principal {
    /// Whether they are at least `role`: in the project, if it is about one.
    pub fn judge(&self, role: Role, project: Option<ProjectId>) -> Result<(), Denied> {
        if self.ops {
            return Ok(());
        }
        let own = match project {
            Some(project) => Role::from(*self.roles.get(&project).ok_or(Denied::NotFound)?),
            None => Role::Member,
        };
        if own >= role { Ok(()) } else { Err(Denied::Forbidden) }
    }

    /// Whether the token, if the request came with one, is good for this.
    pub fn is_granted(&self, needed: Grant) -> Result<(), Denied> {
        if self.token.is_none_or(|grant| grant >= needed) { Ok(()) } else { Err(Denied::Token(needed)) }
    }

    /// Whether the operation would be permitted, for pages that show or hide a button.
    pub fn can<O: Operation>(&self, project: Option<ProjectId>) -> bool {
        self.judge(O::META.plain().needs, project).is_ok()
    }

    /// The projects whose things the principal may see; `None` means all.
    pub fn visible_projects(&self) -> Option<Vec<ProjectId>> {
        (!self.ops).then(|| self.roles.keys().copied().collect())
    }
}

/// What it takes to deploy to an environment.
pub const fn to_deploy(environment: Environment) -> Role {
    match environment {
        Environment::Prod => Role::Maintainer,
        Environment::Dev | Environment::Staging => Role::Developer,
    }
}

/// What it takes to start a job of this kind, and so to decide about one: to cancel it, to try its undo
/// again, to give it up. A deployment to no known environment counts as one to prod.
pub const fn to_start(kind: JobKind, environment: Option<Environment>) -> Role {
    match kind {
        JobKind::NodeLink | JobKind::NodeInitialize | JobKind::NodeRepair | JobKind::NodeUnlink | JobKind::KeysSync => {
            Role::Ops
        }
        JobKind::GuestStart | JobKind::GuestStop | JobKind::GuestRestart => Role::Developer,
        JobKind::GuestCreate
        | JobKind::GuestEnlarge
        | JobKind::GuestLimit
        | JobKind::GuestDestroy
        | JobKind::NameAttach
        | JobKind::NameDetach
        | JobKind::EnvironmentSetUp
        | JobKind::EnvironmentConfigure
        | JobKind::EnvironmentRemove => Role::Maintainer,
        JobKind::Deploy => match environment {
            Some(environment) => to_deploy(environment),
            None => Role::Maintainer,
        },
    }
}
