//! Files of a backup, to be looked at and fetched without bringing the whole guest back.
//!
//! What is in a backup was in a guest, and is for who may enter guests of that environment: developers, and of `prod`
//! maintainers unless the project lets its developers in. Names are a guest's: any bytes. What has a name that can't stand
//! in a path is shown, and is fetched with the folder that it is in.

use chrono::{DateTime, Utc};
use corpus_domain::{BackupId, Bytes, Environment, FileKind, FilePath, GuestId, GuestName, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{File, FileType, Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::words::Limit;

/// Lists what is in a folder of a backup: folders first, each kind in the order of names. Of `prod` it takes who may enter
/// guests of `prod`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListBackupFiles {
    /// Of which project.
    pub project: ProjectName,
    /// Of which of its backups.
    pub backup: BackupId,
    /// Which folder; the root unless said.
    pub path: Option<FilePath>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListBackupFiles {
    type Kind = Read;
    type Output = BackupFiles;
    const META: Meta<Read> =
        get("list_backup_files", "/projects/{project}/backups/{backup}/files").needs(Role::Developer);
    const MORE: &'static [(&'static str, Role)] = MORE;
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Fetches a file of a backup as it is, or a folder with all that is in it as a tar archive. Of `prod` it takes who may
/// enter guests of `prod`. That it was fetched is a row of the audit.
///
/// Two fetches of a member run at a time. Whether they still may is judged anew as it goes on; when they may not any more
/// the file breaks off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FetchBackupFile {
    /// Of which project.
    pub project: ProjectName,
    /// From which of its backups.
    pub backup: BackupId,
    /// Which file or folder.
    pub path: FilePath,
}
impl Operation for FetchBackupFile {
    type Kind = Write;
    type Output = BackupFetch;
    const META: Meta<Write> =
        post("fetch_backup_file", "/projects/{project}/backups/{backup}/fetch").needs(Role::Developer);
    const MORE: &'static [(&'static str, Role)] = MORE;
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

const MORE: &[(&str, Role)] = &[("of prod, unless developers may enter it", Role::Maintainer)];

/// What is in a folder of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupFiles {
    /// Of which guest the backup is.
    pub guest: GuestId,
    /// What it was called.
    pub name: GuestName,
    /// The environment that it was of.
    pub environment: Environment,
    /// The moment that the backup is of.
    pub taken_at: Option<DateTime<Utc>>,
    /// The folder.
    pub path: FilePath,
    /// What is in it.
    pub items: Vec<BackupFile>,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}
impl Reply for BackupFiles {
    fn next(&self) -> Option<&Cursor> {
        self.next.as_ref()
    }
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupFile {
    /// Its name, as far as it can be shown.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Where it is, to be listed or fetched; none for what is no folder and no regular file, and for what has a name that
    /// can't stand in a path, which is fetched with the folder that it is in.
    pub path: Option<FilePath>,
    /// How large it is, of a regular file.
    pub bytes: Option<Bytes>,
    /// Its permissions, as `chmod` takes them: four octal digits.
    pub mode: String,
    /// The number of its owner.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
    /// When its content was changed.
    pub modified_at: DateTime<Utc>,
    /// Where a link leads, as far as it can be shown.
    pub target: Option<String>,
}

/// What is fetched. A door answers with the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupFetch {
    /// What was asked for.
    pub asked: FetchBackupFile,
    /// The name of the file that comes.
    pub name: String,
    /// How large it is; none where that is not known before it is read.
    pub bytes: Option<Bytes>,
}
impl Reply for BackupFetch {
    const FILE: Option<FileType> = Some(FileType::Bytes);
    fn file(&self) -> Option<File> {
        Some(File::Backup(Box::new(self.clone())))
    }
}
