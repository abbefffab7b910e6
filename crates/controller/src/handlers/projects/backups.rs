//! The repository of a project's backups: who has it checked, and who is told what opens it.

use corpus_api::backups::{BackupKeyRevealed, CheckBackups, RevealBackupKey};
use corpus_api::jobs::JobAccepted;
use corpus_domain::{Door, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use secrecy::ExposeSecret;
use serde_json::json;
use sqlx::PgConnection;

use crate::Controller;
use crate::guest_backups::not_kept;
use crate::job_errors::jobs_error;
use crate::sagas::backup_check;
use crate::store::audit::{self, Author};
use crate::store::{backup_repositories, projects};

impl Handle<CheckBackups> for Controller {
    async fn handle(&self, mut change: Change<CheckBackups>) -> Result<Committed<CheckBackups>> {
        let (asked, project) = (change.operation(), change.project()?);
        self.require_backups(change.transaction().await?, project).await?;
        let job = self.queue(&mut change, backup_check::job(project, &asked.project)).await?;
        let entry = Entry::new("backup.check", asked.project.as_str());
        change.commit(entry, JobAccepted { job }).await
    }
}

/// Who reveals a key is in the audit before it is answered.
impl Handle<RevealBackupKey> for Controller {
    async fn handle(&self, mut change: Change<RevealBackupKey>) -> Result<Committed<RevealBackupKey>> {
        let (asked, project) = (change.operation(), change.project()?);
        let tx = change.transaction().await?;
        self.require_backups(&mut *tx, project).await?;
        let password = self.services.backup_password(&mut *tx, project).await?.expose_secret().to_owned();
        let entry = Entry::new("backup.reveal_key", asked.project.as_str());
        let answer = BackupKeyRevealed { project: asked.project.clone(), repository: project, password };
        change.commit(entry, answer).await
    }
}

impl Controller {
    async fn require_backups(&self, conn: &mut PgConnection, project: ProjectId) -> Result<()> {
        if self.services.settings.guest_backups.is_none() {
            return Err(not_kept());
        }
        if !backup_repositories::is_there(conn, project).await? {
            return Err(Error::Conflict("No backup of the project was taken yet.".to_owned()));
        }
        Ok(())
    }

    /// Has the backups checked that are due for longest, in the name of nobody.
    pub(crate) async fn check_due_backups(&self) -> Result<()> {
        let mut tx = self.services.begin().await?;
        let Some(project) = backup_repositories::take_due(&mut tx).await? else { return Ok(()) };
        let Some(name) = projects::name(&mut tx, project).await? else { return Ok(()) };
        let job = self.jobs.submit(&mut tx, backup_check::job(project, &name)).await.map_err(jobs_error)?.id();
        let entry = Entry::new("backup.check", name.as_str()).of_project(project).detail(json!({ "job": job }));
        audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
        Ok(tx.commit().await?)
    }
}
