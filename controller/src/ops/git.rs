//! What the git server asks: who has this key, may they push there, and where is it.

use corpus_domain::{DeploymentId, Environment, GuestId, GuestName, NodeAddress, ProjectId, ProjectName, SshPort};

use super::projects::soon;
use crate::authz::Principal;
use crate::nodes::HostKey;
use crate::{Controller, Result};

/// Which way git goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitService {
    /// A push.
    ReceivePack,
    /// A fetch or clone.
    UploadPack,
}

/// Where the repositories of an environment are; entered as root with the control key.
#[derive(Debug, Clone)]
pub struct GitTarget {
    /// The project.
    pub project_id: ProjectId,
    /// Its name.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The guest that it stands on.
    pub guest_id: GuestId,
    /// Its name.
    pub guest: GuestName,
    /// The address of the guest's node.
    pub address: NodeAddress,
    /// The node's port that leads to the guest's SSH.
    pub ssh_port: SshPort,
    /// The guest's own host key.
    pub host_key: HostKey,
}

impl Controller {
    /// Where a push to (or fetch from) an environment goes, if the principal may.
    pub async fn git_target(
        &self,
        _principal: &Principal,
        _project: &ProjectName,
        _environment: Environment,
        _service: GitService,
    ) -> Result<GitTarget> {
        Err(soon())
    }

    /// The member who has the key, given as a line of a `.pub` file or as its `SHA256:` fingerprint.
    pub async fn principal_by_key(&self, _key: &str) -> Result<Option<Principal>> {
        Err(soon())
    }

    /// All environments that can be pushed to, for who reads them now and then.
    pub async fn git_targets(&self) -> Result<Vec<GitTarget>> {
        Err(soon())
    }

    /// Reads an environment from its guest: what is live, its archives and configuration are
    /// taken over. Tells the deployments, oldest first, that are not known here or not to their end.
    pub async fn read_environment(&self, _target: &GitTarget) -> Result<Vec<DeploymentId>> {
        Err(soon())
    }
}
