//! What is left when the machine of the controller is gone: a backup of the controller itself.
//!
//! The nodes and their guests go on without it, but nobody can ask them anything: which hosts there are, the keys that
//! open them, whose guest is whose, all of it is in the database, and what is secret there is sealed with a key beside
//! it. So a backup holds the database, that key, the configuration, every file that the configuration names, and the
//! operators' hooks; in a repository of restic's format ([`corpus_backup`]), encrypted with a password that is in none
//! of them. Images and the bundle of Salt are not in it: they are made anew.
//!
//! Brought back on an empty machine ([`restore`]), each file lies where it lay, and the server takes up its work: what
//! differs on the nodes since then is found as any drift is. Who was signed in has to sign in again: a session that
//! was ended since must not be good again.

mod parts;
mod restore;
mod schedule;
mod tools;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_backup::{BackupError, Keep, Reading, Repository, Saved, Snapshot, Storage};
use corpus_controller::own_backups;
use corpus_database::Db;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection};
use thiserror::Error;

use crate::config::Settings;
use crate::database::{Database, DatabaseError};

pub use restore::{Restored, restore};
pub use schedule::keep;
pub use tools::{Address, ToolError};

/// Under which label the backups of a controller are in their repository.
pub const LABEL: &str = "corpus-controller";

/// Nobody else may take one, or remove old ones, meanwhile; of this database.
pub const LOCK: i64 = 0x636f_7270_7573_0b4b;

/// How backups of the controller are taken.
#[derive(Debug, Clone)]
pub struct BackupSettings {
    /// Where the repository is.
    pub storage: Storage,
    /// What opens it.
    pub password: SecretString,
    /// What is kept.
    pub keep: Keep,
    /// After how many hours one is taken by itself; none: when somebody asks.
    pub every_hours: Option<u16>,
}

/// A backup can't be taken or brought back.
#[derive(Debug, Error)]
pub enum OwnBackupError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] BackupError),
    /// The database.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A statement.
    #[error("the database did not answer")]
    Statement(#[from] sqlx::Error),
    /// A tool of PostgreSQL.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// No repository is configured.
    #[error("the configuration has no section [backup]: corpus.example.toml says what belongs there")]
    NotConfigured,
    /// Somebody else is at it.
    #[error("another backup of this controller is being taken just now")]
    Busy,
    /// The configuration that came back can't be used.
    #[error("the configuration that was brought back can't be used")]
    Config(#[from] crate::config::ConfigError),
    /// There is something already.
    #[error("the database is not empty: a backup is brought back into an empty one")]
    NotEmpty,
    /// Files are there that say something else.
    #[error(
        "these files are here already, and others than those of the backup: move them away first\n  {}",
        .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join("\n  ")
    )]
    InTheWay(Vec<PathBuf>),
    /// What was brought back is no backup of a controller.
    #[error("this is no backup of a controller: {0}")]
    NotOurs(&'static str),
    /// A file or folder.
    #[error("{what} {path}")]
    File {
        /// What was being done.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// What root writes there the service could not read.
    #[error("{0} is not root's: take the backup as who serves: runuser -u $(stat -c %U {0}) -- {program} backup", program = this_program())]
    NotRoots(PathBuf),
    /// A thread of it ended.
    #[error("the work on the backup was ended")]
    Ended(#[from] tokio::task::JoinError),
}

/// What is to be typed for this program: it need not be in the PATH.
fn this_program() -> String {
    std::env::current_exe().map_or_else(|_| "corpus-server".to_owned(), |path| path.display().to_string())
}

type Result<T> = std::result::Result<T, OwnBackupError>;

fn file_error(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> OwnBackupError {
    let path = path.to_owned();
    move |source| OwnBackupError::File { what, path, source }
}

/// What a backup says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    /// The version of Corpus that took it.
    version: String,
    /// When.
    at: DateTime<Utc>,
    /// The configuration's file, if there was one.
    config: Option<PathBuf>,
}

/// What was taken.
#[derive(Debug)]
pub struct Taken {
    /// The backup.
    pub saved: Saved,
    /// How many older ones were removed.
    pub removed: usize,
    /// How long it took.
    pub took: Duration,
}

/// Takes a backup of this controller, and removes those that need not be kept. What comes of it is told to the
/// operators.
pub async fn take(settings: &Settings, database: &Database) -> Result<Taken> {
    let backup = settings.backup.as_ref().ok_or(OwnBackupError::NotConfigured)?;
    let owner =
        std::fs::metadata(&settings.data_folder).map_err(file_error("looking at", &settings.data_folder))?.uid();
    if rustix::process::geteuid().is_root() && owner != 0 {
        return Err(OwnBackupError::NotRoots(settings.data_folder.clone()));
    }
    let lock = Lock::take(&database.db).await?;
    let id = own_backups::begin(&database.db).await?;
    let made = make(settings, backup, database).await;
    match &made {
        Ok(taken) => own_backups::done(&database.db, id, &told(&taken.saved)).await?,
        Err(error) => own_backups::failed(&database.db, id, &sentence(error)).await?,
    }
    lock.leave().await?;
    made
}

async fn make(settings: &Settings, backup: &BackupSettings, database: &Database) -> Result<Taken> {
    let began = std::time::Instant::now();
    // Below the data folder: there is room for the database, and nobody else may look.
    parts::clear_left(&settings.data_folder)?;
    let staging = parts::private_folder(&settings.data_folder)?;
    tools::dump(database.address(), &staging.path().join(parts::DATABASE)).await?;
    parts::gather(settings, staging.path())?;
    let about = About { version: env!("CARGO_PKG_VERSION").to_owned(), at: Utc::now(), config: settings.file.clone() };
    parts::write_about(staging.path(), &about)?;
    let repository = Repository::at(backup.storage.clone(), backup.password.clone());
    let (keep, host) = (backup.keep, settings.public_url.host_str().unwrap_or("corpus").to_owned());
    let saving = tokio::task::spawn_blocking(move || {
        let saved = repository.save(staging.path(), LABEL, &host)?;
        let removed = repository.thin(LABEL, keep)?;
        Ok::<_, OwnBackupError>((saved, removed))
    });
    let (saved, removed) = saving.await??;
    Ok(Taken { saved, removed, took: began.elapsed() })
}

fn told(saved: &Saved) -> own_backups::Taken {
    let Saved { snapshot, added_bytes } = saved;
    own_backups::Taken { snapshot: snapshot.id.clone(), bytes: snapshot.bytes, added_bytes: *added_bytes }
}

/// An error with what caused it.
fn sentence(error: &OwnBackupError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// The backups that there are, the newest first.
pub async fn list(settings: &Settings) -> Result<Vec<Snapshot>> {
    let backup = settings.backup.as_ref().ok_or(OwnBackupError::NotConfigured)?;
    let repository = Repository::at(backup.storage.clone(), backup.password.clone());
    Ok(tokio::task::spawn_blocking(move || repository.list(LABEL)).await??)
}

/// Reads every byte of the repository, and fails when something is not as it was written.
pub async fn check(settings: &Settings) -> Result<()> {
    let backup = settings.backup.as_ref().ok_or(OwnBackupError::NotConfigured)?;
    let repository = Repository::at(backup.storage.clone(), backup.password.clone());
    Ok(tokio::task::spawn_blocking(move || repository.check(Reading::All)).await??)
}

/// Held while a backup is taken, by a connection of its own: a server that is killed leaves none.
struct Lock(PgConnection);

impl Lock {
    async fn take(db: &Db) -> Result<Self> {
        let mut conn = db.apart().await?;
        let (taken,): (bool,) =
            sqlx::query_as("select pg_try_advisory_lock($1)").bind(LOCK).fetch_one(&mut conn).await?;
        if taken { Ok(Self(conn)) } else { Err(OwnBackupError::Busy) }
    }

    async fn leave(self) -> Result<()> {
        Ok(self.0.close().await?)
    }
}
