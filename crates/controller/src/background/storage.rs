//! Notes what is in the storage of guests, so that it can be told when it will be full. One server at a time does.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{guest_storage, leases};
use crate::{Controller, Result};

/// How often. What counts is the last number of a day.
const INTERVAL: Duration = Duration::from_mins(20);
/// Longer than the time between two looks: a server that works keeps its lease.
const LEASE_TIME: Duration = Duration::from_mins(50);
/// What the lease is called.
const LEASE_NAME: &str = "storage";

impl Controller {
    /// Does so until `stop`.
    pub(super) async fn note_storage(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.note_storage_now().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "the storage of guests could not be noted");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Does so if it is this server's turn.
    pub(crate) async fn note_storage_now(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !leases::take(&mut conn, LEASE_NAME, self.services.instance, LEASE_TIME).await? {
            return Ok(());
        }
        guest_storage::note(&mut conn).await?;
        Ok(guest_storage::forget(&mut conn).await?)
    }
}
