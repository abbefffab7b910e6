//! The handle by which jobs are submitted, read, followed and decided on.

use std::sync::Arc;

use corpus_domain::JobKind;
use sqlx::PgPool;
use tokio::sync::broadcast;

use super::define::{Outlines, StepOutline};
use super::error::JobsError;
use super::listen::{Listener, Notice};

/// Submits, reads, follows and decides on jobs. Cheap to clone; knows nothing of the services,
/// so that they can hold it. The jobs are run by [`super::Engine`].
#[derive(Debug, Clone)]
pub struct Jobs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: PgPool,
    outlines: Outlines,
    listener: Listener,
}

impl Jobs {
    /// Opens the one `LISTEN` connection of this server.
    pub async fn open(pool: PgPool, outlines: Outlines) -> Result<Self, JobsError> {
        let listener = Listener::open(&pool).await?;
        Ok(Self(Arc::new(Inner { pool, outlines, listener })))
    }

    pub(super) fn pool(&self) -> &PgPool {
        &self.0.pool
    }

    pub(super) fn outline(&self, kind: JobKind) -> Result<&[StepOutline], JobsError> {
        self.0.outlines.0.get(&kind).map(Vec::as_slice).ok_or(JobsError::UnknownKind(kind))
    }

    pub(super) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.0.listener.notices()
    }
}
