//! The names of environments, and how their guests share them.

use corpus_api::Denied;
use corpus_api::environments::balance::{AttachEnvironmentName, Balance, GetBalance, SetBalance};
use corpus_api::jobs::JobAccepted;
use corpus_api::names::NameAccepted;
use corpus_domain::{Environment, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgTransaction;

use crate::quotas::More;
use crate::readiness::is_ready;
use crate::sagas::environment_configure;
use crate::store::environments::{self, Filter};
use crate::store::{balance, environments_shown, guests};
use crate::{Controller, changed, quotas};

impl Handle<GetBalance> for Controller {
    async fn handle(&self, permit: Permit<GetBalance>) -> Result<Balance> {
        let mut conn = permit.connection().await?;
        Ok(balance::shown(&mut conn, permit.project()?, permit.environment).await?.ok_or(Denied::NotFound)?)
    }
}

impl Handle<SetBalance> for Controller {
    async fn handle(&self, mut change: Change<SetBalance>) -> Result<Committed<SetBalance>> {
        let (project, which) = (change.project()?, change.environment);
        let (policy, stickiness, version) = (change.policy, change.stickiness, change.version.clone());
        let tx = change.transaction().await?;
        environments_shown::hold(tx, project, which).await?;
        let on = environments::get(tx, project, which).await?.ok_or(Denied::NotFound)?;
        is_ready(&on)?;
        let now = balance::shown(tx, project, which).await?.ok_or(Denied::NotFound)?;
        if now.version != version {
            return Err(changed::by_others(tx, "environment.balance", project.0, told).await);
        }
        balance::set(change.transaction().await?, (project, which), policy, stickiness).await?;
        let job = self.queue(&mut change, environment_configure::job(&on)).await?;
        let detail = json!({ "environment": which, "policy": policy, "stickiness": stickiness });
        let entry = Entry::new("environment.balance", on.name.as_str()).id(project.0).detail(detail);
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Handle<AttachEnvironmentName> for Controller {
    async fn handle(&self, mut change: Change<AttachEnvironmentName>) -> Result<Committed<AttachEnvironmentName>> {
        let (project, which, name) = (change.project()?, change.environment, change.name.clone());
        let on = environments::get(&mut *change.connection().await?, project, which).await?.ok_or(Denied::NotFound)?;
        is_ready(&on)?;
        let leader = guests::get(&mut *change.connection().await?, on.guest).await?.ok_or(Denied::NotFound)?;
        self.dns()?;
        self.is_nobody_elses(&mut change, project, (&name, false)).await?;
        let more = More { names: 1, ..More::default() };
        quotas::take(&mut change, project, more, |_| "name").await?;
        let (attached, job) = self.want_name(&mut change, (&leader, Some(which)), (&name, false)).await?;
        let who = change.who();
        self.environment_is_told(change.transaction().await?, &who, (project, which)).await?;
        let detail = json!({ "environment": which, "project": on.name });
        let entry = Entry::new("name.attach", name.as_str()).id(attached.0).detail(detail);
        change.commit(entry, NameAccepted { name: attached, job }).await
    }
}

/// `round_robin, cookie`
fn told(detail: &Value) -> Option<String> {
    let (policy, stickiness) = (detail.get("policy")?.as_str()?, detail.get("stickiness")?.as_str()?);
    Some(format!("{policy}, stickiness {stickiness}"))
}

impl Controller {
    /// Queues the jobs that tell all guests of an environment what their project should know now.
    pub(crate) async fn environment_is_told(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &corpus_api::Principal,
        (project, which): (ProjectId, Environment),
    ) -> Result<()> {
        let mut all = environments::list(tx, Filter::Leader(project, which)).await?;
        all.extend(environments::followers(tx, project, which).await?);
        for one in &all {
            self.submit(tx, principal, environment_configure::job(one)).await?;
        }
        Ok(())
    }
}
