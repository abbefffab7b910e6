//! What is deployed by hand: the branch's head, a commit, an archive, or what is live to be broken on purpose.

use corpus_api::Operation;
use corpus_api::deployments::{Deploy, DeploymentAccepted, Drill};
use corpus_api::operation::Write;
use corpus_domain::{DeploymentId, Environment, Phase, ProjectName, Trigger};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use corpus_protocol::Source;
use serde_json::json;
use uuid::Uuid;

use crate::Controller;
use crate::events;
use crate::readiness::{followers_run, is_ready, runs};
use crate::sagas::deploy;
use crate::store::deployments::{self, NewDeployment, Ordered};
use crate::store::environments;

impl Handle<Deploy> for Controller {
    async fn handle(&self, mut change: Change<Deploy>) -> Result<Committed<Deploy>> {
        let asked = change.operation();
        if asked.only.contains(&Phase::Rollback) {
            return Err(Error::field("only", "A rollback runs by itself when something fails; restore an archive."));
        }
        if asked.archive.is_some() && !asked.only.is_empty() {
            return Err(Error::field("only", "An archive is restored as a whole."));
        }
        if asked.archive.is_some() && asked.commit.is_some() {
            return Err(Error::field("commit", "Deploy a commit or restore an archive, one of the two."));
        }
        let trigger = if asked.archive.is_some() { Trigger::Restore } else { Trigger::Hand };
        let (only, plain_archive) = (asked.only.to_vec(), asked.plain_archive);
        let ordered = Ordered { source: source(&asked), only, plain_archive };
        let order = self.order(&mut change, asked.environment, trigger, ordered).await?;
        change.commit(order.entry(), order.accepted).await
    }
}

fn source(asked: &Deploy) -> Source {
    match (asked.archive, &asked.commit) {
        (Some(archive), _) => Source::Archive { archive },
        (None, Some(commit)) => Source::Commit { commit: commit.clone() },
        (None, None) => Source::Head,
    }
}

impl Handle<Drill> for Controller {
    async fn handle(&self, mut change: Change<Drill>) -> Result<Committed<Drill>> {
        let environment = change.environment;
        if environment == Environment::Prod {
            return Err(Error::field("environment", "Nothing is broken on purpose in prod; drill on staging."));
        }
        let ordered = Ordered::whole(Source::Head);
        let order = self.order(&mut change, environment, Trigger::Drill, ordered).await?;
        change.commit(order.entry(), order.accepted).await
    }
}

/// What was ordered.
struct Order {
    project: Uuid,
    name: ProjectName,
    detail: serde_json::Value,
    accepted: DeploymentAccepted,
}

impl Order {
    fn entry(&self) -> Entry<'_> {
        Entry::new("deployment.order", self.name.as_str()).id(self.project).detail(self.detail.clone())
    }
}

impl Controller {
    async fn order<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        environment: Environment,
        trigger: Trigger,
        ordered: Ordered,
    ) -> Result<Order> {
        let (project, who) = (change.project()?, change.who());
        let tx = change.transaction().await?;
        let on = environments::get(tx, project, environment).await?.ok_or_else(|| {
            Error::field("environment", format!("The project has no {environment}; set it up first."))
        })?;
        is_ready(&on)?;
        runs(&on)?;
        let followers = environments::followers(tx, project, environment).await?;
        followers_run(&followers)?;
        if let Source::Archive { archive } = &ordered.source
            && !on.archives.iter().any(|kept| kept.id == *archive)
        {
            return Err(Error::field("archive", "This archive is not kept any more; the list has those that are."));
        }
        let id = DeploymentId(Uuid::now_v7());
        let mut kept = Vec::new();
        if trigger == Trigger::Hand {
            let guests: Vec<_> = followers.iter().chain([&on]).map(|on| on.guest).collect();
            kept = self.keep_before(tx, &guests, id, &who).await?;
        }
        let kept = kept.into_iter().map(|kept| kept.snapshot).collect();
        let new = NewDeployment {
            id,
            on: &on,
            trigger,
            ordered: Some(&ordered),
            by_id: Some(who.id),
            by: who.login.as_str(),
            leader: None,
        };
        let number = deployments::insert(tx, &new).await?.unwrap_or_default();
        let detail = json!({ "environment": environment, "number": number, "trigger": trigger, "deployment": id,
                             "source": ordered.source, "only": ordered.only, "plain_archive": ordered.plain_archive });
        let job = self.queue(change, deploy::job(id, number, &on, &followers, kept)).await?;
        let tx = change.transaction().await?;
        deployments::set_job(tx, id, job).await?;
        events::deployment_began(tx, id).await?;
        let accepted = DeploymentAccepted { deployment: id, job };
        Ok(Order { project: project.0, name: on.name, detail, accepted })
    }
}
