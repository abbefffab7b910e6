//! A running guest becomes one of an environment: the first one its leader, each further one a follower, which
//! deploys what the leader does, beginning with what is live.

use corpus_api::Denied;
use corpus_api::environments::SetUpEnvironment;
use corpus_api::jobs::JobAccepted;
use corpus_domain::{DeploymentId, Environment, GuestName, GuestState, ProjectName, Trigger};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use corpus_protocol::Source;
use serde_json::json;
use uuid::Uuid;

use crate::Controller;
use crate::readiness::{is_ready, runs};
use crate::sagas::{deploy, environment_configure, environment_set_up};
use crate::store::deployments::{self, NewDeployment, Ordered};
use crate::store::environments::{self, Placement};
use crate::store::{guests, not_created};

impl Handle<SetUpEnvironment> for Controller {
    async fn handle(&self, mut change: Change<SetUpEnvironment>) -> Result<Committed<SetUpEnvironment>> {
        let (project, guest, by) = (change.project()?, change.guest, change.who().id);
        let wanted = change.environment;
        let tx = change.transaction().await?;
        guests::hold(tx, guest).await?;
        let row = guests::get(tx, guest).await?.filter(|row| row.project_id == project);
        let row = row.ok_or_else(|| Error::field("guest", "The project has no such guest."))?;
        let environment = wanted.unwrap_or(row.environment);
        fits(&row.name, (row.environment, environment), row.state)?;
        if environments::on_guest(tx, guest).await?.is_some() {
            return Err(Error::field("guest", format!("An environment stands on {} already.", row.name)));
        }
        let leader = environments::get(tx, project, environment).await?;
        let inserted = match &leader {
            None => environments::insert(tx, project, environment, guest, by).await,
            Some(leader) => {
                is_ready(leader)?;
                runs(leader)?;
                environments::insert_follower(tx, project, environment, guest, by).await
            }
        };
        inserted.map_err(|error| taken(error, &row.name, &row.project, environment))?;
        let on = environments::on_guest(tx, guest).await?.ok_or(Denied::NotFound)?;
        not_created::set_up_again(tx, (project, environment), by).await?;
        let job = self.queue(&mut change, environment_set_up::job(&on)).await?;
        if let Some(leader) = &leader {
            self.join(&mut change, leader, &on).await?;
        }
        let detail = json!({ "environment": environment, "guest": row.name, "role": on.role });
        let entry = Entry::new("environment.set_up", row.project.as_str()).id(project.0).detail(detail);
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Controller {
    /// Behind the job that sets a follower up: the leader is told of it, and what is live there comes to it.
    async fn join(
        &self,
        change: &mut Change<SetUpEnvironment>,
        leader: &Placement,
        follower: &Placement,
    ) -> Result<()> {
        self.queue(change, environment_configure::job(leader)).await?;
        let who = change.who();
        let Some(live) = &leader.live else { return Ok(()) };
        // What was deployed by hand on the guest, and is not known here yet, comes with the next deployment.
        let Some(brought) = deployments::hold(change.transaction().await?, live.deployment).await? else {
            return Ok(());
        };
        let source = Source::Release { commit: live.commit.clone(), pillar: live.pillar.clone() };
        let id = DeploymentId(Uuid::now_v7());
        let new = NewDeployment {
            id,
            on: follower,
            trigger: Trigger::Hand,
            ordered: Some(&Ordered::whole(source)),
            by_id: Some(who.id),
            by: who.login.as_str(),
            leader: Some((live.deployment, brought.number)),
        };
        deployments::insert(change.transaction().await?, &new).await?;
        let job = self.queue(change, deploy::job(id, brought.number, follower, &[], Vec::new())).await?;
        Ok(deployments::set_job(change.transaction().await?, id, job).await?)
    }
}

fn fits(guest: &GuestName, (of, wanted): (Environment, Environment), state: GuestState) -> Result<()> {
    if of != wanted {
        return Err(Error::field("guest", format!("{guest} is a guest of {of}.")));
    }
    if state != GuestState::Running {
        return Err(Error::field("guest", format!("{guest} is {state}; it must run.")));
    }
    Ok(())
}

/// Which rule of the database was broken.
fn taken(error: sqlx::Error, guest: &GuestName, project: &ProjectName, environment: Environment) -> Error {
    let rule = match &error {
        sqlx::Error::Database(inner) => inner.constraint().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    match rule.as_str() {
        "environment_guests_pkey" => Error::taken(error, "guest", format!("An environment stands on {guest} already.")),
        _ => Error::taken(error, "environment", format!("project {project} has its {environment} already.")),
    }
}
