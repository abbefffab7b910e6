//! The handle by which jobs are submitted, read, followed and decided on.

use std::sync::Arc;

use corpus_domain::JobKind;
use tokio::sync::broadcast;

use super::define::{Outlines, StepOutline};
use super::error::JobsError;
use super::listen::{Listener, Notice};
use corpus_database::Db;

/// Submits, reads, follows and decides on jobs. Cheap to clone; knows nothing of the services,
/// so that they can hold it. The jobs are run by [`super::Engine`].
#[derive(Debug, Clone)]
pub struct Jobs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    db: Db,
    outlines: Outlines,
    listener: Listener,
}

impl Jobs {
    /// Opens the one `LISTEN` connection of this server.
    pub async fn open(db: Db, outlines: Outlines) -> Result<Self, JobsError> {
        let listener = Listener::open(&db).await?;
        Ok(Self(Arc::new(Inner { db, outlines, listener })))
    }

    pub(super) fn db(&self) -> &Db {
        &self.0.db
    }

    pub(super) fn outline(&self, kind: JobKind) -> Result<&[StepOutline], JobsError> {
        self.0.outlines.0.get(&kind).map(Vec::as_slice).ok_or(JobsError::UnknownKind(kind))
    }

    pub(super) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.0.listener.notices()
    }
}
