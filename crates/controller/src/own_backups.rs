//! What the server tells of the backups of the controller that it takes: when one is due, that it is being taken, and
//! how it ended. What a backup is, and how it is taken, is the server's.

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_database::Db;
use corpus_domain::ControllerBackupId;

use crate::events;
use crate::store::controller_backups as backups;
pub use crate::store::controller_backups::Taken;

/// As much of a reason as is kept.
const LONGEST_REASON: usize = 1000;
/// One that failed is tried again after so long.
const AGAIN: Duration = Duration::from_mins(10);

/// Where backups of the controller are kept, for who looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnBackups {
    /// The place, in words.
    pub place: String,
    /// After how many hours one is taken by itself; none: when somebody asks.
    pub every_hours: Option<u16>,
}

/// Whether one is to be taken now.
pub async fn is_due(db: &Db, every_hours: Option<u16>) -> sqlx::Result<bool> {
    let every = every_hours.map(|hours| Duration::from_hours(hours.into()));
    backups::is_due(&mut *db.acquire().await?, every, AGAIN).await
}

/// Begins one. Only for who alone takes backups of this controller.
pub async fn begin(db: &Db) -> sqlx::Result<ControllerBackupId> {
    let mut tx = db.begin().await?;
    let id = backups::begin(&mut tx).await?;
    tx.commit().await?;
    Ok(id)
}

/// It was taken.
pub async fn done(db: &Db, id: ControllerBackupId, taken: &Taken) -> sqlx::Result<()> {
    backups::end(&mut *db.acquire().await?, id, Ok(taken)).await
}

/// It was not: operators are told, once a day.
pub async fn failed(db: &Db, id: ControllerBackupId, why: &str) -> sqlx::Result<()> {
    let why: String = why.chars().take(LONGEST_REASON).collect();
    let mut tx = db.begin().await?;
    backups::end(&mut tx, id, Err(&why)).await?;
    events::controller_backup_failed(&mut tx, &why).await?;
    tx.commit().await
}

/// This controller was brought back from one.
pub async fn restored(db: &Db, taken_at: DateTime<Utc>, from: &Taken) -> sqlx::Result<()> {
    let mut tx = db.begin().await?;
    backups::restored(&mut tx, taken_at, from).await?;
    tx.commit().await
}
