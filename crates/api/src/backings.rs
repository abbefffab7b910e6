//! What guests of each environment may lie on: operators may want those of `prod` held to their size, say.

use corpus_domain::{Backing, Environment};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, put};

/// Lists what guests of each environment may lie on.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListBackings {}
impl Operation for ListBackings {
    type Kind = Read;
    type Output = Backings;
    const META: Meta<Read> = get("list_backings", "/backings").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Reads what guests of an environment may lie on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetBackings {
    /// Of which environment.
    pub environment: Environment,
}
impl Operation for GetBackings {
    type Kind = Read;
    type Output = EnvironmentBackings;
    const META: Meta<Read> = get("get_backings", "/backings/{environment}").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Sets what guests of an environment may lie on. Those that are there already stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetBackings {
    /// Of which environment.
    pub environment: Environment,
    /// What they may lie on, one at least.
    #[serde(default)]
    pub allowed: BackingList,
    /// What they lie on unless said; the first that is allowed and that some node makes, unless this is.
    pub usual: Option<Backing>,
    /// What was so when that was decided.
    pub version: Version,
}
impl Operation for SetBackings {
    type Kind = Write;
    type Output = EnvironmentBackings;
    const META: Meta<Write> = put("set_backings", "/backings/{environment}").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

crate::several!(
    /// Backings.
    BackingList, Backing, 16
);

/// What guests may lie on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backings {
    /// In each environment.
    pub items: Vec<EnvironmentBackings>,
}
impl Reply for Backings {}

/// What guests of an environment may lie on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentBackings {
    /// The environment.
    pub environment: Environment,
    /// On these.
    pub allowed: Vec<Backing>,
    /// What they lie on unless said; none: the first of these that some node makes.
    pub usual: Option<Backing>,
    /// What this is a version of, to change it.
    pub version: Version,
}
impl Reply for EnvironmentBackings {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}
impl EnvironmentBackings {
    /// That of an environment with this chosen.
    pub fn of(environment: Environment, allowed: Vec<Backing>, usual: Option<Backing>) -> Self {
        let version = Version::of(&(&allowed, usual));
        Self { environment, allowed, usual, version }
    }
}
