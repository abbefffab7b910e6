//! What is ordered of deployments.

use corpus_domain::{CommitId, DeploymentId, Environment, JobId, Phase, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Grant, Meta, Operation, Reply, Role, Scope, Write, post};
use crate::principal::to_deploy;

/// Deploys what the deployed branch holds now, or a commit, or an archive; it goes live, proven, or everything is as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deploy {
    /// Of which project.
    pub project: ProjectName,
    /// To which environment.
    pub environment: Environment,
    /// This commit, which is in the repository.
    pub commit: Option<CommitId>,
    /// What this deployment archived before it began: a restore.
    pub archive: Option<DeploymentId>,
    /// Only these phases; all of them unless said.
    #[serde(default)]
    pub only: Phases,
    /// Whether what is live is archived as it lies: its code and pillar are kept, and the recipe that it has for that does
    /// not run, which fails, say.
    #[serde(default)]
    pub plain_archive: bool,
}
impl Operation for Deploy {
    type Kind = Write;
    type Output = DeploymentAccepted;
    const META: Meta<Write> = post("deploy", "/projects/{project}/environments/{environment}/deployments")
        .needs(Role::Developer)
        .token(Grant::Deploy)
        .robots();
    const MORE: &'static [(&'static str, Role)] = &[("to prod", Role::Maintainer)];
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
    fn needs(&self) -> Role {
        to_deploy(self.environment)
    }
}

/// Deploys what is live and breaks it on purpose, to see it rolled back; not in prod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drill {
    /// Of which project.
    pub project: ProjectName,
    /// On which environment.
    pub environment: Environment,
}
impl Operation for Drill {
    type Kind = Write;
    type Output = DeploymentAccepted;
    const META: Meta<Write> = post("drill", "/projects/{project}/environments/{environment}/drill")
        .needs(Role::Developer)
        .token(Grant::Deploy)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

crate::several!(
    /// Parts of the pipeline.
    Phases, Phase, 10
);

/// A deployment is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentAccepted {
    /// Which.
    pub deployment: DeploymentId,
    /// The job that sees it to its end.
    pub job: JobId,
}
impl Reply for DeploymentAccepted {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/deployments/{}", self.deployment))
    }
}
