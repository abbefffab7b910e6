//! One repository: opening it, saving a folder of this machine into it, listing, bringing back, checking.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use rustic_core::repofile::SnapshotFile;
use rustic_core::{
    BackupOptions, CheckOptions, ConfigOptions, Credentials, KeyOptions, LocalDestination, LsOptions, OpenStatus,
    PathList, ReadSubsetOption, Repository as Rustic, RepositoryBackends, RepositoryOptions, RestoreOptions,
    SnapshotOptions,
};
use secrecy::{ExposeSecret, SecretString};

use crate::BackupError;
use crate::fault::Fault;
use crate::late::again_where_late;
use crate::storage::{Backend, CONFIG, Storage, StorageError};

pub(crate) type Result<T> = std::result::Result<T, BackupError>;

const OPENING: &str = "opening the repository";
/// Where the contents lie: all but what tells where each is.
const CONTENTS: &str = "data";

/// Held by who makes a repository: of this process only one does at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A repository, opened anew for each thing that is asked of it.
#[derive(Debug, Clone)]
pub struct Repository {
    storage: Storage,
    password: SecretString,
}

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The backup.
    pub snapshot: Snapshot,
    /// Bytes that the repository did not hold before, as they lie there.
    pub added_bytes: u64,
}

/// A backup that a repository holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name in the repository, 64 hexadecimal digits.
    pub id: String,
    /// When it was begun.
    pub at: DateTime<Utc>,
    /// Of what: the label that it was saved under.
    pub label: String,
    /// Bytes of all that is in it.
    pub bytes: u64,
    /// How many files are in it.
    pub files: u64,
}

/// One of the backups of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The newest.
    Latest,
    /// The one whose id begins so.
    Id(String),
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("at all"),
            Self::Id(id) => write!(f, "{id}"),
        }
    }
}

/// How much of what was written is read when a repository is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// What tells where everything lies, and whether it is there.
    Index,
    /// That, and about so many bytes of the contents: others each time.
    Some(u64),
    /// Every byte.
    All,
}

impl Repository {
    /// The one at a place.
    pub const fn at(storage: Storage, password: SecretString) -> Self {
        Self { storage, password }
    }

    /// Saves a folder under a label; the first time it makes the repository.
    pub fn save(&self, folder: &Path, label: &str, host: &str) -> Result<Saved> {
        let fault = Fault::default();
        let repository = self.open_or_make(&fault)?;
        let repository = repository.to_indexed_ids().map_err(BackupError::of("reading the repository's index"))?;
        let folder = text(folder)?;
        let failed = || BackupError::of("saving");
        let source = PathList::from_string(folder).map_err(failed())?;
        let source =
            source.sanitize().map_err(|error| BackupError::Failed { what: "saving", why: error.to_string() })?;
        // Where the files lay for the moment says nothing; what is in them begins at the root.
        let options = BackupOptions::default().as_path(PathBuf::from("/"));
        let about = SnapshotOptions::default().label(label.to_owned()).host(host.to_owned());
        let about = about.to_snapshot().map_err(failed())?;
        let saved = repository.backup(&options, &source, about);
        // The first fault says more than what came of it.
        if let Some(first) = fault.take() {
            return Err(first);
        }
        Ok(Saved::of(&saved.map_err(failed())?))
    }

    /// The backups of a label, the newest first.
    pub fn list(&self, label: &str) -> Result<Vec<Snapshot>> {
        Ok(Self::files(&self.open()?, label)?.iter().map(Snapshot::of).collect())
    }

    /// The backup that was saved under a tag: one that was made, though whoever asked for it did not hear of it.
    ///
    /// There is none where the first save has not even made the repository.
    pub fn tagged(&self, tag: &str) -> Result<Option<Snapshot>> {
        let repository = match self.open() {
            Err(BackupError::NoRepository(_)) => return Ok(None),
            opened => opened?,
        };
        let found = Self::matching(&repository, |one| one.tags.contains(tag))?;
        Ok(found.first().map(Snapshot::of))
    }

    /// Brings a backup back into a folder that is empty or not there yet.
    pub fn restore(&self, label: &str, which: &Which, into: &Path) -> Result<Snapshot> {
        if std::fs::read_dir(into).is_ok_and(|mut found| found.next().is_some()) {
            return Err(BackupError::NotEmpty(into.to_owned()));
        }
        let repository = self.open()?;
        let found = Self::files(&repository, label)?.into_iter().find(|one| match which {
            Which::Latest => true,
            Which::Id(begin) => one.id.to_hex().starts_with(begin.as_str()),
        });
        let file = found.ok_or_else(|| BackupError::NoSnapshot { place: self.name(), which: which.to_string() })?;
        let failed = || BackupError::of("bringing a backup back");
        let repository = repository.to_indexed().map_err(BackupError::of("reading the repository's index"))?;
        let root = repository.node_from_snapshot_and_path(&file, "").map_err(failed())?;
        let contents = repository.ls(&root, &LsOptions::default()).map_err(failed())?;
        let to = LocalDestination::new(text(into)?, true, false).map_err(failed())?;
        let options = RestoreOptions::default();
        let plan = repository.prepare_restore(&options, contents.clone(), &to, false).map_err(failed())?;
        repository.restore(plan, &options, contents, &to).map_err(failed())?;
        Ok(Snapshot::of(&file))
    }

    /// How much all contents take where they lie, in bytes; nothing where there is no repository yet.
    pub fn size(&self) -> Result<u64> {
        let files = self.storage.files().map_err(BackupError::at(OPENING))?;
        let all = files.list(CONTENTS).map_err(BackupError::at("counting what the repository takes"))?;
        Ok(all.iter().map(|(_, size)| size).sum())
    }

    /// Fails when something in it is not what was written.
    pub fn check(&self, reading: Reading) -> Result<()> {
        let subset = match reading {
            Reading::Some(bytes) => ReadSubsetOption::Size(bytes),
            Reading::Index | Reading::All => ReadSubsetOption::All,
        };
        let options =
            CheckOptions::default().trust_cache(true).read_data(reading != Reading::Index).read_data_subset(subset);
        let found =
            again_where_late(|| self.open()?.check(options).map_err(BackupError::of("checking the repository")))?;
        if found.is_ok().is_ok() {
            return Ok(());
        }
        let told: Vec<String> = found.0.iter().take(3).map(|(_, fault)| fault.to_string()).collect();
        Err(BackupError::Damaged { place: self.name(), found: told.join("; ") })
    }

    pub(crate) fn files(repository: &Rustic<OpenStatus>, label: &str) -> Result<Vec<SnapshotFile>> {
        Self::matching(repository, |one| one.label == label)
    }

    /// The newest first.
    fn matching(repository: &Rustic<OpenStatus>, wanted: impl Fn(&SnapshotFile) -> bool) -> Result<Vec<SnapshotFile>> {
        let mut all = repository.get_all_snapshots().map_err(BackupError::of("listing backups"))?;
        all.retain(wanted);
        all.sort_unstable_by(|a, b| b.time.cmp(&a.time));
        Ok(all)
    }

    pub(crate) fn open(&self) -> Result<Rustic<OpenStatus>> {
        self.open_by(&Arc::new(self.backend(&Fault::default())?))
    }

    fn open_by(&self, backend: &Arc<Backend>) -> Result<Rustic<OpenStatus>> {
        if !backend.files().exists(CONFIG).map_err(BackupError::at(OPENING))? {
            return Err(BackupError::NoRepository(self.name()));
        }
        reached(backend)?.open(&self.credentials()).map_err(|error| {
            if error.is_incorrect_password() {
                BackupError::Password(self.name())
            } else {
                BackupError::of(OPENING)(error)
            }
        })
    }

    pub(crate) fn open_or_make(&self, fault: &Fault) -> Result<Rustic<OpenStatus>> {
        let backend = Arc::new(self.backend(fault)?);
        match self.open_by(&backend) {
            Err(BackupError::NoRepository(_)) => self.make(&backend),
            opened => opened,
        }
    }

    fn make(&self, backend: &Arc<Backend>) -> Result<Rustic<OpenStatus>> {
        const MAKING: &str = "making the repository";
        // Who makes it a second time makes what the first has saved unreadable. Who can't be kept from it comes second, and
        // finds out.
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let _locked = backend.files().lock().map_err(BackupError::at(MAKING))?;
        match self.open_by(backend) {
            Err(BackupError::NoRepository(_)) => {}
            opened => return opened,
        }
        let options = (KeyOptions::default(), ConfigOptions::default());
        let made = reached(backend)?.init(&self.credentials(), &options.0, &options.1);
        match made.map_err(BackupError::of(MAKING)) {
            Err(BackupError::Storage { source: StorageError::Taken, .. }) => {
                // It was no fault of what is saved.
                backend.forget();
                self.open_by(backend)
            }
            made => {
                let made = made?;
                backend.made().map_err(BackupError::at(MAKING))?;
                Ok(made)
            }
        }
    }

    fn backend(&self, fault: &Fault) -> Result<Backend> {
        let files = self.storage.files().map_err(BackupError::at(OPENING))?;
        Ok(Backend::new(files, fault.clone()))
    }

    /// Where it is, for people.
    pub(crate) fn name(&self) -> String {
        self.storage.to_string()
    }

    fn credentials(&self) -> Credentials {
        Credentials::password(self.password.expose_secret())
    }
}

fn reached(backend: &Arc<Backend>) -> Result<Rustic<()>> {
    // What is read seldom is not worth a second copy on this disk.
    let options = RepositoryOptions::default().no_cache(true);
    Rustic::new(&options, &RepositoryBackends::new(backend.clone(), None)).map_err(BackupError::of(OPENING))
}

impl Saved {
    pub(crate) fn of(file: &SnapshotFile) -> Self {
        let added_bytes = file.summary.as_ref().map_or(0, |summary| summary.data_added_packed);
        Self { snapshot: Snapshot::of(file), added_bytes }
    }
}

impl Snapshot {
    pub(crate) fn of(file: &SnapshotFile) -> Self {
        let seconds = file.time.timestamp().as_second();
        let summary = file.summary.as_ref();
        Self {
            id: file.id.to_hex().to_string(),
            at: DateTime::from_timestamp(seconds, 0).unwrap_or_default(),
            label: file.label.clone(),
            bytes: summary.map_or(0, |summary| summary.total_bytes_processed),
            files: summary.map_or(0, |summary| summary.total_files_processed),
        }
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| BackupError::NotText(path.to_owned()))
}
