//! What is done by git, where: decided about before it begins, and again while it goes on.

use std::fmt;

use corpus_domain::{Environment, GitService, ProjectId, ProjectName, Repository};

/// A repository, as its URL names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryPath {
    /// The project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// Which of the environment's repositories.
    pub repository: Repository,
}

/// `PROJECT/ENVIRONMENT`, for messages.
impl fmt::Display for RepositoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project, self.environment)
    }
}

/// A push or fetch. A project that was made anew under its old name is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// The project that the path led to.
    pub project: ProjectId,
    /// Where.
    pub path: RepositoryPath,
    /// Which way.
    pub service: GitService,
}

impl Access {
    /// What is done, as a word between `you may not` and the place.
    pub(crate) const fn verb(&self) -> &'static str {
        match self.service {
            GitService::ReceivePack => "push to",
            GitService::UploadPack => "fetch from",
        }
    }
}
