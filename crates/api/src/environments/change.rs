//! What is done to environments.

use corpus_domain::{Environment, GuestId, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Role, Scope, Write, delete, post, put};
use crate::words::Text;

/// Makes a running guest one of an environment: the first is pushed to, each other one deploys what the first does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetUpEnvironment {
    /// Of which project.
    pub project: ProjectName,
    /// Which; the one that the guest was requested for unless said.
    pub environment: Option<Environment>,
    /// The guest.
    pub guest: GuestId,
}
impl Operation for SetUpEnvironment {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("set_up_environment", "/projects/{project}/environments").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Sets what an environment's configuration overrides here; its guests are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetEnvironmentSettings {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub environment: Environment,
    /// A mapping in YAML or JSON, without secrets; nothing is overridden when it is empty.
    pub settings: Option<Text>,
    /// The settings that these replace.
    pub version: Version,
}
impl Operation for SetEnvironmentSettings {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        put("set_environment_settings", "/projects/{project}/environments/{environment}/settings")
            .needs(Role::Maintainer)
            .robots()
            .if_match("version");
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Takes a project from the guest of an environment, which is gone then; the guest stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveEnvironment {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub environment: Environment,
    /// Whether the project's data on the guest goes too.
    #[serde(default)]
    pub with_data: bool,
}
impl Operation for RemoveEnvironment {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        delete("remove_environment", "/projects/{project}/environments/{environment}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Takes a follower from an environment, which goes on without it; the guest stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveEnvironmentGuest {
    /// Of which project.
    pub project: ProjectName,
    /// Which environment.
    pub environment: Environment,
    /// The follower.
    pub guest: GuestId,
    /// Whether the project's data on the guest goes too.
    #[serde(default)]
    pub with_data: bool,
}
impl Operation for RemoveEnvironmentGuest {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        delete("remove_environment_guest", "/projects/{project}/environments/{environment}/guests/{guest}")
            .needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}
