//! The names of an environment, and how its guests share them.

use chrono::{DateTime, Utc};
use corpus_domain::{BalancePolicy, DnsName, DnsNameId, Environment, GuestId, GuestName, ProjectName, Stickiness};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::jobs::JobAccepted;
use crate::names::NameAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post, put};

/// Shows how the names of an environment are served: by which of its guests, and why not by the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetBalance {
    /// Of which project.
    pub project: ProjectName,
    /// Of which environment.
    pub environment: Environment,
}
impl Operation for GetBalance {
    type Kind = Read;
    type Output = Balance;
    const META: Meta<Read> =
        get("get_balance", "/projects/{project}/environments/{environment}/balance").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Sets how the requests of an environment's names are spread over its guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetBalance {
    /// Of which project.
    pub project: ProjectName,
    /// Of which environment.
    pub environment: Environment,
    /// Which guest the next request goes to.
    pub policy: BalancePolicy,
    /// By what a visitor comes back to the guest that served them before.
    pub stickiness: Stickiness,
    /// What this replaces.
    pub version: Version,
}
impl Operation for SetBalance {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = put("set_balance", "/projects/{project}/environments/{environment}/balance")
        .needs(Role::Maintainer)
        .robots()
        .if_match("version");
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Attaches a DNS name to an environment: it leads to all its guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttachEnvironmentName {
    /// Of which project.
    pub project: ProjectName,
    /// To which environment.
    pub environment: Environment,
    /// The name, in a zone that takes names of the project.
    pub name: DnsName,
}
impl Operation for AttachEnvironmentName {
    type Kind = Write;
    type Output = NameAccepted;
    const META: Meta<Write> = post("attach_environment_name", "/projects/{project}/environments/{environment}/names")
        .needs(Role::Maintainer)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// How the names of an environment are served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Balance {
    /// Which guest the next request goes to.
    pub policy: BalancePolicy,
    /// By what a visitor comes back to the guest that served them before.
    pub stickiness: Stickiness,
    /// The names, the oldest first, 20 at most.
    pub names: Vec<BalancedName>,
    /// The guests, the leader first.
    pub members: Vec<BalanceMember>,
    /// Which policy and stickiness these are, to change them.
    pub version: Version,
}
impl Balance {
    /// This one.
    pub fn of(
        policy: BalancePolicy,
        stickiness: Stickiness,
        names: Vec<(DnsNameId, DnsName)>,
        members: Vec<BalanceMember>,
    ) -> Self {
        let names = names.into_iter().map(|(id, name)| BalancedName { id, name }).collect();
        Self { version: Version::of(&(policy, stickiness)), policy, stickiness, names, members }
    }

    /// Whether there is anything to balance: a name, and guests that share it.
    pub fn is_shared(&self) -> bool {
        !self.names.is_empty() && self.members.len() > 1
    }
}
impl Reply for Balance {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// A name of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BalancedName {
    /// Its id.
    pub id: DnsNameId,
    /// The name.
    pub name: DnsName,
}

/// A guest that shares the names of its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BalanceMember {
    /// Its id.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Whether it is given requests.
    pub in_balance: bool,
    /// Why not.
    pub why: Option<String>,
    /// Since when a job, or its stop, keeps it out.
    pub since: Option<DateTime<Utc>>,
    /// Requests under way there, when its node was read last.
    pub requests: Option<u32>,
    /// When that was.
    pub seen_at: Option<DateTime<Utc>>,
}
