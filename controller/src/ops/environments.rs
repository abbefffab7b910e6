//! Environments of projects: to set up, configure and remove them.

use corpus_domain::{Environment, GuestId, JobId, ProjectId};

use super::projects::soon;
use crate::authz::Principal;
use crate::{Controller, Result};

impl Controller {
    /// Makes a running guest of the project and environment the one that is pushed to.
    pub async fn set_up_environment(
        &self,
        _principal: &Principal,
        _project: ProjectId,
        _environment: Environment,
        _guest: GuestId,
    ) -> Result<JobId> {
        Err(soon())
    }

    /// Takes the project from its guest; its data stays unless it is to go too.
    pub async fn remove_environment(
        &self,
        _principal: &Principal,
        _project: ProjectId,
        _environment: Environment,
        _with_data: bool,
    ) -> Result<JobId> {
        Err(soon())
    }

    /// Sets what the environment's configuration overrides here, as a YAML or JSON mapping.
    pub async fn set_settings(
        &self,
        _principal: &Principal,
        _project: ProjectId,
        _environment: Environment,
        _text: &str,
    ) -> Result<JobId> {
        Err(soon())
    }
}
