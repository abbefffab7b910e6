//! Snapshots that are due by the schedules of guests, and those that are more than these keep. One server at a time looks
//! for them; each is held before anything is done with it, so two that think it is their turn take one.

use std::time::Duration;

use corpus_domain::GuestId;
use tokio_util::sync::CancellationToken;

use super::turns::Turn;
use crate::store::snapshot_schedules;
use crate::{Controller, Result};

/// When it is looked for them.
const TURN: Turn = Turn {
    lease: "snapshots",
    every: Duration::from_mins(1),
    lasts: Duration::from_mins(3),
    failed: "snapshots that are due could not be taken",
};
/// How many are taken at a look, and as many deleted: a server that was away for long has not all nodes copy at once.
const MOST: i64 = 20;

/// What fails for one guest is no reason to forget the others.
fn told(guest: GuestId, done: Result<()>) {
    if let Err(error) = done {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(%guest, error, "the schedule of a guest's snapshots could not be kept to");
    }
}

impl Controller {
    /// Keeps to the schedules until `stop`.
    pub(super) async fn keep_to_snapshot_schedules(self, stop: CancellationToken) {
        self.take_turns(&TURN, stop, |it| async move { it.take_due_snapshots().await }).await;
    }

    /// Takes those that are due now and deletes what is too much, if it is this server's turn.
    pub(crate) async fn take_due_snapshots(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !self.has_turn(&mut conn, &TURN).await? {
            return Ok(());
        }
        let beyond = snapshot_schedules::beyond(&mut conn, MOST).await?;
        let due = snapshot_schedules::due(&mut conn, MOST).await?;
        drop(conn);
        for (guest, snapshot) in beyond {
            told(guest, self.remove_scheduled(guest, snapshot).await);
        }
        for guest in due {
            told(guest, self.take_scheduled(guest).await);
        }
        Ok(())
    }
}
