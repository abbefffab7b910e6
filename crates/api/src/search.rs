//! One question for everything that has a name: what a palette asks while one types.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};
use crate::words::SearchText;

/// Finds nodes, guests, projects, zones, DNS names and deployments by what they are called.
///
/// A deployment is found by its project and number, such as `atlas 12`, and by its commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Search {
    /// What is in the name.
    pub q: SearchText,
}
impl Operation for Search {
    type Kind = Read;
    type Output = Found;
    const META: Meta<Read> = get("search", "/search").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// What was found: the few best of each kind.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Found {
    /// Things whose name begins so first.
    pub items: Vec<Hit>,
}
impl Reply for Found {}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hit {
    /// What it is.
    pub kind: HitKind,
    /// What it is called.
    pub name: String,
    /// What tells it from others of its kind: a guest's project, a node's state.
    pub detail: String,
    /// Where it is, as a path that pages and the API share, but for a deployment, which has a page of its number.
    pub path: String,
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum HitKind {
    Guest,
    Project,
    Node,
    Name,
    Zone,
    Deployment,
}

impl HitKind {
    /// As a person reads it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Guest => "Guest",
            Self::Project => "Project",
            Self::Node => "Compute node",
            Self::Name => "DNS name",
            Self::Zone => "Zone",
            Self::Deployment => "Deployment",
        }
    }
}
