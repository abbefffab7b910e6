//! Backups of guests: who takes one, brings a guest back to one, or deletes it.

use corpus_api::backups::{
    BackupAccepted, BackupSchedule, Backups, GetBackupSchedule, ListBackups, ListProjectBackups, MOST_BACKUPS,
    ProjectBackup, ProjectBackups, RemoveBackup, RemoveProjectBackup, RestoreBackup, SetBackupSchedule, TakeBackup,
};
use corpus_api::jobs::JobAccepted;
use corpus_api::words::Label;
use corpus_api::{Cursor, Denied, Operation, Write};
use corpus_domain::{BackupEvery, BackupId, BackupState, Door, GuestId, GuestState, ProjectId, QuotaOf, UserId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::super::{after, lines, page};
use super::backup_files::may_read;
use super::backup_proofs::unproven;
use super::{is_settled, row};
use crate::guest_backups::not_kept;
use crate::job_errors::jobs_error;
use crate::sagas::{backup, backup_restore};
use crate::store::audit::{self, Author};
use crate::store::guests::{self, GuestRow};
use crate::store::{backup_proofs, backup_repositories, backup_schedules, backups, projects, quotas};
use crate::{Controller, changed};

/// What its cursors are for.
const LIST: &str = "project-backups";

impl Handle<ListBackups> for Controller {
    async fn handle(&self, permit: Permit<ListBackups>) -> Result<Backups> {
        let (id, who, in_project) = (permit.guest, permit.who(), permit.project()?);
        let project = Some(in_project);
        let mut conn = permit.connection().await?;
        let guest = guests::get(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        let open = projects::is_entered_by_developers(&mut conn, in_project).await?.unwrap_or_default();
        let items = backups::of_guest(&mut conn, id).await?;
        let proven = backup_proofs::proven(&mut conn, id).await?;
        let schedule = backup_schedules::of_guest(&mut conn, id).await?;
        Ok(Backups {
            guest: id,
            project: guest.project,
            environment: guest.environment,
            problem: self.services.settings.guest_backups.is_none().then(|| not_kept().to_string()),
            unproven: unproven(&schedule, proven, &items),
            proven,
            items,
            most: MOST_BACKUPS,
            at_once: guest.state == GuestState::Stopped || guest.backing.copies_at_once(),
            may_take: who.can::<TakeBackup>(project),
            may_change: who.can::<RestoreBackup>(project),
            may_read: may_read(&who, in_project, guest.environment, open),
            name: guest.name,
        })
    }
}

impl Handle<TakeBackup> for Controller {
    async fn handle(&self, mut change: Change<TakeBackup>) -> Result<Committed<TakeBackup>> {
        let (asked, who) = (change.operation(), change.who());
        let guest = held(&mut change, asked.guest).await?;
        let comment = asked.comment.as_ref().map(Label::as_str);
        let id = self.note_backup(change.transaction().await?, &guest, comment, Some(who.id)).await?;
        let job = self.queue(&mut change, backup::take(&guest, id)).await?;
        let detail = json!({ "backup": id, "comment": asked.comment });
        let entry = Entry::new("backup.take", guest.name.as_str()).id(guest.id.0).detail(detail);
        change.commit(entry, BackupAccepted { backup: id, job }).await
    }
}

impl Handle<RestoreBackup> for Controller {
    async fn handle(&self, mut change: Change<RestoreBackup>) -> Result<Committed<RestoreBackup>> {
        let asked = change.operation();
        let guest = held(&mut change, asked.guest).await?;
        if self.services.settings.guest_backups.is_none() {
            return Err(not_kept());
        }
        is_settled(&guest)?;
        let tx = change.transaction().await?;
        let state = backups::state(tx, (asked.backup, guest.id)).await?.ok_or(Denied::NotFound)?;
        if state != BackupState::Ready {
            return Err(busy(state));
        }
        let job = self.queue(&mut change, backup_restore::job(&guest, asked.backup)).await?;
        let entry = Entry::new("backup.restore", guest.name.as_str()).id(guest.id.0);
        change.commit(entry.detail(json!({ "backup": asked.backup })), JobAccepted { job }).await
    }
}

impl Handle<RemoveBackup> for Controller {
    async fn handle(&self, mut change: Change<RemoveBackup>) -> Result<Committed<RemoveBackup>> {
        let asked = change.operation();
        let guest = held(&mut change, asked.guest).await?;
        let (of, tx) = ((asked.backup, guest.id), change.transaction().await?);
        if !backups::removing(tx, of).await? {
            return Err(busy(backups::state(tx, of).await?.ok_or(Denied::NotFound)?));
        }
        let job = self.queue(&mut change, backup::remove(guest.project_id, Some(&guest), vec![asked.backup])).await?;
        let entry = Entry::new("backup.remove", guest.name.as_str()).id(guest.id.0);
        change.commit(entry.detail(json!({ "backup": asked.backup })), JobAccepted { job }).await
    }
}

impl Handle<ListProjectBackups> for Controller {
    async fn handle(&self, permit: Permit<ListProjectBackups>) -> Result<ProjectBackups> {
        let (limit, rows) = lines(permit.limit);
        let (project, beyond) = (permit.project()?, after(permit.cursor.as_ref(), LIST)?);
        let mut conn = permit.connection().await?;
        let taken = backup_repositories::size(&mut conn, project).await?;
        let check = backup_repositories::checked(&mut conn, project).await?;
        let found = backups::of_project(&mut conn, project, permit.gone, beyond, rows).await?;
        let (found, next) = page(found, limit, |(position, _)| Cursor::after(LIST, position));
        let may_change = permit.who().can::<RemoveProjectBackup>(Some(project));
        let open = projects::is_entered_by_developers(&mut conn, project).await?.unwrap_or_default();
        let judged = found
            .into_iter()
            .map(|(_, one)| ProjectBackup { may_read: may_read(&permit.who(), project, one.environment, open), ..one });
        Ok(ProjectBackups { items: judged.collect(), taken, check, may_change, next })
    }
}

impl Handle<RemoveProjectBackup> for Controller {
    async fn handle(&self, mut change: Change<RemoveProjectBackup>) -> Result<Committed<RemoveProjectBackup>> {
        let (asked, project) = (change.operation(), change.project()?);
        let tx = change.transaction().await?;
        let (guest, state, _) = backups::in_project(tx, (asked.backup, project)).await?.ok_or(Denied::NotFound)?;
        if !backups::removing(tx, (asked.backup, guest)).await? {
            return Err(busy(state));
        }
        let job = self.queue(&mut change, backup::remove(project, None, vec![asked.backup])).await?;
        let entry = Entry::new("backup.remove", asked.project.as_str()).detail(json!({ "backup": asked.backup }));
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Handle<GetBackupSchedule> for Controller {
    async fn handle(&self, permit: Permit<GetBackupSchedule>) -> Result<BackupSchedule> {
        Ok(backup_schedules::of_guest(&mut *permit.connection().await?, permit.guest).await?)
    }
}

impl Handle<SetBackupSchedule> for Controller {
    async fn handle(&self, mut change: Change<SetBackupSchedule>) -> Result<Committed<SetBackupSchedule>> {
        let asked = change.operation();
        let guest = held(&mut change, asked.guest).await?;
        let tx = change.transaction().await?;
        let was = backup_schedules::of_guest(tx, guest.id).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "backup.schedule", guest.id.0, told).await);
        }
        if asked.every != BackupEvery::Never && self.services.settings.guest_backups.is_none() {
            return Err(not_kept());
        }
        backup_schedules::set(tx, guest.id, (asked.every, asked.keep), asked.prove).await?;
        let now = backup_schedules::of_guest(tx, guest.id).await?;
        if now.version == was.version {
            return change.unchanged(now).await;
        }
        let what = |one: &BackupSchedule| json!({ "every": one.every, "keep": one.keep, "prove": one.prove });
        let entry = Entry::new("backup.schedule", guest.name.as_str()).id(guest.id.0);
        change.commit(entry.detail(json!({ "from": what(&was), "to": what(&now) })), now).await
    }
}

/// What a change of a schedule was, from what the audit tells of it.
fn told(detail: &Value) -> Option<String> {
    let (from, to) = (changed::read::<Value>(detail, "from")?, changed::read::<Value>(detail, "to")?);
    let every = |one| changed::read::<BackupEvery>(one, "every");
    let keep = |one| changed::read::<u64>(one, "keep");
    let proved = |one| changed::read::<bool>(one, "prove").unwrap_or_default();
    changed::parts([
        ("every", every(&from)?.to_string(), every(&to)?.to_string()),
        ("keep", keep(&from)?.to_string(), keep(&to)?.to_string()),
        ("prove", proved(&from).to_string(), proved(&to).to_string()),
    ])
}

pub(super) fn busy(state: BackupState) -> Error {
    Error::Conflict(format!("A job is on this backup: it is {state}. Try again when that is done."))
}

impl Controller {
    /// Takes the backup that is due of a guest, in the name of nobody; or keeps why none is taken.
    pub(crate) async fn take_scheduled_backup(&self, guest: GuestId) -> Result<()> {
        let mut tx = self.services.begin().await?;
        // Another server may have, or somebody have changed it.
        guests::hold(&mut tx, guest).await?;
        if !backup_schedules::hold_due(&mut tx, guest).await? {
            return Ok(());
        }
        let Some(guest) = guests::get(&mut tx, guest).await? else { return Ok(()) };
        match self.note_backup(&mut tx, &guest, None, None).await {
            Ok(id) => {
                backup_schedules::taken(&mut tx, guest.id).await?;
                let job = self.jobs.submit(&mut tx, backup::take(&guest, id)).await.map_err(jobs_error)?.id();
                let entry = Entry::new("backup.take", guest.name.as_str()).id(guest.id.0).of_project(guest.project_id);
                let entry = entry.detail(json!({ "backup": id, "job": job }));
                audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
            }
            Err(why @ Error::Conflict(_)) => {
                backup_schedules::not_taken(&mut tx, guest.id, &why.to_string()).await?;
            }
            Err(error) => return Err(error),
        }
        Ok(tx.commit().await?)
    }

    /// Deletes what is more than the schedules of a project's guests keep.
    pub(crate) async fn remove_scheduled_backups(&self, project: ProjectId, ids: Vec<BackupId>) -> Result<()> {
        let mut tx = self.services.begin().await?;
        let ids = backups::removing_all(&mut tx, &ids).await?;
        if ids.is_empty() {
            return Ok(());
        }
        self.jobs.submit(&mut tx, backup::remove(project, None, ids)).await.map_err(jobs_error)?;
        Ok(tx.commit().await?)
    }

    /// Notes a backup that is to be taken of a guest, if it may have one more.
    async fn note_backup(
        &self,
        tx: &mut PgConnection,
        guest: &GuestRow,
        comment: Option<&str>,
        by: Option<UserId>,
    ) -> Result<BackupId> {
        if self.services.settings.guest_backups.is_none() {
            return Err(not_kept());
        }
        is_settled(guest)?;
        if backups::count(tx, guest.id).await? >= i64::from(MOST_BACKUPS) {
            let message = format!("{} has {MOST_BACKUPS} backups already: delete one first.", guest.name);
            return Err(Error::Conflict(message));
        }
        if let Some(quota) = quotas::get(tx, guest.project_id).await?.filter(|quota| quota.backups.left == Some(0)) {
            let taken = QuotaOf::Backups.taken(quota.backups.used, quota.backups.limit);
            let message = format!(
                "Project {} has taken {taken}: delete some that are not needed any more, or ask an operator to raise its quota.",
                quota.project
            );
            return Err(Error::Conflict(message));
        }
        let id = BackupId(Uuid::now_v7());
        backups::insert(tx, id, guest, comment, by).await?;
        Ok(id)
    }
}

/// The guest, which stays as it is read until the change is over.
pub(super) async fn held<O: Operation<Kind = Write>>(change: &mut Change<O>, id: GuestId) -> Result<GuestRow> {
    guests::hold(change.transaction().await?, id).await?;
    row(change, id).await
}
