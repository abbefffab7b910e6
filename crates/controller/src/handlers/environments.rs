//! Environments of projects: to see and configure them. [`set_up`] makes guests theirs, [`remove`] takes them.

mod balance;
mod remove;
mod set_up;

use corpus_api::environments::{
    EnvironmentSettings, EnvironmentSummary, GetEnvironment, GetEnvironmentSettings, ProjectEnvironment,
    SetEnvironmentSettings,
};
use corpus_api::jobs::JobAccepted;
use corpus_api::principal::to_deploy;
use corpus_api::words::Text;
use corpus_api::{Denied, Principal, Role, Version};
use corpus_domain::{GuestId, NodeId, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use corpus_protocol::Mapping;
use serde_json::json;
use sqlx::PgTransaction;

use crate::readiness::is_ready;
use crate::sagas::environment_configure;
use crate::store::undoes::{About, NewUndo, Reverse};
use crate::store::{environments, environments_shown, project_end, undoes};
use crate::{Controller, changed, project_settings};

/// Fills in what who asks may do with an environment.
pub(super) fn permitted(environment: &mut EnvironmentSummary, who: &Principal, project: ProjectId) {
    environment.may_deploy = who.judge(to_deploy(environment.environment), Some(project)).is_ok();
    environment.may_change = who.judge(Role::Maintainer, Some(project)).is_ok();
}

/// The nodes of its guests.
pub(super) fn nodes(environment: &EnvironmentSummary) -> impl Iterator<Item = NodeId> {
    std::iter::once(&environment.leader).chain(&environment.followers).map(|guest| guest.node)
}

impl Handle<GetEnvironment> for Controller {
    async fn handle(&self, permit: Permit<GetEnvironment>) -> Result<ProjectEnvironment> {
        let (project, which) = (permit.project()?, permit.environment);
        let git_url = self.services.settings.git_url.as_deref();
        let mut conn = permit.connection().await?;
        let found = environments_shown::summaries(&mut conn, project, Some(which), git_url).await?;
        let (mut summary, archives) = found.into_iter().next().ok_or(Denied::NotFound)?;
        permitted(&mut summary, &permit.who(), project);
        if project_end::leaving(&mut conn, project).await?.is_some() {
            (summary.may_deploy, summary.may_change) = (false, false);
        }
        self.services.looked_at.note_nodes(nodes(&summary));
        let configuration = environments_shown::configuration(&mut conn, project, which).await?;
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
    async fn handle(&self, change: Change<SetEnvironmentSettings>) -> Result<Committed<SetEnvironmentSettings>> {
        let settings = project_settings::parse(change.settings.as_ref().map_or("", Text::as_str))
            .map_err(|message| Error::field("settings", message))?;
        self.configure(change, settings, true).await
    }
}

impl Controller {
    /// Sets settings that were read already, in place of those of the version that was asked with.
    pub(super) async fn configure(
        &self,
        mut change: Change<SetEnvironmentSettings>,
        settings: Mapping,
        can_be_undone: bool,
    ) -> Result<Committed<SetEnvironmentSettings>> {
        let asked = change.operation();
        let (project, which, by) = (change.project()?, asked.environment, change.who().id);
        let tx = change.transaction().await?;
        environments_shown::hold(tx, project, which).await?;
        let on = environments::get(tx, project, which).await?.ok_or(Denied::NotFound)?;
        is_ready(&on)?;
        let now = environments_shown::settings(tx, project, which).await?.ok_or(Denied::NotFound)?;
        if now.version != asked.version {
            return Err(changed::settings(tx, (project, which), &asked.version, &now.settings).await);
        }
        environments::set_settings(tx, project, which, &settings).await?;
        let version = Version::of(&settings);
        if can_be_undone && version != now.version {
            let undo = NewUndo {
                about: About { project: Some(project), environment: Some(which), guest: None },
                subject: which.as_str(),
                said: format!("The settings of {} {which} were changed.", on.name),
                reverse: Reverse::Settings {
                    project: asked.project.clone(),
                    environment: which,
                    settings: now.settings,
                    version,
                },
                path: format!("/projects/{}/{which}", on.name),
            };
            undoes::keep(tx, by, &undo).await?;
        }
        let followers = environments::followers(tx, project, which).await?;
        let job = self.queue(&mut change, environment_configure::job(&on)).await?;
        for follower in followers {
            self.queue(&mut change, environment_configure::job(&follower)).await?;
        }
        let detail = json!({ "environment": which, "settings": settings });
        let entry = Entry::new("environment.configure", on.name.as_str()).id(project.0).detail(detail);
        change.commit(entry, JobAccepted { job }).await
    }

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
