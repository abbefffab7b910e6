//! Where names lead whose guests are on several nodes.
//!
//! Such a name has the addresses of all these nodes, and that changes without anybody asking for it: a guest joins or
//! leaves on another node, or a node is lost. So what each name should lead to is compared with what it was last said to,
//! every few seconds, by whichever server comes first; what differs is written. A node that does not answer is left out
//! while another one serves, and is back when it answers: browsers go on to the next address by themselves, but only after
//! a while.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::names;
use crate::{Controller, Result};

/// How often it is compared.
const INTERVAL: Duration = Duration::from_secs(3);
/// Names that are written at a look.
const AT_ONCE: i64 = 200;

impl Controller {
    /// Compares and writes until `stop`.
    pub(crate) async fn spread_names(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            if let Err(error) = self.spread_all().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "where names lead could not be compared");
            }
        }
    }

    /// Brings all names to where they should lead; one that fails keeps no other from it.
    pub(crate) async fn spread_all(&self) -> Result<()> {
        let due = names::to_spread(&mut *self.services.db.acquire().await?, AT_ONCE).await?;
        for name in due {
            if let Err(error) = self.services.spread(name).await {
                tracing::warn!(name.id = %name, error = &error as &dyn std::error::Error, "a name does not lead to all of its nodes");
            }
        }
        Ok(())
    }
}
