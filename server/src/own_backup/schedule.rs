//! Takes backups of the controller when it is time, or an operator asks; of several servers one does.

use std::sync::Arc;
use std::time::Duration;

use corpus_controller::own_backups;
use tokio_util::sync::CancellationToken;

use super::{OwnBackupError, Result, take};
use crate::config::Settings;
use crate::database::Database;

/// How often it is looked whether one is due.
const INTERVAL: Duration = Duration::from_secs(15);

/// Looks until `stop`.
pub async fn keep(settings: Arc<Settings>, database: Database, stop: CancellationToken) {
    let Some(backup) = settings.backup.as_ref() else { return };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
        match look(&settings, backup.every_hours, &database).await {
            // Another server takes it.
            Ok(()) | Err(OwnBackupError::Busy) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "no backup of this controller could be taken");
            }
        }
    }
}

async fn look(settings: &Settings, every_hours: Option<u16>, database: &Database) -> Result<()> {
    if own_backups::is_due(&database.db, every_hours).await? {
        let taken = take(settings, database).await?;
        let one = &taken.saved.snapshot;
        tracing::info!(snapshot = %one.id, bytes = one.bytes, added = taken.saved.added_bytes, "a backup of this controller was taken");
    }
    Ok(())
}
