//! The repository that holds the backups of a project: whether what lies there is what was written, and its key, by which any
//! restic reads it without Corpus.

use std::fmt;

use corpus_domain::{ProjectId, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Reply, Role, Scope, Write, post};

/// Looks whether the backups of a project are what was written. By itself that is done each week.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckBackups {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for CheckBackups {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("check_backups", "/projects/{project}/backups/check").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Reveals what opens the repository of a project's backups: with it and the place, restic reads all of them. Who did stands
/// in the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevealBackupKey {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for RevealBackupKey {
    type Kind = Write;
    type Output = BackupKeyRevealed;
    const META: Meta<Write> =
        post("reveal_backup_key", "/projects/{project}/backups/key/reveal").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// What opens the repository of a project's backups, for who asked and nobody else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupKeyRevealed {
    /// Of which project.
    pub project: ProjectName,
    /// What the repository is called in the place of backups.
    pub repository: ProjectId,
    /// Its password.
    pub password: String,
}
impl Reply for BackupKeyRevealed {
    const SECRET: bool = true;
}

impl fmt::Debug for BackupKeyRevealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupKeyRevealed").field("project", &self.project).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revealed_key_is_not_logged() {
        let (project, repository) = ("atlas".parse().unwrap(), ProjectId(uuid::Uuid::nil()));
        let answer = BackupKeyRevealed { project, repository, password: "hunter2".to_owned() };
        assert!(!format!("{answer:?}").contains("hunter2"));
    }
}
