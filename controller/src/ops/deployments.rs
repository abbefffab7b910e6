//! Deployments: to order, list and read them.

use corpus_domain::{DeploymentId, Environment, JobId, Phase, ProjectId, ProjectName, Trigger, UserId};
use corpus_protocol::Source;

use super::projects::soon;
use crate::authz::Principal;
use crate::project_views::{DeploymentDetail, DeploymentFilter, DeploymentSummary, LogLine};
use crate::{Controller, Result};

/// Deployments on a page of the list.
pub const DEPLOYMENTS_PAGE: i64 = 50;

impl Controller {
    /// Deploys; an archive is a restore. Only these phases, all when none are given.
    pub async fn deploy(
        &self,
        _principal: &Principal,
        _project: ProjectId,
        _environment: Environment,
        _source: Source,
        _only: Vec<Phase>,
    ) -> Result<(DeploymentId, JobId)> {
        Err(soon())
    }

    /// Deploys what is live and breaks it on purpose, to see it rolled back; not in prod.
    pub async fn drill(
        &self,
        _principal: &Principal,
        _project: ProjectId,
        _environment: Environment,
    ) -> Result<(DeploymentId, JobId)> {
        Err(soon())
    }

    /// A page of the deployments that match and that the principal may see, the newest first.
    pub async fn deployments(
        &self,
        _principal: &Principal,
        _filter: &DeploymentFilter,
    ) -> Result<Vec<DeploymentSummary>> {
        Err(soon())
    }

    /// One deployment.
    pub async fn deployment(&self, _principal: &Principal, _id: DeploymentId) -> Result<DeploymentDetail> {
        Err(soon())
    }

    /// One deployment by its number in its project.
    pub async fn deployment_by_number(
        &self,
        _principal: &Principal,
        _project: &ProjectName,
        _number: i64,
    ) -> Result<DeploymentDetail> {
        Err(soon())
    }

    /// The log of a deployment after line `after`, at most `limit` lines.
    pub async fn deployment_log(
        &self,
        _principal: &Principal,
        _id: DeploymentId,
        _after: i64,
        _limit: i64,
    ) -> Result<Vec<LogLine>> {
        Err(soon())
    }

    /// The lines of a deployment's log that contain the text, in any case of letters; 500 at most.
    pub async fn deployment_search(
        &self,
        _principal: &Principal,
        _id: DeploymentId,
        _text: &str,
    ) -> Result<Vec<LogLine>> {
        Err(soon())
    }

    /// A deployment that began on its guest without an order of ours, by a push: its row is made
    /// if it is new, and the job that follows it. Repeatable.
    pub async fn deployment_began(
        &self,
        _by: Option<UserId>,
        _project: ProjectId,
        _environment: Environment,
        _id: DeploymentId,
        _trigger: Trigger,
    ) -> Result<JobId> {
        Err(soon())
    }
}
