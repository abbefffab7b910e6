//! What the git server asks the controller: nothing here decides who may do what.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use corpus_domain::{DeploymentId, Environment, ProjectId, ProjectName, Trigger};
use corpus_protocol::{Event, Request};
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::words::Repository;
use crate::authz::Principal;
use crate::nodes::{Call, Connection, Credential, GuestEndpoint, NodeError, connect};
use crate::ops::{GitService, GitTarget, KeyHolder};
use crate::store::audit;
use crate::{Controller, Error};

type Result<T, E = Error> = std::result::Result<T, E>;

/// How long a deployment's journal is waited for.
const FOLLOWED: Duration = Duration::from_hours(24);

/// Who knows members and environments.
#[async_trait]
pub(super) trait Keeper: Send + Sync + 'static {
    /// The members who have the keys of these fingerprints, by fingerprint.
    async fn holders(&self, fingerprints: &[String]) -> Result<BTreeMap<String, KeyHolder>>;

    /// Those of the projects that are there, and whether their developers may enter prod.
    async fn projects(&self, ids: &[ProjectId]) -> Result<BTreeMap<ProjectId, bool>>;

    /// Where the repositories are, if the member may.
    async fn target(
        &self,
        who: &Principal,
        project: &ProjectName,
        environment: Environment,
        (service, repository): (GitService, Repository),
    ) -> Result<GitTarget>;

    /// A connection to the guest, of its own: a slow push delays nobody else.
    async fn enter(&self, target: &GitTarget) -> Result<Connection, NodeError>;

    /// Keeps who reads a pillar.
    async fn reading_pillar(&self, who: &Principal, target: &GitTarget) -> Result<()>;

    /// Keeps who began to push what.
    async fn pushing(&self, who: &Principal, target: &GitTarget, to: Repository, id: DeploymentId) -> Result<()>;

    /// Waits until the deployment has begun on the guest; never, if it does not.
    async fn begun(&self, target: &GitTarget, id: DeploymentId);

    /// The deployment is there: it is followed from now on.
    async fn follow(&self, who: &Principal, target: &GitTarget, id: DeploymentId) -> Result<()>;
}

#[async_trait]
impl Keeper for Controller {
    async fn holders(&self, fingerprints: &[String]) -> Result<BTreeMap<String, KeyHolder>> {
        self.key_holders(fingerprints).await
    }

    async fn projects(&self, ids: &[ProjectId]) -> Result<BTreeMap<ProjectId, bool>> {
        self.entered_by_developers(ids).await
    }

    async fn target(
        &self,
        who: &Principal,
        project: &ProjectName,
        environment: Environment,
        (service, repository): (GitService, Repository),
    ) -> Result<GitTarget> {
        self.git_target(who, project, environment, (service, repository)).await
    }

    async fn enter(&self, target: &GitTarget) -> Result<Connection, NodeError> {
        connect(&endpoint(target)?, &Credential::Key(self.services.control_key.clone())).await
    }

    async fn reading_pillar(&self, who: &Principal, target: &GitTarget) -> Result<()> {
        let subject = format!("{}/{}", target.project, target.environment);
        let detail = json!({ "guest": target.guest });
        let entry = audit::Entry {
            action: "git.fetch_pillar",
            subject: &subject,
            subject_id: Some(target.project_id.0),
            detail,
        };
        audit::write(&mut *self.services.db.acquire().await?, who, entry).await.map_err(Error::from)
    }

    async fn pushing(&self, who: &Principal, target: &GitTarget, to: Repository, id: DeploymentId) -> Result<()> {
        let subject = format!("{}/{}", target.project, target.environment);
        let detail = json!({ "repository": to.as_str(), "deployment": id, "guest": target.guest });
        let entry =
            audit::Entry { action: "git.push", subject: &subject, subject_id: Some(target.project_id.0), detail };
        audit::write(&mut *self.services.db.acquire().await?, who, entry).await.map_err(Error::from)
    }

    async fn begun(&self, target: &GitTarget, id: DeploymentId) {
        let (first, began) = oneshot::channel();
        let mut first = Some(first);
        let stop = CancellationToken::new();
        let request = Request::FollowDeployment { project: target.project.clone(), id, from: 0 };
        let call = Call::new(request, FOLLOWED).cancelled_by(stop.clone()).observing();
        let seen = |event| {
            if let (Event::Deployment { .. }, Some(first)) = (event, first.take()) {
                first.send(()).unwrap_or_default();
            }
        };
        let followed = async {
            let guest = endpoint(target)?;
            self.services.guests.call(&guest, call, seen).await
        };
        tokio::select! {
            biased;
            Ok(()) = began => {}
            answered = followed => match answered {
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(deployment.id = %id, %error, "a push is not followed");
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    async fn follow(&self, who: &Principal, target: &GitTarget, id: DeploymentId) -> Result<()> {
        self.deployment_began(Some(who.id), target.guest_id, id, Trigger::Push).await.map(drop)
    }
}

/// How the guest is entered.
fn endpoint(target: &GitTarget) -> Result<GuestEndpoint, NodeError> {
    target.endpoint().map_err(|_| NodeError::Forgotten { host: target.guest.to_string() })
}
