//! The project is taken from a guest of an environment; its data stays unless it is to go too. A guest that is
//! gone has nothing left to take.

use corpus_api::environments::{RemoveEnvironment, RemoveEnvironmentGuest};
use corpus_api::jobs::JobAccepted;
use corpus_api::operation::Write;
use corpus_api::{Denied, Operation};
use corpus_domain::{EnvironmentState, GuestRole, GuestState, JobId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;
use sqlx::PgTransaction;

use crate::Controller;
use crate::sagas::{environment_configure, environment_remove};
use crate::store::environments::{self, Filter, Placement};

impl Handle<RemoveEnvironment> for Controller {
    async fn handle(&self, mut change: Change<RemoveEnvironment>) -> Result<Committed<RemoveEnvironment>> {
        let (project, which, with_data) = (change.project()?, change.environment, change.with_data);
        let tx = change.transaction().await?;
        let on = environments::get(tx, project, which).await?.ok_or(Denied::NotFound)?;
        let followers = environments::list(tx, Filter::Followers(project, which)).await?;
        if !followers.is_empty() {
            let names: Vec<_> = followers.iter().map(|follower| follower.guest_name.as_str()).collect();
            return Err(Error::Conflict(format!("Take {} from the environment first.", names.join(", "))));
        }
        let job = self.leave(&mut change, &on, with_data).await?;
        change.commit(entry(&on, with_data), JobAccepted { job }).await
    }
}

impl Handle<RemoveEnvironmentGuest> for Controller {
    async fn handle(&self, mut change: Change<RemoveEnvironmentGuest>) -> Result<Committed<RemoveEnvironmentGuest>> {
        let (project, which, with_data) = (change.project()?, change.environment, change.with_data);
        let guest = change.guest;
        let tx = change.transaction().await?;
        let on = environments::on_guest(tx, guest).await?;
        let on = on.filter(|on| (on.project, on.environment, on.role) == (project, which, GuestRole::Follower));
        let on = on.ok_or(Denied::NotFound)?;
        let job = self.leave(&mut change, &on, with_data).await?;
        if let Some(leader) = environments::get(change.transaction().await?, project, which).await? {
            self.queue(&mut change, environment_configure::job(&leader)).await?;
        }
        change.commit(entry(&on, with_data), JobAccepted { job }).await
    }
}

impl Controller {
    async fn leave<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        on: &Placement,
        with_data: bool,
    ) -> Result<JobId> {
        if !matches!(on.guest_state, GuestState::Running | GuestState::Failed) {
            return Err(Error::Conflict(format!(
                "{} is {}; start it first, so that the project can be taken from it.",
                on.guest_name, on.guest_state
            )));
        }
        begin_to_leave(change.transaction().await?, on).await?;
        self.queue(change, environment_remove::job(on, with_data)).await
    }
}

fn entry(on: &Placement, with_data: bool) -> Entry<'_> {
    let detail = json!({ "environment": on.environment, "guest": on.guest_name, "with_data": with_data });
    Entry::new("environment.remove", on.name.as_str()).id(on.project.0).detail(detail)
}

async fn begin_to_leave(tx: &mut PgTransaction<'_>, on: &Placement) -> Result<()> {
    let from = [EnvironmentState::Ready, EnvironmentState::Failed];
    if environments::set_state(tx, on.guest, &from, EnvironmentState::Leaving, None).await? {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "{}'s {} is {} now; this can't be done in that state.",
        on.name, on.environment, on.state
    )))
}
