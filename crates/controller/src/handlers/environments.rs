//! Environments of projects: to see and configure them. [`set_up`] makes guests theirs, [`remove`] takes them.

mod remove;
mod set_up;

use corpus_api::environments::{
    EnvironmentSettings, EnvironmentSummary, GetEnvironment, GetEnvironmentSettings, ProjectEnvironment,
    SetEnvironmentSettings,
};
use corpus_api::jobs::JobAccepted;
use corpus_api::principal::to_deploy;
use corpus_api::words::Text;
use corpus_api::{Denied, Principal, Role};
use corpus_domain::{GuestId, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use sqlx::PgTransaction;

use crate::readiness::is_ready;
use crate::sagas::environment_configure;
use crate::store::{environments, environments_shown};
use crate::{Controller, project_settings};

/// Fills in what who asks may do with an environment.
pub(super) fn permitted(environment: &mut EnvironmentSummary, who: &Principal, project: ProjectId) {
    environment.may_deploy = who.judge(to_deploy(environment.environment), Some(project)).is_ok();
    environment.may_change = who.judge(Role::Maintainer, Some(project)).is_ok();
}

impl Handle<GetEnvironment> for Controller {
    async fn handle(&self, permit: Permit<GetEnvironment>) -> Result<ProjectEnvironment> {
        let (project, which) = (permit.project()?, permit.environment);
        let git_url = self.services.settings.git_url.as_deref();
        let mut conn = permit.connection().await?;
        let found = environments_shown::summaries(&mut conn, project, Some(which), git_url).await?;
        let mut summary = found.into_iter().next().ok_or(Denied::NotFound)?;
        permitted(&mut summary, &permit.who(), project);
        let (archives, configuration) = environments_shown::told(&mut conn, project, which).await?;
        Ok(ProjectEnvironment { summary, archives, configuration })
    }
}

impl Handle<GetEnvironmentSettings> for Controller {
    async fn handle(&self, permit: Permit<GetEnvironmentSettings>) -> Result<EnvironmentSettings> {
        let mut conn = permit.connection().await?;
        let found = environments_shown::settings(&mut conn, permit.project()?, permit.environment).await?;
        Ok(found.ok_or(Denied::NotFound)?)
    }
}

impl Handle<SetEnvironmentSettings> for Controller {
    async fn handle(&self, mut change: Change<SetEnvironmentSettings>) -> Result<Committed<SetEnvironmentSettings>> {
        let asked = change.operation();
        let (project, which) = (change.project()?, asked.environment);
        let settings = project_settings::parse(asked.settings.as_ref().map_or("", Text::as_str))
            .map_err(|message| Error::field("settings", message))?;
        let tx = change.transaction().await?;
        environments_shown::hold(tx, project, which).await?;
        let on = environments::get(tx, project, which).await?.ok_or(Denied::NotFound)?;
        is_ready(&on)?;
        let now = environments_shown::settings(tx, project, which).await?.ok_or(Denied::NotFound)?;
        if now.version != asked.version {
            return Err(Error::Changed);
        }
        environments::set_settings(tx, project, which, &settings).await?;
        let followers = environments::followers(tx, project, which).await?;
        let job = self.queue(&mut change, environment_configure::job(&on)).await?;
        for follower in followers {
            self.queue(&mut change, environment_configure::job(&follower)).await?;
        }
        let detail = json!({ "environment": which, "settings": settings });
        let entry = Entry::new("environment.configure", on.name.as_str()).id(project.0).detail(detail);
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Controller {
    /// Queues the job that tells a guest what its project should know now, if an environment
    /// stands on it: behind the jobs that are on the guest, so it reads what they left.
    pub(crate) async fn environment_follows(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        guest: GuestId,
    ) -> Result<()> {
        if let Some(placement) = environments::on_guest(tx, guest).await? {
            self.submit(tx, principal, environment_configure::job(&placement)).await?;
        }
        Ok(())
    }
}
