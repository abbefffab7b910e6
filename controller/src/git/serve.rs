//! What a guest's agent is told of a push or fetch.

use std::fmt;

use corpus_domain::{DeploymentId, ProjectName, UserName};

use super::words::Repository;
use crate::ops::GitService;

/// A push or fetch for a guest: validated words only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The project.
    pub project: ProjectName,
    /// Which way.
    pub service: GitService,
    /// Which repository.
    pub repository: Repository,
    /// Who.
    pub by: UserName,
    /// The id that the deployment gets if the push deploys.
    pub deployment: DeploymentId,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = match self.service {
            GitService::ReceivePack => "receive-pack",
            GitService::UploadPack => "upload-pack",
        };
        let Self { project, repository, by, deployment, .. } = self;
        write!(f, "{project} {service} {} --by {by} --deployment {deployment}", repository.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words() {
        let service = Service {
            project: "shop".parse().unwrap(),
            service: GitService::ReceivePack,
            repository: Repository::Project,
            by: "mia".parse().unwrap(),
            deployment: DeploymentId(uuid::Uuid::nil()),
        };
        let words = "shop receive-pack project --by mia --deployment 00000000-0000-0000-0000-000000000000";
        assert_eq!(service.to_string(), words);
    }
}
