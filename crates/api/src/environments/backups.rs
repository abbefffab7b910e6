//! Backups of an environment: what damaged it damaged its guests together, so they are brought back together, each as it
//! was at about the same time, by one question.

use chrono::{DateTime, Utc};
use corpus_domain::{BackupId, Bytes, Environment, GuestId, GuestName, GuestState, JobId, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::backups::{BackupDump, BackupProof};
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::words::{Label, Limit, When};

/// The most guests that an environment may have to be brought back by one question: their jobs are asked for by one, too.
pub const MOST_RESTORED: u32 = 50;

/// Lists the guests of an environment, each with the backup that it would be brought back to: the latest one that can be,
/// taken not after a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListEnvironmentBackups {
    /// Of which project.
    pub project: ProjectName,
    /// Of which environment.
    pub environment: Environment,
    /// As of when: with the whole of a day, and with an instant itself. As of now unless said.
    pub at: Option<When>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListEnvironmentBackups {
    type Kind = Read;
    type Output = EnvironmentBackups;
    const META: Meta<Read> = get("list_environment_backups", "/projects/{project}/environments/{environment}/backups")
        .needs(Role::Viewer)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Brings all guests of an environment back, each to its latest backup that was taken not after a moment, by a job of its
/// own. All these jobs are queued or none. What the guests wrote since is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestoreEnvironment {
    /// Of which project.
    pub project: ProjectName,
    /// Which environment.
    pub environment: Environment,
    /// As of when: with the whole of a day, and with an instant itself. As of now unless said.
    pub at: Option<When>,
    /// Whether guests without such a backup stay as they are; else one of them keeps all from being brought back.
    #[serde(default)]
    pub without: bool,
}
impl Operation for RestoreEnvironment {
    type Kind = Write;
    type Output = EnvironmentRestoring;
    const META: Meta<Write> =
        post("restore_environment", "/projects/{project}/environments/{environment}/backups/restore")
            .needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// The guests of an environment, and what each would be brought back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentBackups {
    /// The project.
    pub project: ProjectName,
    /// The environment.
    pub environment: Environment,
    /// Why none is brought back, for a person: the operators have not said where backups are kept, say.
    pub problem: Option<String>,
    /// Those of the page, by name.
    pub items: Vec<EnvironmentBackup>,
    /// How many guests the environment has.
    pub guests: u64,
    /// How many of them have such a backup.
    pub backed_up: u64,
    /// The earliest moment that one of these backups is of.
    pub earliest: Option<DateTime<Utc>>,
    /// The latest one.
    pub latest: Option<DateTime<Utc>>,
    /// The most guests that it may have to be brought back by one question.
    pub most: u32,
    /// Whether the caller may bring it back.
    pub may_change: bool,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}
impl Reply for EnvironmentBackups {}

/// A guest of an environment, and what it would be brought back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentBackup {
    /// The guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// What it does.
    pub state: GuestState,
    /// Its latest backup of then; none: it has no such backup.
    pub backup: Option<ChosenBackup>,
}

/// A backup that a guest would be brought back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChosenBackup {
    /// Its id.
    pub id: BackupId,
    /// What it is for.
    pub comment: Option<Label>,
    /// The moment that it is of.
    pub taken_at: DateTime<Utc>,
    /// How much there is in it.
    pub bytes: Option<Bytes>,
    /// What its project dumped before it was taken; nothing where it has no recipes for that.
    pub dump: Option<BackupDump>,
    /// What became of trying it last.
    pub proof: Option<BackupProof>,
}

/// Guests of an environment are brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentRestoring {
    /// Each of them, by name.
    pub items: Vec<GuestRestoring>,
}
impl Reply for EnvironmentRestoring {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        let jobs: Vec<String> = self.items.iter().map(|one| one.job.to_string()).collect();
        Some(format!("/jobs?job={}", jobs.join(",")))
    }
}

/// A guest that is brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestRestoring {
    /// The guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// The backup.
    pub backup: BackupId,
    /// The moment that it is of.
    pub taken_at: DateTime<Utc>,
    /// The job that does it.
    pub job: JobId,
}
