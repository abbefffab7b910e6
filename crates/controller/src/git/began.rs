//! Deployments that begin on their guest, by a push: nobody ordered them here.

use corpus_domain::{DeploymentId, Door, GuestId, JobId, Trigger, UserId};
use serde_json::json;
use sqlx::PgTransaction;

use crate::events;
use crate::job_errors::jobs_error;
use crate::jobs::{Jobs, NewJob};
use crate::sagas::deploy;
use crate::store::audit::{self, Author};
use crate::store::deployments::NewDeployment;
use crate::store::environments::Placement;
use crate::store::{deployments, environments, users};
use crate::{Controller, Result};
use corpus_api::Denied;

impl Controller {
    /// A deployment that began on its guest without an order of ours, by a push: its row is made
    /// if it is new, and the job that follows it. Repeatable; one whose job ended before the
    /// guest had told its end gets another job.
    pub async fn deployment_began(
        &self,
        by: Option<UserId>,
        guest: GuestId,
        id: DeploymentId,
        trigger: Trigger,
    ) -> Result<JobId> {
        let mut tx = self.services.begin().await?;
        let placement = environments::on_guest(&mut tx, guest).await?.ok_or(Denied::NotFound)?;
        let (project, environment) = (placement.project, placement.environment);
        let member = match by {
            Some(by) => users::principal(&mut tx, by).await?,
            None => None,
        };
        let login = member.as_ref().map_or("", |member| member.login.as_str());
        let new = NewDeployment { id, on: &placement, trigger, ordered: None, by_id: by, by: login, leader: None };
        if let Some(number) = deployments::insert(&mut tx, &new).await? {
            let detail = json!({ "environment": environment, "number": number, "trigger": trigger, "deployment": id });
            let entry = audit::Entry::new("deployment.begin", placement.name.as_str()).id(project.0);
            // What was found on a guest is its own word: no push of ours is known that began it.
            let author = match &member {
                Some(member) => Author::new(Some(member.id), login, Door::Git),
                None => Author::new(by, placement.guest_name.as_str(), Door::Corpus),
            };
            audit::write(&mut tx, author, entry.of_project(project).detail(detail)).await?;
            events::deployment_began(&mut tx, id).await?;
        } else if let Some(member) = &member {
            deployments::set_pusher(&mut tx, id, member.id, login).await?;
        }
        let job = self.follow(&mut tx, id, &placement, by).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// The job that sees the deployment to its end: the one that is on it, or a new one.
    async fn follow(
        &self,
        tx: &mut PgTransaction<'_>,
        id: DeploymentId,
        placement: &Placement,
        by: Option<UserId>,
    ) -> Result<JobId> {
        let progress = deployments::hold(tx, id).await?.ok_or(Denied::NotFound)?;
        if (progress.project, progress.guest) != (placement.project, placement.guest) {
            return Err(Denied::NotFound.into());
        }
        if let Some(job) = progress.job
            && (progress.is_final || !Jobs::row_on(tx, job).await.map_err(jobs_error)?.state.is_over())
        {
            return Ok(job);
        }
        let followers = if placement.is_leader() {
            environments::followers(tx, placement.project, placement.environment).await?
        } else {
            Vec::new()
        };
        let mut new: NewJob<_> = deploy::job(id, progress.number, placement, &followers, Vec::new());
        if let Some(by) = by {
            new = new.created_by(by);
        }
        let job = self.jobs.submit(tx, new).await.map_err(jobs_error)?.id();
        deployments::set_job(tx, id, job).await?;
        Ok(job)
    }
}
