//! The log of a deployment, a part at a time.

use chrono::{DateTime, Utc};
use corpus_domain::DeploymentId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};
use crate::words::{After, LineLimit, SearchText};

/// Reads the log of a deployment, the oldest line first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadDeploymentLog {
    /// Of which deployment.
    pub deployment: DeploymentId,
    /// Only what comes after this line.
    pub after: Option<After>,
    /// 200 unless said.
    pub limit: Option<LineLimit>,
}
impl Operation for ReadDeploymentLog {
    type Kind = Read;
    type Output = DeploymentLog;
    const META: Meta<Read> = get("read_deployment_log", "/deployments/{deployment}/log").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Deployment(self.deployment)
    }
}

/// Finds the lines of a deployment's log that have a text in them, in any case of its letters; 500 at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchDeploymentLog {
    /// Of which deployment.
    pub deployment: DeploymentId,
    /// What is looked for.
    pub text: SearchText,
    /// Only what comes after this line.
    pub after: Option<After>,
}
impl Operation for SearchDeploymentLog {
    type Kind = Read;
    type Output = DeploymentLog;
    const META: Meta<Read> =
        get("search_deployment_log", "/deployments/{deployment}/log/search").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Deployment(self.deployment)
    }
}

/// A part of a deployment's log.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentLog {
    /// The lines.
    pub lines: Vec<DeploymentLogLine>,
}
impl Reply for DeploymentLog {}

/// A line of a deployment's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeploymentLogLine {
    /// Its number, from 1.
    pub number: i64,
    /// When it was written, by the guest's clock.
    pub at: DateTime<Utc>,
    /// Where it came from: `out`, `err` or `note`.
    pub stream: String,
    /// Its text.
    pub text: String,
}
