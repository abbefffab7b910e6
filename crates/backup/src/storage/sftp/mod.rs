//! A folder of an SFTP server.
//!
//! The line is opened when it is needed first. When it breaks it is opened once more, for each thing that was being done:
//! all of them can be done twice. A server that does not come back is then said to be unreachable.

mod connect;
mod files;

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::StatusCode;
use tokio::sync::Mutex;

use self::connect::{Session, connect};
use super::runtime::wait;
use super::{Files, Result, Room, SftpAccess, StorageError};
use crate::place::SftpPlace;

pub(super) struct Sftp {
    place: SftpPlace,
    access: Arc<SftpAccess>,
    session: Mutex<Option<Arc<Session>>>,
}

impl std::fmt::Debug for Sftp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sftp({})", self.name())
    }
}

/// What a server said, or that it said nothing.
type Told<T> = std::result::Result<T, SftpError>;

/// Whether it said that there is no such file.
fn is_missing(error: &SftpError) -> bool {
    matches!(error, SftpError::Status(status) if status.status_code == StatusCode::NoSuchFile)
}

impl Sftp {
    pub(super) fn new(place: SftpPlace, access: Arc<SftpAccess>) -> Self {
        Self { place, access, session: Mutex::new(None) }
    }

    fn at(&self, path: &str) -> String {
        format!("{}/{path}", self.place.path)
    }

    /// Does it, on a second line if the first breaks.
    fn done<T, F>(&self, doing: &'static str, path: &str, work: impl Fn(Arc<Session>) -> F) -> Result<T>
    where
        F: Future<Output = Told<T>>,
    {
        wait(async {
            let mut tried = false;
            loop {
                let session = self.session().await?;
                let error = match work(session.clone()).await {
                    Ok(done) => return Ok(done),
                    Err(error) => error,
                };
                // That the line ended is known a moment after what was asked for on it failed.
                let cut = !matches!(error, SftpError::Status(_) | SftpError::Limited(_));
                if !cut {
                    return Err(self.refused(doing, path, &error));
                }
                self.let_go(&session).await;
                if tried {
                    return Err(StorageError::Lost { server: self.place.server(), doing, path: path.to_owned() });
                }
                tried = true;
            }
        })
    }

    async fn session(&self) -> Result<Arc<Session>> {
        let mut held = self.session.lock().await;
        if let Some(session) = held.as_ref().filter(|session| !session.is_closed()) {
            return Ok(session.clone());
        }
        let session = Arc::new(connect(&self.place, &self.access).await?);
        *held = Some(session.clone());
        Ok(session)
    }

    /// The line is good for nothing any more.
    async fn let_go(&self, session: &Arc<Session>) {
        let mut held = self.session.lock().await;
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, session)) {
            *held = None;
        }
    }

    fn refused(&self, doing: &'static str, path: &str, error: &SftpError) -> StorageError {
        let why = match error {
            SftpError::Status(status) => match status.status_code {
                StatusCode::NoSuchFile => "there is none".to_owned(),
                StatusCode::PermissionDenied => "the account may not".to_owned(),
                _ if status.error_message.is_empty() => "it failed".to_owned(),
                _ => status.error_message.chars().filter(|one| !one.is_control()).take(200).collect(),
            },
            other => other.to_string(),
        };
        StorageError::Refused { server: self.place.server(), doing, path: path.to_owned(), why }
    }
}

impl Files for Sftp {
    fn name(&self) -> String {
        crate::Place::Sftp(self.place.clone()).to_string()
    }

    fn prepare(&self) -> Result<()> {
        let path = self.place.path.clone();
        self.done("making", &path, |session| {
            let path = path.clone();
            async move { files::prepare(&session, &path).await }
        })
    }

    fn lock(&self) -> Result<Option<std::fs::File>> {
        Ok(None)
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        let path = self.at(folder);
        self.done("listing", &path, |session| {
            let path = path.clone();
            async move { files::list(&session, &path).await }
        })
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let path = self.at(path);
        self.done("looking for", &path, |session| {
            let path = path.clone();
            async move { files::exists(&session, &path).await }
        })
    }

    fn read(&self, path: &str) -> Result<Bytes> {
        let path = self.at(path);
        self.done("reading", &path, |session| {
            let path = path.clone();
            async move {
                let size = session.sftp.stat(path.as_str()).await?.attrs.size.unwrap_or_default();
                files::read(&session, &path, 0, size).await
            }
        })
        .and_then(|read| read.ok_or(StorageError::Short { path }))
    }

    fn read_part(&self, path: &str, offset: u64, length: u64) -> Result<Bytes> {
        let path = self.at(path);
        self.done("reading", &path, |session| {
            let path = path.clone();
            async move { files::read(&session, &path, offset, length).await }
        })
        .and_then(|read| read.ok_or(StorageError::Short { path }))
    }

    fn write(&self, path: &str, content: &[Bytes]) -> Result<()> {
        let path = self.at(path);
        self.done("writing", &path, |session| {
            let path = path.clone();
            async move { files::write(&session, &path, content).await }
        })
    }

    fn create(&self, path: &str, content: &[Bytes]) -> Result<bool> {
        let at = self.at(path);
        if self.exists(path)? {
            return Ok(false);
        }
        let unnamed = format!("{at}-{:016x}", rand::random::<u64>());
        self.done("writing", &at, |session| {
            let (at, unnamed) = (at.clone(), unnamed.clone());
            async move { files::create(&session, &at, &unnamed, content).await }
        })?;
        // Some servers replace what is there, and a line may have broken after it was done.
        Ok(self.read(path)? == content.concat())
    }

    fn remove(&self, path: &str) -> Result<()> {
        let path = self.at(path);
        self.done("removing", &path, |session| {
            let path = path.clone();
            async move { files::remove(&session, &path).await }
        })
    }

    fn remove_all(&self) -> Result<()> {
        // While it is there others take it for a repository.
        self.remove(super::CONFIG)?;
        let path = self.place.path.clone();
        self.done("removing", &path, |session| {
            let path = path.clone();
            async move { files::remove_all(&session, &path).await }
        })
    }

    fn room(&self) -> Result<Option<Room>> {
        let path = self.place.path.clone();
        self.done("looking at", &path, |session| {
            let path = path.clone();
            async move { files::room(&session, &path).await }
        })
    }
}
