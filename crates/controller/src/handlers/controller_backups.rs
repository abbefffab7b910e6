//! Backups of the controller itself, as operators see them and ask for one. A server takes it: what it needs for that
//! no operation knows.

use chrono::Utc;
use corpus_api::controller_backups::{
    ControllerBackup, ControllerBackups, LISTED_BACKUPS, ListControllerBackups, TakeControllerBackup,
};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};

use crate::Controller;
use crate::services::internal;
use crate::store::controller_backups as backups;

/// Hours after which the newest is old where none is taken by itself.
const A_WEEK: u16 = 7 * 24;

impl Handle<ListControllerBackups> for Controller {
    async fn handle(&self, permit: Permit<ListControllerBackups>) -> Result<ControllerBackups> {
        let kept = self.services.settings.own_backups.as_ref();
        let every_hours = kept.and_then(|kept| kept.every_hours);
        let mut conn = permit.connection().await?;
        let newest_at = backups::newest_at(&mut conn).await?;
        let longest = every_hours.map_or(A_WEEK, |hours| hours.saturating_mul(2));
        let is_old = newest_at.is_none_or(|at| Utc::now() - at > chrono::Duration::hours(longest.into()));
        Ok(ControllerBackups {
            place: kept.map(|kept| kept.place.clone()),
            every_hours,
            newest_at,
            is_old,
            restored: backups::last_restore(&mut conn).await?,
            items: backups::last(&mut conn, LISTED_BACKUPS).await?,
        })
    }
}

impl Handle<TakeControllerBackup> for Controller {
    async fn handle(&self, mut change: Change<TakeControllerBackup>) -> Result<Committed<TakeControllerBackup>> {
        if self.services.settings.own_backups.is_none() {
            let message = "The configuration has no section [backup], which says where backups are kept.";
            return Err(Error::Conflict(message.to_owned()));
        }
        let by = change.who().id;
        let tx = change.transaction().await?;
        let Some(id) = backups::want(tx, Some(by)).await? else {
            return Err(Error::Conflict("A backup waits already, or is being taken.".to_owned()));
        };
        let found: Option<ControllerBackup> = backups::last(tx, 1).await?.into_iter().find(|one| one.id == id);
        let wanted =
            found.ok_or_else(|| internal("a backup that was wanted is not there", sqlx::Error::RowNotFound))?;
        change.commit(Entry::new("controller_backup.take", "controller").id(id.0), wanted).await
    }
}
