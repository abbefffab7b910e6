//! Environments of projects: to set up, configure and remove them.

use corpus_domain::{DeploymentId, Environment, EnvironmentState, GuestId, GuestState, JobId, ProjectId, Trigger};
use corpus_protocol::Source;
use serde_json::json;
use sqlx::PgTransaction;
use uuid::Uuid;

use super::deployments::runs;
use super::projects::audit_project;
use crate::authz::{Denied, Operation, Principal};
use crate::project_settings;
use crate::sagas::{deploy, environment_configure, environment_remove, environment_set_up};
use crate::store::deployments::{self, NewDeployment, Ordered};
use crate::store::environments::{self, Of, Stands};
use crate::store::guests;
use crate::views::GuestView;
use crate::{Controller, Error, Result};

impl Controller {
    /// Makes a running guest one of the environment's: the first is pushed to, each other one
    /// deploys what the first does, beginning with what is live.
    pub async fn set_up_environment(
        &self,
        principal: &Principal,
        project: ProjectId,
        environment: Environment,
        guest: GuestId,
    ) -> Result<JobId> {
        let _permit = principal.permit_in(Operation::EnvironmentSetUp, project)?;
        let mut tx = self.services.begin().await?;
        guests::hold(&mut tx, guest).await?;
        let row = guests::get(&mut tx, guest).await?.filter(|row| row.project_id == project);
        let row = row.ok_or_else(|| Error::field("guest", "The project has no such guest."))?;
        fits(&row, environment)?;
        if environments::on_guest(&mut tx, guest).await?.is_some() {
            return Err(Error::field("guest", format!("An environment stands on {} already.", row.name)));
        }
        let first = environments::get(&mut tx, project, environment).await?;
        let inserted = match &first {
            None => environments::insert(&mut tx, project, environment, guest, principal.id).await,
            Some(first) => {
                is_ready(first)?;
                runs(first)?;
                environments::insert_other(&mut tx, project, environment, guest, principal.id).await
            }
        };
        inserted.map_err(|error| taken(error, &row, environment))?;
        let detail = json!({ "environment": environment, "guest": row.name, "first": first.is_none() });
        audit_project(&mut tx, principal, "environment.set_up", project, &row.project, detail).await?;
        let stands = environments::on_guest(&mut tx, guest).await?.ok_or(Denied::NotFound)?;
        let job = self.submit(&mut tx, principal, environment_set_up::job(&stands)).await?;
        if let Some(first) = first {
            self.join(&mut tx, principal, &first, &stands).await?;
        }
        tx.commit().await?;
        Ok(job)
    }

    /// Behind the job that sets another guest up: the first one is told of it, and what is live there comes to it.
    async fn join(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        first: &Stands,
        other: &Stands,
    ) -> Result<()> {
        self.submit(tx, principal, environment_configure::job(first)).await?;
        let Some(live) = &first.live else { return Ok(()) };
        // What was deployed by hand on the guest, and is not known here yet, comes with the next deployment.
        let Some(leader) = deployments::hold(tx, live.deployment).await? else { return Ok(()) };
        let source = Source::Release { commit: live.commit.clone(), pillar: live.pillar.clone() };
        let id = DeploymentId(Uuid::now_v7());
        let new = NewDeployment {
            id,
            on: other,
            trigger: Trigger::Hand,
            ordered: Some(&Ordered { source, only: Vec::new() }),
            by_id: Some(principal.id),
            by: principal.login.as_str(),
            leader: Some((live.deployment, leader.number)),
        };
        deployments::insert(tx, &new).await?;
        let job = self.submit(tx, principal, deploy::job(id, leader.number, other, &[])).await?;
        deployments::set_job(tx, id, job).await?;
        Ok(())
    }

    /// Takes the project from its guest; its data stays unless it is to go too. A guest that is
    /// gone has nothing left to take.
    pub async fn remove_environment(
        &self,
        principal: &Principal,
        project: ProjectId,
        environment: Environment,
        with_data: bool,
    ) -> Result<JobId> {
        let _permit = principal.permit_in(Operation::EnvironmentRemove, project)?;
        let mut tx = self.services.begin().await?;
        let stands = environments::get(&mut tx, project, environment).await?.ok_or(Denied::NotFound)?;
        let others = environments::list(&mut tx, Of::Others(project, environment)).await?;
        if !others.is_empty() {
            let names: Vec<_> = others.iter().map(|other| other.guest_name.as_str()).collect();
            return Err(Error::Conflict(format!("Take {} from the environment first.", names.join(", "))));
        }
        let job = self.leave(&mut tx, principal, &stands, with_data).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Takes a guest other than the first from an environment.
    pub async fn remove_environment_guest(
        &self,
        principal: &Principal,
        project: ProjectId,
        environment: Environment,
        guest: GuestId,
        with_data: bool,
    ) -> Result<JobId> {
        let _permit = principal.permit_in(Operation::EnvironmentRemove, project)?;
        let mut tx = self.services.begin().await?;
        let stands = environments::on_guest(&mut tx, guest).await?;
        let stands = stands.filter(|on| (on.project, on.environment, on.is_first) == (project, environment, false));
        let stands = stands.ok_or(Denied::NotFound)?;
        let job = self.leave(&mut tx, principal, &stands, with_data).await?;
        if let Some(first) = environments::get(&mut tx, project, environment).await? {
            self.submit(&mut tx, principal, environment_configure::job(&first)).await?;
        }
        tx.commit().await?;
        Ok(job)
    }

    async fn leave(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        stands: &Stands,
        with_data: bool,
    ) -> Result<JobId> {
        if !matches!(stands.guest_state, GuestState::Running | GuestState::Failed) {
            return Err(Error::Conflict(format!(
                "{} is {}; start it first, so that the project can be taken from it.",
                stands.guest_name, stands.guest_state
            )));
        }
        let from = [EnvironmentState::Ready, EnvironmentState::Failed];
        move_to(tx, stands, &from, EnvironmentState::Leaving).await?;
        let detail = json!({ "environment": stands.environment, "guest": stands.guest_name, "with_data": with_data });
        audit_project(tx, principal, "environment.remove", stands.project, &stands.name, detail).await?;
        self.submit(tx, principal, environment_remove::job(stands, with_data)).await
    }

    /// Sets what the environment's configuration overrides here, as a YAML or JSON mapping.
    pub async fn set_settings(
        &self,
        principal: &Principal,
        project: ProjectId,
        environment: Environment,
        text: &str,
    ) -> Result<JobId> {
        let _permit = principal.permit_in(Operation::EnvironmentConfigure, project)?;
        let settings = project_settings::parse(text).map_err(|message| Error::field("settings", message))?;
        let mut tx = self.services.begin().await?;
        let stands = environments::get(&mut tx, project, environment).await?.ok_or(Denied::NotFound)?;
        is_ready(&stands)?;
        environments::set_settings(&mut tx, project, environment, &settings).await?;
        let detail = json!({ "environment": environment, "settings": settings });
        audit_project(&mut tx, principal, "environment.configure", project, &stands.name, detail).await?;
        let job = self.submit(&mut tx, principal, environment_configure::job(&stands)).await?;
        for other in environments::others(&mut tx, project, environment).await? {
            self.submit(&mut tx, principal, environment_configure::job(&other)).await?;
        }
        tx.commit().await?;
        Ok(job)
    }

    /// Queues the job that tells a guest what its project should know now, if an environment
    /// stands on it: behind the jobs that are on the guest, so it reads what they left.
    pub(super) async fn environment_follows(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        guest: GuestId,
    ) -> Result<()> {
        if let Some(stands) = environments::on_guest(tx, guest).await? {
            self.submit(tx, principal, environment_configure::job(&stands)).await?;
        }
        Ok(())
    }
}

/// An environment that can be worked with.
pub(super) fn is_ready(stands: &Stands) -> Result<()> {
    if stands.state == EnvironmentState::Ready {
        return Ok(());
    }
    let (name, environment, state) = (&stands.name, stands.environment, stands.state);
    Err(Error::Conflict(match state {
        EnvironmentState::SettingUp => format!("{name}'s {environment} is still being set up; try again in a moment."),
        EnvironmentState::Leaving => format!("{name}'s {environment} is being removed."),
        _ => format!("{name}'s {environment} is {state}; remove it and set it up again."),
    }))
}

fn fits(guest: &GuestView, environment: Environment) -> Result<()> {
    if guest.environment != environment {
        return Err(Error::field("guest", format!("{} is a guest of {}.", guest.name, guest.environment)));
    }
    if guest.state != GuestState::Running {
        return Err(Error::field("guest", format!("{} is {}; it must run.", guest.name, guest.state)));
    }
    Ok(())
}

/// Which rule of the database was broken.
fn taken(error: sqlx::Error, guest: &GuestView, environment: Environment) -> Error {
    let rule = match &error {
        sqlx::Error::Database(inner) => inner.constraint().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    match rule.as_str() {
        "environments_guest" => {
            Error::taken(error, "guest", format!("An environment stands on {} already.", guest.name))
        }
        _ => Error::taken(error, "environment", format!("{} has its {environment} already.", guest.project)),
    }
}

async fn move_to(
    tx: &mut PgTransaction<'_>,
    stands: &Stands,
    from: &[EnvironmentState],
    to: EnvironmentState,
) -> Result<()> {
    if environments::set_state(tx, stands.guest, from, to, None).await? {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "{}'s {} is {} now; this can't be done in that state.",
        stands.name, stands.environment, stands.state
    )))
}
