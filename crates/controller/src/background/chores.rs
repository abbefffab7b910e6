//! What is to be done in guests by and by, a few at a time: their states, and the users that they are to have; and the
//! baseline of nodes. One server at a time looks for it; each is taken before its job begins, so two that think it is their
//! turn do it once.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::turns::Turn;
use crate::store::{baselines, chores};
use crate::{Controller, Result};

/// Who asks for all guests sees the first begin at once.
const TURN: Turn = Turn {
    lease: "chores",
    every: Duration::from_secs(2),
    lasts: Duration::from_secs(30),
    failed: "what is due in guests could not be done",
};

impl Controller {
    /// Does what is due until `stop`.
    pub(super) async fn do_chores(self, stop: CancellationToken) {
        self.take_turns(&TURN, stop, |it| async move { it.do_due_chores().await }).await;
    }

    /// Does what is due now, if it is this server's turn.
    pub async fn do_due_chores(&self) -> Result<()> {
        let with_salt = self.services.settings.salt_bundle.is_some();
        let mut conn = self.services.db.acquire().await?;
        if !self.has_turn(&mut conn, &TURN).await? {
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
