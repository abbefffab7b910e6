//! What is over is forgotten, and sums that are kept as many rows become one, so that the database does not
//! grow with what nobody asks for any more.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{counts, device_logins};
use crate::{Controller, Result};

/// How often it is looked for: however often a member starts and stops a guest meanwhile, there are few rows to sum up.
const INTERVAL: Duration = Duration::from_mins(5);

impl Controller {
    /// Forgets until `stop`.
    pub async fn forget_what_is_over(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.forget_once().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "what is over could not be forgotten");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Keys of requests that were sent long ago, and programs that nobody let in.
    async fn forget_once(&self) -> Result<()> {
        let mut tx = self.services.begin().await?;
        corpus_gate::forget_old(&mut tx).await?;
        device_logins::forget_expired(&mut tx).await?;
        counts::fold(&mut tx).await?;
        Ok(tx.commit().await?)
    }
}
