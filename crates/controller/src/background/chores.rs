//! What is to be done in guests by and by, a few at a time: their states, and the users that they are to have; and the
//! baseline of nodes. One server at a time looks for it; each is taken before its job begins, so two that think it is their
//! turn do it once.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{baselines, chores, leases};
use crate::{Controller, Result};

/// How often it is looked for it: who asks for all guests sees the first begin at once.
const INTERVAL: Duration = Duration::from_secs(2);
/// Longer than the time between two looks: a server that works keeps its lease.
const LEASE_TIME: Duration = Duration::from_secs(30);
/// What the lease is called.
const LEASE_NAME: &str = "chores";

impl Controller {
    /// Does what is due until `stop`.
    pub(super) async fn do_chores(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.do_due_chores().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "what is due in guests could not be done");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Does what is due now, if it is this server's turn.
    pub async fn do_due_chores(&self) -> Result<()> {
        let with_salt = self.services.settings.salt_bundle.is_some();
        let mut conn = self.services.db.acquire().await?;
        if !leases::take(&mut conn, LEASE_NAME, self.services.instance, LEASE_TIME).await? {
            return Ok(());
        }
        if with_salt {
            chores::ask_by_schedule(&mut conn).await?;
        }
        let due = chores::due(&mut conn, with_salt).await?;
        let nodes = if with_salt { baselines::take_due(&mut conn).await? } else { Vec::new() };
        drop(conn);
        // What fails for one is no reason to forget the others.
        for chore in due {
            if let Err(error) = self.do_chore(chore).await {
                let (guest, error) = (chore.guest, &error as &dyn std::error::Error);
                tracing::warn!(%guest, what = ?chore.what, error, "what is due in a guest could not be begun");
            }
        }
        for node in nodes {
            if let Err(error) = self.see_to_baseline(node).await {
                tracing::warn!(%node, error = &error as &dyn std::error::Error, "a node's baseline could not be seen to");
            }
        }
        Ok(())
    }
}
