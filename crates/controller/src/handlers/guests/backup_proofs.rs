//! Backups that are tried: who has that done, which is tried by itself, and when nobody should rely on them.

use chrono::{TimeDelta, Utc};
use corpus_api::Denied;
use corpus_api::backups::{Backup, BackupSchedule, ProveBackup, ProvenRestore};
use corpus_api::jobs::JobAccepted;
use corpus_domain::{BackupId, BackupState, Door, GuestId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::backups::{busy, held};
use super::moves::{image, room_for};
use crate::Controller;
use crate::guest_backups::not_kept;
use crate::job_errors::jobs_error;
use crate::jobs::NewJob;
use crate::sagas::backup_prove;
use crate::store::audit::{self, Author};
use crate::store::guests::{self, GuestRow};
use crate::store::{backup_proofs, backup_schedules, backups, images};

/// How often a node is chosen anew when others take its room meanwhile.
const TRIES: usize = 5;
/// So long after one was proven the next is late, where that is done each week.
const LATE: TimeDelta = TimeDelta::days(15);

impl Handle<ProveBackup> for Controller {
    async fn handle(&self, mut change: Change<ProveBackup>) -> Result<Committed<ProveBackup>> {
        let asked = change.operation();
        for _ in 0..TRIES {
            let guest = held(&mut change, asked.guest).await?;
            let Some(job) = self.begin_proof(change.transaction().await?, &guest, asked.backup).await? else {
                change.start_over().await?;
                continue;
            };
            let job = self.queue(&mut change, job).await?;
            let entry = Entry::new("backup.prove", guest.name.as_str()).id(guest.id.0);
            return change.commit(entry.detail(json!({ "backup": asked.backup })), JobAccepted { job }).await;
        }
        Err(Error::Conflict("Many guests are being placed at once. Try again.".to_owned()))
    }
}

impl Controller {
    /// Notes that a backup is tried, and where; none where others took the room there in between.
    async fn begin_proof(
        &self,
        tx: &mut PgConnection,
        guest: &GuestRow,
        backup: BackupId,
    ) -> Result<Option<NewJob<backup_prove::Params>>> {
        if self.services.settings.guest_backups.is_none() {
            return Err(not_kept());
        }
        let state = backups::state(tx, (backup, guest.id)).await?.ok_or(Denied::NotFound)?;
        if state != BackupState::Ready {
            return Err(busy(state));
        }
        let room = room_for(tx, guest, None, None).await.map_err(|error| match error {
            // Nobody was asked for a node.
            Error::Field { .. } | Error::Fields(_) => Error::Conflict(error.to_string()),
            error => error,
        });
        let Some(node) = room? else { return Ok(None) };
        let image = image(tx, guest, node.id).await?;
        let id = GuestId(Uuid::now_v7());
        if !backup_proofs::begin(tx, (backup, id), guest, (node.id, &image)).await? {
            return Err(Error::Conflict(
                "A backup of this project is being tried already. Wait until that is over.".to_owned(),
            ));
        }
        let has_image = images::is_on(tx, node.id, &image).await?;
        let taken_at = backup_proofs::taken_at(tx, backup).await?;
        Ok(Some(backup_prove::job(guest, (backup, taken_at), id, (&node, has_image))))
    }

    /// Has the backup tried that is due for longest, in the name of nobody; or keeps why it can't be.
    pub(crate) async fn prove_due_backup(&self) -> Result<()> {
        let due = backup_schedules::to_prove(&mut *self.services.db.acquire().await?).await?;
        let Some(guest) = due else { return Ok(()) };
        let mut tx = self.services.begin().await?;
        // Another server may have, or somebody have changed it.
        guests::hold(&mut tx, guest).await?;
        if !backup_schedules::hold_to_prove(&mut tx, guest).await? {
            return Ok(());
        }
        let Some(row) = guests::get(&mut tx, guest).await? else { return Ok(()) };
        let Some(backup) = backup_proofs::latest(&mut tx, guest).await? else { return Ok(()) };
        match self.begin_proof(&mut tx, &row, backup).await {
            Ok(Some(job)) => {
                backup_schedules::proves(&mut tx, guest).await?;
                let job = self.jobs.submit(&mut tx, job).await.map_err(jobs_error)?.id();
                let entry = Entry::new("backup.prove", row.name.as_str()).id(guest.0).of_project(row.project_id);
                let entry = entry.detail(json!({ "backup": backup, "job": job }));
                audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
            }
            // The next look finds where there is room.
            Ok(None) => return Ok(()),
            Err(why @ Error::Conflict(_)) => {
                drop(tx);
                let mut tx = self.services.begin().await?;
                backup_schedules::not_proven(&mut tx, guest, &why.to_string()).await?;
                return Ok(tx.commit().await?);
            }
            Err(error) => return Err(error),
        }
        Ok(tx.commit().await?)
    }
}

/// Why nobody should rely on that a guest can be had back: what was tried last failed, or that is long ago although it
/// should be done each week.
pub(super) fn unproven(schedule: &BackupSchedule, proven: Option<ProvenRestore>, backups: &[Backup]) -> Option<String> {
    let tried = backups.iter().filter_map(|one| one.proof.as_ref().filter(|proof| proof.ended_at.is_some()));
    let last = tried.max_by_key(|proof| proof.ended_at);
    if let Some(last) = last.filter(|last| last.passed == Some(false)) {
        let told = last.told.as_deref().and_then(|told| told.lines().last());
        let why = told.unwrap_or("it could not be tried to its end; its job says why");
        return Some(format!("It could not be had back when that was tried last: {why}."));
    }
    let late = proven.is_some_and(|proven| proven.at < Utc::now() - LATE);
    (schedule.prove && late).then(|| match &schedule.prove_problem {
        Some(problem) => format!("It was not tried for more than two weeks: {problem}"),
        None => "It was not tried for more than two weeks.".to_owned(),
    })
}
