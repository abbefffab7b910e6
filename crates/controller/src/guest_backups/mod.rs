//! Where backups of guests are kept, and how their files get there from the nodes and back, and from a node to another.
//!
//! A node is not to be trusted with what other guests wrote, nor with what its own guest wrote before: so no node ever
//! sees a repository. It tells all files of a snapshot over its line, and this machine alone, which holds the keys, puts
//! them into the project's repository; what lies there already is not asked for again. Who took over a node can lie about
//! what its guests are now, and reads, changes and deletes no backup.
//!
//! Each project has a repository of its own, below the place for all, with a key of its own: what two guests of a project
//! have in common lies there once, and what projects have in common lies there twice.

mod across;
mod archive;
mod aside;
mod bring;
mod incoming;
mod look;
mod pack;
mod repack;
mod save;

use std::io;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use corpus_backup::{BackupError, Repository, Storage, StorageError};
use corpus_domain::{Bytes, ProjectId};
use rand::RngExt;
use secrecy::SecretString;
use sqlx::PgConnection;
use thiserror::Error;

pub(crate) use across::Across;
pub(crate) use aside::aside;
pub(crate) use bring::{bring, sums};
pub(crate) use incoming::Limits;
pub use look::Content;
pub(crate) use look::{Fetched, Readers};
pub(crate) use pack::{Packed, What, pack};
pub(crate) use repack::repack;
pub(crate) use save::{PIECES, Reading, save};

use crate::nodes::{NodeEndpoint, NodeError, Pool, TreeInput, TreeOutput, TreeWords};
use crate::seal::{Purpose, Sealed};
use crate::services::{Services, internal};
use crate::store::backups;
use crate::{Error, Result};

/// How many bytes of chance a repository's password has.
const PASSWORD_BYTES: usize = 32;
/// How long the thread that writes or reads a repository may take to end when nobody wants what it does any more.
const ENDS: Duration = Duration::from_mins(2);

/// A program of a node's agent, and what it is asked for.
pub(crate) struct Program<'a> {
    /// The lines to the nodes.
    pub nodes: &'a Pool,
    /// The node.
    pub node: &'a NodeEndpoint,
    /// What it is to do.
    pub words: TreeWords,
}

impl Program<'_> {
    async fn start(&self) -> std::result::Result<(TreeInput, TreeOutput), NodeError> {
        self.nodes.tree(self.node, &self.words).await
    }
}

/// Files could not be brought from or to a node.
#[derive(Debug, Error)]
pub(crate) enum CarryError {
    /// The node.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The repository.
    #[error(transparent)]
    Repository(#[from] BackupError),
    /// What the node's agent says of it.
    #[error("{0}")]
    Told(String),
    /// What the node said is none of what it may say.
    #[error("the node told of files in a way that is not understood: {0}")]
    Unclear(String),
    /// This machine.
    #[error("the list of files could not be kept for the moment")]
    Spool(#[from] io::Error),
    /// Nobody wants it any more.
    #[error("it was cancelled")]
    Cancelled,
    /// The thread that worked on the repository.
    #[error("the work on the repository was ended")]
    Ended,
}

impl Services {
    /// Where a project's repository is; none where backups of guests are not kept.
    pub(crate) fn backup_storage(&self, project: ProjectId) -> Option<Storage> {
        self.settings.guest_backups.as_ref().map(|storage| storage.below(&project.0.to_string()))
    }

    /// The repository of a project. Its key is made the first time.
    pub(crate) async fn backup_repository(&self, project: ProjectId) -> Result<Repository> {
        let storage = self.backup_storage(project).ok_or_else(not_kept)?;
        let mut tx = self.begin().await?;
        let password = self.backup_password(&mut tx, project).await?;
        tx.commit().await?;
        Ok(Repository::at(storage, password))
    }

    /// What opens the repository of a project; made the first time.
    pub(crate) async fn backup_password(&self, conn: &mut PgConnection, project: ProjectId) -> Result<SecretString> {
        let purpose = Purpose::of("backup-repository", project.0);
        let fresh = password();
        let sealed = self.seal.seal(&fresh, &purpose);
        let sealed = sealed.map_err(|error| internal("a repository's key could not be sealed", error))?;
        let sealed = backups::password(conn, project, &sealed.to_bytes()).await?;
        let opened = Sealed::from_bytes(&sealed).and_then(|sealed| self.seal.open(&sealed, &purpose));
        opened.map_err(|error| internal("a repository's key could not be opened", error))
    }
}

/// What stays free where backups are kept: a twentieth, and this much. Restoring needs none of it; deleting does.
const LEFT: u64 = 1 << 30;

/// Why nothing more is put there, if the place is as full as it may be and can tell.
pub(crate) fn is_full(storage: &Storage) -> std::result::Result<Option<String>, StorageError> {
    let Some(room) = storage.room()? else { return Ok(None) };
    let least = LEFT.max(room.all / 20);
    Ok((room.free < least).then(|| {
        let (free, least) = (Bytes(room.free).gb(), Bytes(least).gb());
        format!("where backups are kept, {free} are free, and {least} are to stay so")
    }))
}

/// What to say where backups of guests are not kept.
pub(crate) fn not_kept() -> Error {
    Error::Conflict("Backups of guests are not kept here: the operators have not said where.".to_owned())
}

fn password() -> SecretString {
    let bytes: [u8; PASSWORD_BYTES] = rand::rng().random();
    BASE64_URL_SAFE_NO_PAD.encode(bytes).into()
}
