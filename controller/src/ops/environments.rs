//! Environments of projects: to set up, configure and remove them.

use corpus_domain::{Environment, EnvironmentState, GuestId, GuestState, JobId, ProjectId};
use serde_json::json;
use sqlx::PgTransaction;

use super::projects::audit_project;
use crate::authz::{Denied, Operation, Principal};
use crate::project_settings;
use crate::sagas::{environment_configure, environment_remove, environment_set_up};
use crate::store::environments::{self, Stands};
use crate::store::guests;
use crate::views::GuestView;
use crate::{Controller, Error, Result};

impl Controller {
    /// Makes a running guest of the project and environment the one that is pushed to.
    pub async fn set_up_environment(
        &self,
        principal: &Principal,
        project: ProjectId,
        environment: Environment,
        guest: GuestId,
    ) -> Result<JobId> {
        let _permit = principal.permit_in(Operation::EnvironmentSetUp, project)?;
        let mut tx = self.services.db.begin().await?;
        guests::hold(&mut tx, guest).await?;
        let row = guests::get(&mut tx, guest).await?.filter(|row| row.project_id == project);
        let row = row.ok_or_else(|| Error::field("guest", "The project has no such guest."))?;
        fits(&row, environment)?;
        environments::insert(&mut tx, project, environment, guest, principal.id)
            .await
            .map_err(|error| taken(error, &row, environment))?;
        let detail = json!({ "environment": environment, "guest": row.name });
        audit_project(&mut tx, principal, "environment.set_up", project, &row.project, detail).await?;
        let stands = environments::get(&mut tx, project, environment).await?.ok_or(Denied::NotFound)?;
        let job = self.submit(&mut tx, principal, environment_set_up::job(&stands)).await?;
        tx.commit().await?;
        Ok(job)
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
        let mut tx = self.services.db.begin().await?;
        let stands = environments::get(&mut tx, project, environment).await?.ok_or(Denied::NotFound)?;
        if !matches!(stands.guest_state, GuestState::Running | GuestState::Failed) {
            return Err(Error::Conflict(format!(
                "{} is {}; start it first, so that the project can be taken from it.",
                stands.guest_name, stands.guest_state
            )));
        }
        move_to(&mut tx, &stands, &[EnvironmentState::Ready, EnvironmentState::Failed], EnvironmentState::Leaving)
            .await?;
        let detail = json!({ "environment": environment, "guest": stands.guest_name, "with_data": with_data });
        audit_project(&mut tx, principal, "environment.remove", project, &stands.name, detail).await?;
        let job = self.submit(&mut tx, principal, environment_remove::job(&stands, with_data)).await?;
        tx.commit().await?;
        Ok(job)
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
        let mut tx = self.services.db.begin().await?;
        let stands = environments::get(&mut tx, project, environment).await?.ok_or(Denied::NotFound)?;
        is_ready(&stands)?;
        environments::set_settings(&mut tx, project, environment, &settings).await?;
        let detail = json!({ "environment": environment, "settings": settings });
        audit_project(&mut tx, principal, "environment.configure", project, &stands.name, detail).await?;
        let job = self.submit(&mut tx, principal, environment_configure::job(&stands)).await?;
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
    if environments::set_state(tx, stands.project, stands.environment, from, to, None).await? {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "{}'s {} is {} now; this can't be done in that state.",
        stands.name, stands.environment, stands.state
    )))
}
