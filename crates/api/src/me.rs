//! What is one's own: who one is here, and what one may.

use corpus_domain::{ActorName, Environment, ProjectName, ProjectRole, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Grant, Meta, Operation, Read, Reply, Role, Scope, get};

/// Shows who asks, and what they may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetMe {}
impl Operation for GetMe {
    type Kind = Read;
    type Output = Me;
    const META: Meta<Read> = get("get_me", "/me").needs(Role::Member).robots();
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// A member, or a robot, as they are here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// Their id.
    pub id: UserId,
    /// Their login name; of a robot its project's name and its own, `atlas/ci`.
    pub login: ActorName,
    /// Their name for people.
    pub display_name: String,
    /// Whether they are of the operators.
    pub ops: bool,
    /// Their roles in projects, by the project's name.
    pub roles: Vec<OwnRole>,
    /// What the token is good for that the request came with; none without one.
    pub token: Option<Grant>,
    /// Of a robot: the environments that it is for. None: it is a member.
    pub environments: Option<Vec<Environment>>,
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
