//! Notes what is in the storage of guests, so that it can be told when it will be full. One server at a time does.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::turns::Turn;
use crate::store::guest_storage;
use crate::{Controller, Result};

/// What counts is the last number of a day.
const TURN: Turn = Turn {
    lease: "storage",
    every: Duration::from_mins(20),
    lasts: Duration::from_mins(50),
    failed: "the storage of guests could not be noted",
};

impl Controller {
    /// Does so until `stop`.
    pub(super) async fn note_storage(self, stop: CancellationToken) {
        self.take_turns(&TURN, stop, |it| async move { it.note_storage_now().await }).await;
    }

    /// Does so if it is this server's turn.
    pub(crate) async fn note_storage_now(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !self.has_turn(&mut conn, &TURN).await? {
            return Ok(());
        }
        guest_storage::note(&mut conn).await?;
        Ok(guest_storage::forget(&mut conn).await?)
    }
}
