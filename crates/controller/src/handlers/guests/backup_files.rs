//! What is in a backup of a guest: who looks at it, and who fetches it.
//!
//! Whoever reads a guest's files could as well have entered it, so it takes what that takes: [`to_enter`], judged here and
//! nowhere else, anew each time something is read. The guest may be gone, so it is judged by the environment that the
//! backup is of.

use chrono::{DateTime, Utc};
use corpus_api::backup_files::{BackupFetch, BackupFile, BackupFiles, FetchBackupFile, ListBackupFiles};
use corpus_api::principal::to_enter;
use corpus_api::{Cursor, Denied, Principal, Scope};
use corpus_database::Conn;
use corpus_domain::{
    BackupId, BackupState, Bytes, Environment, FileKind, FilePath, ProjectId, ProjectName, plain_line,
};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use corpus_protocol::{TreeEntry, TreeKind};
use serde_json::json;

use super::super::{after, lines};
use super::backups::busy;
use crate::Controller;
use crate::guest_backups::{Content, Fetched};
use crate::store::backups::{self, Held};
use crate::store::projects;

/// What its cursors are for: how many of a folder were shown. What is in a backup never changes.
const LIST: &str = "backup-files";
/// As much of a name is shown, in characters: no file system holds a longer one.
const SHOWN: usize = 255;

impl Handle<ListBackupFiles> for Controller {
    async fn handle(&self, permit: Permit<ListBackupFiles>) -> Result<BackupFiles> {
        let (asked, project, (limit, _)) = (permit.operation(), permit.project()?, lines(permit.limit));
        let before: u32 = after(asked.cursor.as_ref(), LIST)?.unwrap_or_default();
        let conn = permit.connection().await?;
        let (held, snapshot) = self.readable(conn, &permit.who(), (&asked.project, project), asked.backup).await?;
        let repository = self.services.backup_repository(project).await?;
        let path = asked.path.clone().unwrap_or_else(FilePath::root);
        let names = names(&path);
        let mut found =
            self.services.backup_readers.look(move || repository.list_folder(&snapshot, &refs(&names))).await?;
        found
            .sort_unstable_by(|a, b| (a.kind != TreeKind::Folder, &a.name).cmp(&(b.kind != TreeKind::Folder, &b.name)));
        let shown = usize::try_from(before).unwrap_or(usize::MAX);
        let end = shown.saturating_add(limit);
        let next = u32::try_from(end).ok().filter(|_| found.len() > end).map(|end| Cursor::after(LIST, &end));
        let items = found.iter().skip(shown).take(limit).map(|entry| file(&path, entry)).collect();
        let Held { guest, name, environment, taken_at, .. } = held;
        Ok(BackupFiles { guest, name, environment, taken_at, path, items, next })
    }
}

/// That it is fetched, and what, is in the audit before the first byte of it is sent; what is not there is not fetched. A
/// door reads it, by [`Controller::backup_content`].
impl Handle<FetchBackupFile> for Controller {
    async fn handle(&self, change: Change<FetchBackupFile>) -> Result<Committed<FetchBackupFile>> {
        let (asked, project) = (change.operation(), change.project()?);
        let conn = change.connection().await?;
        let (held, snapshot) = self.readable(conn, &change.who(), (&asked.project, project), asked.backup).await?;
        let repository = self.services.backup_repository(project).await?;
        let names = names(&asked.path);
        let entry = self.services.backup_readers.look(move || repository.entry_at(&snapshot, &refs(&names))).await?;
        let called = asked.path.names().next_back().unwrap_or(held.name.as_str());
        let (name, bytes) = match kind(&entry) {
            FileKind::Folder => (format!("{called}{ARCHIVE}"), None),
            FileKind::File => (called.to_owned(), Some(Bytes(entry.size))),
            FileKind::Link | FileKind::Other => {
                let message =
                    format!("{} is no folder and no regular file: there is nothing in it to fetch.", asked.path);
                return Err(Error::field("path", message));
            }
        };
        let detail = json!({ "backup": asked.backup, "path": asked.path, "environment": held.environment });
        let row = Entry::new("backup.fetch", held.name.as_str()).id(held.guest.0).detail(detail);
        change.commit(row, BackupFetch { asked: (*asked).clone(), name, bytes }).await
    }
}

/// What a folder is called by is followed by this.
const ARCHIVE: &str = ".tar";

impl Controller {
    /// What is in a file of a backup, or in a folder as an archive, if who fetches it may.
    pub async fn backup_content(&self, who: &Principal, fetch: &BackupFetch) -> Result<Content> {
        let (snapshot, project) = self.fetchable(who, &fetch.asked).await?;
        let repository = self.services.backup_repository(project).await?;
        let folder = if fetch.bytes.is_none() { fetch.name.strip_suffix(ARCHIVE).map(str::to_owned) } else { None };
        let fetched = Fetched { snapshot, path: names(&fetch.asked.path), folder };
        self.services.backup_readers.fetch(repository, fetched).await
    }

    /// Whether who fetches it still may.
    pub async fn may_fetch(&self, who: &Principal, fetch: &BackupFetch) -> Result<()> {
        self.fetchable(who, &fetch.asked).await.map(drop)
    }

    async fn fetchable(&self, who: &Principal, asked: &FetchBackupFile) -> Result<(String, ProjectId)> {
        let mut conn = self.services.db.acquire().await?;
        let project = projects::by_name(&mut conn, &asked.project).await?.ok_or(Denied::NotFound)?;
        let (_, snapshot) = self.readable(conn, who, (&asked.project, project), asked.backup).await?;
        Ok((snapshot, project))
    }

    /// A backup of a project and its name in the repository, if who asks may see what is in it.
    async fn readable(
        &self,
        mut conn: Conn,
        who: &Principal,
        (name, project): (&ProjectName, ProjectId),
        id: BackupId,
    ) -> Result<(Held, String)> {
        let held = backups::held(&mut conn, (id, project)).await?.ok_or(Denied::NotFound)?;
        let open = projects::is_entered_by_developers(&mut conn, project).await?;
        // The gate takes a connection of its own.
        drop(conn);
        let needs = to_enter(held.environment, open.unwrap_or_default());
        let judged = self.may(who, needs, &Scope::Project(name.clone())).await;
        judged.map_err(|refused| Error::Refused(Box::new(refused)))?;
        let snapshot = held.snapshot.clone().filter(|_| held.state == BackupState::Ready);
        let snapshot = snapshot.ok_or_else(|| busy(held.state))?;
        Ok((held, snapshot))
    }
}

/// Whether they are offered to look into backups of an environment.
pub(super) fn may_read(who: &Principal, project: ProjectId, environment: Environment, open: bool) -> bool {
    who.can::<ListBackupFiles>(Some(project)) && who.judge(to_enter(environment, open), Some(project)).is_ok()
}

fn names(path: &FilePath) -> Vec<Vec<u8>> {
    path.names().map(|name| name.as_bytes().to_vec()).collect()
}

fn refs(names: &[Vec<u8>]) -> Vec<&[u8]> {
    names.iter().map(Vec::as_slice).collect()
}

const fn kind(entry: &TreeEntry) -> FileKind {
    match entry.kind {
        TreeKind::Folder => FileKind::Folder,
        TreeKind::File => FileKind::File,
        TreeKind::Link(_) => FileKind::Link,
        TreeKind::Pipe => FileKind::Other,
    }
}

/// A file as a page shows it.
fn file(folder: &FilePath, entry: &TreeEntry) -> BackupFile {
    let kind = kind(entry);
    let named = std::str::from_utf8(&entry.name).ok().and_then(|name| folder.join(name));
    let (seconds, nanoseconds) = entry.modified;
    BackupFile {
        name: shown(&entry.name),
        kind,
        path: named.filter(|_| matches!(kind, FileKind::Folder | FileKind::File)),
        bytes: (kind == FileKind::File).then_some(Bytes(entry.size)),
        mode: format!("{:04o}", entry.mode),
        uid: entry.uid,
        gid: entry.gid,
        modified_at: DateTime::<Utc>::from_timestamp(seconds, nanoseconds).unwrap_or_default(),
        target: if let TreeKind::Link(target) = &entry.kind { Some(shown(target)) } else { None },
    }
}

/// What a guest called something, without what would do more than be read.
fn shown(name: &[u8]) -> String {
    plain_line(&String::from_utf8_lossy(name), SHOWN)
}
