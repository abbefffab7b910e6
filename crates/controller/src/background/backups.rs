//! Backups that are due by the schedules of guests or are to be tried, and those that are more than these keep. One server at a time looks
//! for them; each guest is held before anything is done, so two that think it is their turn take one.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::turns::Turn;
use crate::store::backup_schedules;
use crate::{Controller, Result};

/// When it is looked for them.
const TURN: Turn = Turn {
    lease: "backups",
    every: Duration::from_mins(1),
    lasts: Duration::from_mins(3),
    failed: "backups that are due could not be taken",
};
/// How many are deleted at a look.
const MOST: i64 = 200;

impl Controller {
    /// Keeps to the schedules until `stop`.
    pub(super) async fn keep_to_backup_schedules(self, stop: CancellationToken) {
        if self.services.settings.guest_backups.is_none() {
            return;
        }
        self.take_turns(&TURN, stop, |it| async move { it.take_due_backups().await }).await;
    }

    /// Takes those that are due now and deletes what is too much, if it is this server's turn.
    pub(crate) async fn take_due_backups(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !self.has_turn(&mut conn, &TURN).await? {
            return Ok(());
        }
        let beyond = backup_schedules::beyond(&mut conn, MOST).await?;
        let due = backup_schedules::due(&mut conn).await?;
        drop(conn);
        if let Err(error) = self.check_due_backups().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "backups that are due could not be checked");
        }
        if let Err(error) = self.prove_due_backup().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "a backup that is due could not be tried");
        }
        // What fails for one is no reason to forget the others.
        for (project, ids) in beyond {
            if let Err(error) = self.remove_scheduled_backups(project, ids).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%project, error, "old backups of a project could not be deleted");
            }
        }
        for guest in due {
            if let Err(error) = self.take_scheduled_backup(guest).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%guest, error, "the schedule of a guest's backups could not be kept to");
            }
        }
        Ok(())
    }
}
