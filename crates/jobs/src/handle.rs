//! The handle by which jobs are submitted, read, followed and decided on.

use std::sync::Arc;

use corpus_domain::{JobId, JobKind};
use futures::future::BoxFuture;
use sqlx::PgConnection;
use tokio::sync::broadcast;

use super::define::{Outlines, StepOutline};
use super::error::JobsError;
use super::listen::{Listener, Notice};
use corpus_database::Db;

/// Submits, reads, follows and decides on jobs. Cheap to clone; knows nothing of the services,
/// so that they can hold it. The jobs are run by [`super::Engine`].
#[derive(Debug, Clone)]
pub struct Jobs(Arc<Inner>);

/// What is run in each transaction in which a job is over, or stuck. When it fails, the job is not over
/// either, and that is tried again.
pub type OnEnd = for<'a> fn(&'a mut PgConnection, JobId) -> BoxFuture<'a, sqlx::Result<()>>;

#[derive(Debug)]
struct Inner {
    db: Db,
    outlines: Outlines,
    listener: Listener,
    on_end: Option<OnEnd>,
}

impl Jobs {
    /// Opens the one `LISTEN` connection of this server.
    pub async fn open(db: Db, outlines: Outlines) -> Result<Self, JobsError> {
        Self::opened(db, outlines, None).await
    }

    /// The same; of each job that is over `on_end` is told.
    pub async fn telling(db: Db, outlines: Outlines, on_end: OnEnd) -> Result<Self, JobsError> {
        Self::opened(db, outlines, Some(on_end)).await
    }

    async fn opened(db: Db, outlines: Outlines, on_end: Option<OnEnd>) -> Result<Self, JobsError> {
        let listener = Listener::open(&db).await?;
        Ok(Self(Arc::new(Inner { db, outlines, listener, on_end })))
    }

    pub(super) fn on_end(&self) -> Option<OnEnd> {
        self.0.on_end
    }

    /// Tells that a job is over, in the transaction in which it is.
    pub(super) async fn tell_end(&self, conn: &mut PgConnection, id: JobId) -> sqlx::Result<()> {
        match self.0.on_end {
            Some(on_end) => on_end(conn, id).await,
            None => Ok(()),
        }
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
