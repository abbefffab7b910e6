//! Snapshots that are taken before something is deployed, on guests where that is wanted: what a deployment did to data can
//! be taken back by them.
//!
//! A job for each takes it, which has the guest for itself: it begins when the deployments before it are over, and what is
//! deployed comes after it. Where one can't be taken nothing is deployed, since whoever wanted it relies on it. What was
//! broken on purpose, or goes back to an archive, is not held up by that.

use std::time::Duration;

use corpus_api::Principal;
use corpus_domain::{DeploymentId, GuestId, GuestName, JobId, JobState, SnapshotId};
use corpus_gate::audit::Entry;
use corpus_gate::{Error, Result};
use serde_json::json;
use sqlx::PgTransaction;

use super::limits;
use super::snapshots::note;
use crate::Controller;
use crate::job_errors::jobs_error;
use crate::jobs::JobsError;
use crate::sagas::snapshot;
use crate::store::snapshots::What;
use crate::store::{audit, guests, snapshot_schedules};

/// A snapshot that is being taken before a deployment.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// Its id.
    pub snapshot: SnapshotId,
    /// Of which guest.
    pub guest: GuestName,
    /// The job that takes it.
    job: JobId,
}

impl Controller {
    /// Queues the snapshots that are wanted before something is deployed on these guests, in the name of who deploys.
    pub(crate) async fn keep_before(
        &self,
        tx: &mut PgTransaction<'_>,
        guests: &[GuestId],
        deployment: DeploymentId,
        who: &Principal,
    ) -> Result<Vec<Kept>> {
        let mut kept = Vec::new();
        for guest in snapshot_schedules::before_deployments(tx, guests).await? {
            let held = limits::hold(tx, guest).await?;
            let noted = note(tx, &held, What::Before(deployment, who.id), who.ops).await;
            let (guest, _) = held;
            let snapshot = noted.map_err(|error| refused(&guest.name, error))?;
            let job = snapshot::take(&guest, snapshot).created_by(who.id);
            let job = self.jobs.submit(tx, job).await.map_err(jobs_error)?.id();
            let detail = json!({ "snapshot": snapshot, "deployment": deployment, "job": job });
            let entry = Entry::new("snapshot.take", guest.name.as_str()).id(guest.id.0).of_project(guest.project_id);
            audit::write(tx, who, entry.detail(detail)).await?;
            kept.push(Kept { snapshot, guest: guest.name, job });
        }
        Ok(kept)
    }

    /// Waits until they are there; the error says of which guest there is none, and why.
    pub(crate) async fn are_kept(&self, kept: &[Kept], at_most: Duration) -> Result<()> {
        for Kept { guest, job, .. } in kept {
            self.jobs.wait(*job, at_most).await.map_err(jobs_error)?;
            let row = self.jobs.row(*job).await.map_err(jobs_error)?;
            let why = match row.state {
                JobState::Done => continue,
                state if state.is_over() => {
                    row.error.map_or_else(|| format!("its job is {state}."), |error| format!("its job says: {error}."))
                }
                _ => "it is not there yet.".to_owned(),
            };
            return Err(refused(guest, Error::Conflict(why)));
        }
        Ok(())
    }

    /// Nobody waits for these any more: what is not there yet is not taken.
    pub(crate) async fn let_go(&self, kept: &[Kept], who: &Principal) -> Result<()> {
        for Kept { job, .. } in kept {
            let mut tx = self.services.begin().await?;
            match self.jobs.cancel(&mut tx, *job, Some(who.id)).await {
                Ok(JobState::Waiting) => guests::left_by(&mut tx, *job).await?,
                // It is over, or whoever runs it undoes it.
                Ok(_) | Err(JobsError::WrongState { .. }) => {}
                Err(error) => return Err(jobs_error(error)),
            }
            tx.commit().await?;
        }
        Ok(())
    }
}

/// What the reason is about, and what else can be done.
fn refused(guest: &GuestName, error: Error) -> Error {
    let why = match &error {
        Error::Conflict(_) | Error::Field { .. } | Error::Fields(_) => error.to_string(),
        _ => return error,
    };
    Error::Conflict(format!(
        "A snapshot of {guest} is wanted before each deployment, and none can be taken: {why} A maintainer can end that on \
         the page of its snapshots."
    ))
}
