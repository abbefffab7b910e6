//! Who asks, and whether they may: the one place where roles are compared.

use std::collections::{BTreeMap, BTreeSet};

use corpus_domain::{ActorName, Door, Environment, Grant, JobKind, ProjectId, ProjectRole, TokenId, UserId};
use serde::{Deserialize, Serialize};

use crate::operation::{Operation, Role};

/// A member who is signed in, or a robot, as of this request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Whose.
    pub id: UserId,
    /// The login name, or the robot's.
    pub login: ActorName,
    /// The name for people.
    pub display_name: String,
    /// Whether the member is of the operators.
    pub ops: bool,
    /// The member's role in each project.
    pub roles: BTreeMap<ProjectId, ProjectRole>,
    /// What the token is good for that the request came with; none: the member is here in person.
    #[serde(default)]
    pub token: Option<Grant>,
    /// What a robot is bounded to; none: it is a member.
    #[serde(default)]
    pub robot: Option<Bounds>,
    /// How the request came, for the audit: nothing is decided by it.
    #[serde(default)]
    pub came_by: CameBy,
}

/// By which door a request came, and with which token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CameBy {
    /// By which door.
    pub door: Door,
    /// With which token; none where none is taken, or a session was enough.
    pub token: Option<UsedToken>,
}

/// A token that a request came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedToken {
    /// Which.
    pub id: TokenId,
    /// What its member calls it.
    pub name: String,
}

impl CameBy {
    /// By a door, without a token.
    pub const fn door(door: Door) -> Self {
        Self { door, token: None }
    }
}

/// Who is here in person is at a page, unless a door says otherwise.
impl Default for CameBy {
    fn default() -> Self {
        Self::door(Door::Page)
    }
}

/// What a robot is bounded to, besides its role in its one project: it sees nothing of other environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The environments in which its role counts.
    pub environments: BTreeSet<Environment>,
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
    /// No robot does this, whatever its role.
    Robot,
    /// The robot is not for this environment.
    Bounded(Environment),
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is nothing here by that name, or it is not yours to see"),
            Self::Forbidden => f.write_str("your roles do not allow this"),
            Self::Token(needed) => write!(f, "the token is not good for this: make one with the scope {needed}"),
            Self::Robot => f.write_str("this is not for robots: a member does it"),
            Self::Bounded(environment) => {
                write!(f, "this robot is not for {environment}: a maintainer of its project bounds it to environments")
            }
        }
    }
}

impl std::error::Error for Denied {}

impl Principal {
    /// The same, who came by this door.
    #[must_use]
    pub fn by(self, door: Door) -> Self {
        Self { came_by: CameBy { door, ..self.came_by }, ..self }
    }

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

    /// Whether this kind of question is one that they may ask at all: a robot asks only what is for robots.
    pub const fn may_ask(&self, robots: bool) -> Result<(), Denied> {
        if robots || self.robot.is_none() { Ok(()) } else { Err(Denied::Robot) }
    }

    /// Whether an environment is one of theirs: a robot is bounded to some.
    pub fn is_within(&self, environment: Environment) -> bool {
        self.robot.as_ref().is_none_or(|bounds| bounds.environments.contains(&environment))
    }

    /// The environments whose things the principal may see; `None` means all.
    pub fn visible_environments(&self) -> Option<Vec<Environment>> {
        self.robot.as_ref().map(|bounds| bounds.environments.iter().copied().collect())
    }

    /// Whether the operation would be permitted, for pages that show or hide a button.
    pub fn can<O: Operation>(&self, project: Option<ProjectId>) -> bool {
        let meta = O::META.plain();
        self.may_ask(meta.robots).is_ok() && self.judge(meta.needs, project).is_ok()
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

/// What it takes to enter guests of an environment, and so to read what they hold; whether the project lets its
/// developers into prod is `open`. A robot enters none.
pub const fn to_enter(environment: Environment, open: bool) -> Role {
    match environment {
        Environment::Prod if !open => Role::Maintainer,
        Environment::Dev | Environment::Staging | Environment::Prod => Role::Developer,
    }
}

/// What it takes to start a job of this kind, and so to decide about one: to cancel it, to try its undo
/// again, to give it up. A deployment to no known environment counts as one to prod.
pub const fn to_start(kind: JobKind, environment: Option<Environment>) -> Role {
    match kind {
        JobKind::NodeLink
        | JobKind::NodeInitialize
        | JobKind::NodeRepair
        | JobKind::NodeImages
        | JobKind::NodeReboot
        | JobKind::NodeBaseline
        | JobKind::NodeUnlink
        | JobKind::GuestEvacuate
        | JobKind::KeysSync => Role::Ops,
        JobKind::GuestStart
        | JobKind::GuestStop
        | JobKind::GuestRestart
        | JobKind::SnapshotTake
        | JobKind::BackupTake => Role::Developer,
        JobKind::GuestCreate
        | JobKind::GuestEnlarge
        | JobKind::GuestShrink
        | JobKind::GuestLimit
        | JobKind::GuestConfigure
        | JobKind::GuestMode
        | JobKind::GuestStates
        | JobKind::GuestUsers
        | JobKind::SnapshotRestore
        | JobKind::SnapshotRemove
        | JobKind::BackupRestore
        | JobKind::BackupRemove
        | JobKind::BackupCheck
        | JobKind::BackupProve
        | JobKind::ImageMake
        | JobKind::GuestMove
        | JobKind::GuestDestroy
        | JobKind::NameAttach
        | JobKind::NameDetach
        | JobKind::NameSwitch
        | JobKind::GuestPoint
        | JobKind::FirewallApply
        | JobKind::NameConfigure
        | JobKind::CertificateIssue
        | JobKind::EnvironmentSetUp
        | JobKind::EnvironmentConfigure
        | JobKind::EnvironmentRemove
        | JobKind::ProjectDestroy => Role::Maintainer,
        JobKind::Deploy => match environment {
            Some(environment) => to_deploy(environment),
            None => Role::Maintainer,
        },
    }
}
