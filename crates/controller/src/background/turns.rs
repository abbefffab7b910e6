//! Work that one server at a time does again and again, as long as it holds the lease.

use std::future::Future;
use std::time::Duration;

use sqlx::PgConnection;
use tokio_util::sync::CancellationToken;

use crate::store::leases;
use crate::{Controller, Result};

/// Such work.
pub(super) struct Turn {
    /// What its lease is called.
    pub lease: &'static str,
    /// How often it is looked whether there is any.
    pub every: Duration,
    /// How long the lease lasts: longer than the time between two looks, so that a server that works keeps it.
    pub lasts: Duration,
    /// What the log says when it fails.
    pub failed: &'static str,
}

impl Controller {
    /// Does it until `stop`.
    pub(super) async fn take_turns<Done>(self, turn: &Turn, stop: CancellationToken, work: impl Fn(Self) -> Done)
    where
        Done: Future<Output = Result<()>>,
    {
        loop {
            if let Err(error) = work(self.clone()).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "{}", turn.failed);
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(turn.every) => {}
            }
        }
    }

    /// Whether it is this server's turn.
    pub(super) async fn has_turn(&self, conn: &mut PgConnection, turn: &Turn) -> Result<bool> {
        Ok(leases::take(conn, turn.lease, self.services.instance, turn.lasts).await?)
    }
}
