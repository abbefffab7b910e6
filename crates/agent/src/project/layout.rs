//! Where everything of a project is on its guest. No other module joins these paths.

use std::path::{Path, PathBuf};

use corpus_domain::{DeploymentId, ProjectName};

use crate::host::Host;

/// The folder of all projects of a guest.
pub const ROOT: &str = "/srv/projects";

/// The paths of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
    project: ProjectName,
}

impl Layout {
    /// The paths of a project below `root`.
    pub fn new(root: impl Into<PathBuf>, project: &ProjectName) -> Self {
        Self { root: root.into(), project: project.clone() }
    }

    /// The paths of a project of a host.
    pub fn of(host: &Host, project: &ProjectName) -> Self {
        Self::new(host.path(ROOT), project)
    }

    /// The folder of all projects.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The project.
    pub fn project(&self) -> &ProjectName {
        &self.project
    }

    /// Whether this is where projects are on a guest, and not a test's folder.
    pub fn is_standard(&self) -> bool {
        self.root == Path::new(ROOT)
    }

    /// The project's folder.
    pub fn home(&self) -> PathBuf {
        self.root.join(self.project.as_str())
    }

    /// Where the account's own SSH key is; its home is the project's folder.
    pub fn ssh(&self) -> PathBuf {
        self.home().join(".ssh")
    }

    /// The public half of that key.
    pub fn identity(&self) -> PathBuf {
        self.home().join("identity.pub")
    }

    /// The folder of its bare repositories.
    pub fn repositories(&self) -> PathBuf {
        self.home().join("git")
    }

    /// The bare repository of its code.
    pub fn repository(&self) -> PathBuf {
        self.repositories().join("project.git")
    }

    /// The bare repository of its pillar.
    pub fn pillar_repository(&self) -> PathBuf {
        self.repositories().join("pillar.git")
    }

    /// The tree that runs.
    pub fn tree(&self) -> PathBuf {
        self.home().join("project")
    }

    /// The pillar's tree.
    pub fn pillar(&self) -> PathBuf {
        self.home().join("pillar")
    }

    /// Its persistent data.
    pub fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    /// The kept copies.
    pub fn archives(&self) -> PathBuf {
        self.home().join("archives")
    }

    /// What was dumped for the last backup.
    pub fn dumps(&self) -> PathBuf {
        self.home().join("dumps")
    }

    /// What is being dumped.
    pub fn dumps_next(&self) -> PathBuf {
        self.home().join("dumps.next")
    }

    /// What was kept before a deployment.
    pub fn archive(&self, id: DeploymentId) -> PathBuf {
        self.archives().join(id.to_string())
    }

    /// What is kept of its deployments.
    pub fn deployments(&self) -> PathBuf {
        self.home().join("deployments")
    }

    /// What is kept of a deployment.
    pub fn deployment(&self, id: DeploymentId) -> PathBuf {
        self.deployments().join(id.to_string())
    }

    /// The order of a deployment.
    pub fn order(&self, id: DeploymentId) -> PathBuf {
        self.deployment(id).join("order.json")
    }

    /// The journal of a deployment.
    pub fn journal(&self, id: DeploymentId) -> PathBuf {
        self.deployment(id).join("journal.jsonl")
    }

    /// The report of a deployment that is over.
    pub fn report(&self, id: DeploymentId) -> PathBuf {
        self.deployment(id).join("report.json")
    }

    /// What should be here, as the controller or a person said last.
    pub fn plan(&self) -> PathBuf {
        self.home().join("plan.json")
    }

    /// What was set on the guest itself.
    pub fn settings(&self) -> PathBuf {
        self.home().join("settings.json")
    }

    /// The configuration with which the project is live.
    pub fn configuration(&self) -> PathBuf {
        self.home().join("configuration.json")
    }

    /// What Salt read of the project's templates of values.
    pub fn rendered(&self) -> PathBuf {
        self.home().join("rendered")
    }

    /// The passwords that recipes had made, of all projects of the guest.
    pub fn passwords(&self) -> PathBuf {
        self.root.join(".passwords.json")
    }

    /// What is live.
    pub fn live(&self) -> PathBuf {
        self.home().join("live.json")
    }

    /// Held by the deployment that runs.
    pub fn turn(&self) -> PathBuf {
        self.home().join("turn.lock")
    }
}
