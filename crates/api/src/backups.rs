//! Backups of guests: all files of a guest of one moment, kept elsewhere than on its node.

use chrono::{DateTime, Utc};
use corpus_domain::{BackupEvery, BackupId, BackupState, Bytes, Environment, GuestId, GuestName, JobId, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use crate::backup_repositories::{BackupKeyRevealed, CheckBackups, RevealBackupKey};
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::words::{BackupsKept, Label, Limit};
use crate::{Cursor, Version};

/// The most backups of a guest, so a page shows them all.
pub const MOST_BACKUPS: u32 = 100;

/// Lists the backups of a guest, the newest first: all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListBackups {
    /// Of which guest.
    pub guest: GuestId,
}
impl Operation for ListBackups {
    type Kind = Read;
    type Output = Backups;
    const META: Meta<Read> = get("list_backups", "/guests/{guest}/backups").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Takes a backup of a guest, of one moment. A guest whose backing takes no snapshot at once stands still while it takes
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakeBackup {
    /// Of which guest.
    pub guest: GuestId,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for TakeBackup {
    type Kind = Write;
    type Output = BackupAccepted;
    const META: Meta<Write> = post("take_backup", "/guests/{guest}/backups").needs(Role::Developer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Brings a guest back to a backup: its files become those of the backup. It is stopped only while they change places;
/// all that it wrote since the backup is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestoreBackup {
    /// Which guest.
    pub guest: GuestId,
    /// Which of its backups.
    pub backup: BackupId,
}
impl Operation for RestoreBackup {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        post("restore_backup", "/guests/{guest}/backups/{backup}/restore").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Tries whether a guest could be had back from a backup: one is made of it on a node that has room for it, which reaches
/// nothing and is reached by nobody. Its files are compared with what was saved, it is started and entered, and the checks of
/// what its project had live are made in it. Then it is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProveBackup {
    /// Which guest.
    pub guest: GuestId,
    /// Which of its backups.
    pub backup: BackupId,
}
impl Operation for ProveBackup {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("prove_backup", "/guests/{guest}/backups/{backup}/prove").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Deletes a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveBackup {
    /// Of which guest.
    pub guest: GuestId,
    /// Which of its backups.
    pub backup: BackupId,
}
impl Operation for RemoveBackup {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("remove_backup", "/guests/{guest}/backups/{backup}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Lists the backups of a project, the newest first: also those of guests that are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListProjectBackups {
    /// Of which project.
    pub project: ProjectName,
    /// Only those of guests that are gone, or that are there.
    pub gone: Option<bool>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListProjectBackups {
    type Kind = Read;
    type Output = ProjectBackups;
    const META: Meta<Read> = get("list_project_backups", "/projects/{project}/backups").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Deletes a backup of a project, of a guest that is gone, say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveProjectBackup {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub backup: BackupId,
}
impl Operation for RemoveProjectBackup {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        delete("remove_project_backup", "/projects/{project}/backups/{backup}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// How often a backup of a guest is taken by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetBackupSchedule {
    /// Of which guest.
    pub guest: GuestId,
}
impl Operation for GetBackupSchedule {
    type Kind = Read;
    type Output = BackupSchedule;
    const META: Meta<Read> = get("get_backup_schedule", "/guests/{guest}/backups/schedule").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Sets how often a backup of a guest is taken by itself, the first one soon, and how many of these are kept: the oldest
/// goes when there is one more. Those that somebody asked for stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetBackupSchedule {
    /// Of which guest.
    pub guest: GuestId,
    /// How often.
    pub every: BackupEvery,
    /// How many are kept.
    pub keep: BackupsKept,
    /// Whether it is tried each week that the guest could be had back from the latest.
    #[serde(default)]
    pub prove: bool,
    /// What was set when that was decided.
    pub version: Version,
}
impl Operation for SetBackupSchedule {
    type Kind = Write;
    type Output = BackupSchedule;
    const META: Meta<Write> =
        put("set_backup_schedule", "/guests/{guest}/backups/schedule").needs(Role::Maintainer).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// How often a backup of a guest is taken by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupSchedule {
    /// How often.
    pub every: BackupEvery,
    /// How many of them are kept.
    pub keep: BackupsKept,
    /// When the next one is taken, unless that is never.
    pub next_at: Option<DateTime<Utc>>,
    /// Why none was taken when it was time, for a person.
    pub problem: Option<String>,
    /// Whether it is tried each week that the guest could be had back from the latest.
    pub prove: bool,
    /// When that is tried next.
    pub prove_at: Option<DateTime<Utc>>,
    /// Why it was not tried when it was time, for a person.
    pub prove_problem: Option<String>,
    /// What is set.
    pub version: Version,
}
impl Reply for BackupSchedule {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// The backups of a guest.
#[expect(clippy::struct_excessive_bools, reason = "what the caller may is told one by one")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backups {
    /// Of this guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// Why none is taken or brought back, for a person: the operators have not said where backups are kept, say.
    pub problem: Option<String>,
    /// When it was last shown that the guest can be had back from a backup.
    pub proven: Option<ProvenRestore>,
    /// Why nobody should rely on that, for a person: it is too long ago, or failed since.
    pub unproven: Option<String>,
    /// The newest first.
    pub items: Vec<Backup>,
    /// So many it may have.
    pub most: u32,
    /// Whether the guest goes on while one is taken.
    pub at_once: bool,
    /// Whether the caller may take one.
    pub may_take: bool,
    /// Whether the caller may bring them back and delete them.
    pub may_change: bool,
    /// Whether the caller may look at what is in them, and fetch it.
    pub may_read: bool,
}
impl Reply for Backups {}

/// A guest that was had back from a backup, to try it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProvenRestore {
    /// When.
    pub at: DateTime<Utc>,
    /// The moment that the backup was of.
    pub taken_at: DateTime<Utc>,
    /// How long it took until all was proven and cleared away, in milliseconds.
    pub took_ms: u64,
}

/// Backups of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectBackups {
    /// The newest first.
    pub items: Vec<ProjectBackup>,
    /// How much the project's repository takes where it lies, in bytes.
    pub taken: Bytes,
    /// When it was last looked whether they are what was written, and what was found.
    pub check: Option<BackupsChecked>,
    /// Whether the caller may delete them, and have guests made of them.
    pub may_change: bool,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}
impl Reply for ProjectBackups {}

/// What became of looking whether backups are what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupsChecked {
    /// When.
    pub at: DateTime<Utc>,
    /// What is damaged, for a person; none: nothing that was read is.
    pub damage: Option<String>,
}

/// A backup of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectBackup {
    /// Of which guest.
    pub guest: GuestId,
    /// What it was called.
    pub name: GuestName,
    /// The environment that it was of.
    pub environment: Environment,
    /// Whether the guest is gone.
    pub gone: bool,
    /// Whether the caller may look at what is in it, and fetch it.
    pub may_read: bool,
    /// The backup.
    pub backup: Backup,
}

/// A backup of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backup {
    /// Its id.
    pub id: BackupId,
    /// What it is for.
    pub comment: Option<Label>,
    /// What is being done with it.
    pub state: BackupState,
    /// The moment that it is of.
    pub taken_at: Option<DateTime<Utc>>,
    /// Its name in the project's repository, 64 hexadecimal digits.
    pub snapshot: Option<String>,
    /// How much there is in it.
    pub bytes: Option<Bytes>,
    /// How many files there are in it.
    pub files: Option<u64>,
    /// How much of that the repository did not hold before, as it lies there.
    pub added_bytes: Option<Bytes>,
    /// How long it took, in milliseconds.
    pub took_ms: Option<u64>,
    /// What its project dumped before it was taken; nothing where it has no recipes for that.
    pub dump: Option<BackupDump>,
    /// What became of trying it last.
    pub proof: Option<BackupProof>,
    /// When it was asked for.
    pub asked_at: DateTime<Utc>,
    /// By whom: their login; by nobody where the schedule did.
    pub by: Option<String>,
}

/// What a project dumped for a backup, of databases say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupDump {
    /// How much that takes in the guest.
    pub bytes: Bytes,
    /// Why it failed, for a person. The backup has the guest's files all the same, and what was dumped before them.
    pub problem: Option<String>,
}

/// What became of trying whether a guest could be had back from a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupProof {
    /// When that began.
    pub began_at: DateTime<Utc>,
    /// When it was over; while it is tried, none.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether all was as it should be.
    pub passed: Option<bool>,
    /// What was seen, a line each; none where it failed before anything was: the job says why.
    pub told: Option<String>,
}

/// A backup is being taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupAccepted {
    /// Its id.
    pub backup: BackupId,
    /// The job that takes it.
    pub job: JobId,
}
impl Reply for BackupAccepted {}
