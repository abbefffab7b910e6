//! The git server's backend: keys, roles and environments are those of the database at that moment.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use corpus_domain::{DeploymentId, Environment, GitService, Repository, Trigger};
use corpus_git_server::{
    Access, Backend, BackendError, Member, Permitted, RefChange, Refusal, RepositoryPath, Standing, Transfer,
};
use corpus_protocol::{Event, Request};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::previews::PreviewPush;
use super::{GitTarget, needed_role, permit_git};
use crate::handlers::Kept;
use crate::nodes::{Call, Credential, GitProgram, GitRequest, GuestEndpoint, NodeError, connect, serve_git};
use crate::store::audit;
use crate::store::deployments_shown::{self, Whereabouts};
use crate::store::keys::KeyHolder;
use crate::{Controller, Error};
use corpus_api::{Denied, Principal};

type Result<T, E = Error> = std::result::Result<T, E>;

/// How long a deployment's journal is waited for.
const FOLLOW_TIMEOUT: Duration = Duration::from_hours(24);

#[async_trait]
impl Backend for Controller {
    async fn member(&self, fingerprint: &str) -> Result<Option<Member>, BackendError> {
        let found = self.key_holders(&[fingerprint.to_owned()]).await.map_err(BackendError::new)?;
        Ok(found.get(fingerprint).map(member))
    }

    async fn authorize(
        &self,
        fingerprint: &str,
        service: GitService,
        path: &RepositoryPath,
    ) -> Result<Permitted, Refusal> {
        let mut found = self.key_holders(&[fingerprint.to_owned()]).await.map_err(BackendError::new)?;
        let holder = found.remove(fingerprint).ok_or(Refusal::UnknownKey)?;
        self.key_used(fingerprint).await.map_err(BackendError::new)?;
        let RepositoryPath { project, environment, repository } = path;
        let target = self.git_target(&holder.principal, project, *environment, (service, *repository)).await;
        let target = target.map_err(|error| refusal(error, service, path))?;
        let deployment = DeploymentId(Uuid::now_v7());
        let (access, guest) =
            (Access { project: target.project_id, path: path.clone(), service }, target.guest.clone());
        let member = member(&holder);
        let request = request(&member, &access, deployment);
        let fingerprint = fingerprint.to_owned();
        let (controller, who) = (self.clone(), holder.principal);
        let (preview, kept) = (OnceLock::new(), OnceLock::new());
        let transfer = Box::new(GitTransfer { controller, who, fingerprint, target, request, preview, kept });
        Ok(Permitted { member, access, guest, deployment, transfer })
    }

    async fn recheck(
        &self,
        keys: &BTreeMap<String, BTreeSet<Access>>,
    ) -> Result<BTreeMap<String, Standing>, BackendError> {
        self.standings(keys).await.map_err(BackendError::new)
    }
}

impl Controller {
    /// In two queries, however many keys there are.
    async fn standings(&self, keys: &BTreeMap<String, BTreeSet<Access>>) -> Result<BTreeMap<String, Standing>> {
        let holders = self.key_holders(&keys.keys().cloned().collect::<Vec<_>>()).await?;
        let projects: BTreeSet<_> = keys.values().flatten().map(|access| access.project).collect();
        let projects: Vec<_> = projects.into_iter().collect();
        let open = if projects.is_empty() { BTreeMap::new() } else { self.entered_by_developers(&projects).await? };
        // A project that is not there any more is nobody's, not even the operators'.
        let may = |who: &Principal, access: &Access| {
            open.get(&access.project).is_some_and(|open| permit_git(who, access, *open).is_ok())
        };
        let standing = |(key, holder): (String, KeyHolder)| {
            let accesses = keys.get(&key).into_iter().flatten();
            let permitted = accesses.filter(|access| may(&holder.principal, access)).cloned().collect();
            (key, Standing { member: member(&holder), permitted })
        };
        Ok(holders.into_iter().map(standing).collect())
    }
}

fn member(holder: &KeyHolder) -> Member {
    Member { id: holder.principal.id, login: holder.principal.login.clone(), epoch: holder.epoch }
}

fn request(member: &Member, access: &Access, deployment: DeploymentId) -> GitRequest {
    GitRequest {
        project: access.path.project.clone(),
        service: access.service,
        repository: access.path.repository,
        by: member.login.clone(),
        deployment,
    }
}

/// Why not, for the person.
fn refusal(error: Error, service: GitService, path: &RepositoryPath) -> Refusal {
    match error {
        Error::Denied(Denied::NotFound) => Refusal::NotFound,
        Error::Denied(Denied::Forbidden) | Error::Forbidden(_) => Refusal::Reason(needed_role(service, path)),
        Error::Denied(Denied::Token(_)) => Refusal::Reason("this key is good to fetch only, not to push".to_owned()),
        Error::Denied(denied @ (Denied::Bounded(_) | Denied::Robot)) => Refusal::Reason(denied.to_string()),
        Error::Conflict(reason) | Error::Unavailable { message: reason, .. } => Refusal::Reason(reason),
        other => Refusal::Failed(BackendError::new(other)),
    }
}

/// A push or fetch of a member that the controller permitted.
struct GitTransfer {
    controller: Controller,
    who: Principal,
    /// Of the key that it was permitted to.
    fingerprint: String,
    target: GitTarget,
    request: GitRequest,
    /// The preview that its branch is for.
    preview: OnceLock<PreviewPush>,
    /// The snapshots that were taken before it.
    kept: OnceLock<Vec<Kept>>,
}

impl GitTransfer {
    /// How the guest is entered.
    fn endpoint(&self) -> Result<GuestEndpoint, NodeError> {
        self.target.endpoint().map_err(|_| NodeError::Forgotten { host: self.target.guest.to_string() })
    }

    /// What is pushed to.
    fn path(&self) -> RepositoryPath {
        let GitTarget { project, environment, .. } = &self.target;
        RepositoryPath { project: project.clone(), environment: *environment, repository: self.request.repository }
    }

    async fn audit(&self, action: &'static str, detail: Value) -> Result<(), BackendError> {
        let GitTarget { project, environment, project_id, .. } = &self.target;
        let subject = format!("{project}/{environment}");
        let entry = audit::Entry::new(action, &subject).id(project_id.0).of_project(*project_id).detail(detail);
        let mut conn = self.controller.services.db.acquire().await.map_err(BackendError::new)?;
        audit::write(&mut conn, &self.who, entry).await.map_err(BackendError::new)
    }

    /// Reads the journal of the deployment until its first entry.
    async fn first_entry(&self) -> Result<(), NodeError> {
        let (first, began) = oneshot::channel();
        let mut first = Some(first);
        let (project, id) = (self.request.project.clone(), self.request.deployment);
        let call = Call::new(Request::FollowDeployment { project, id, from: 0 }, FOLLOW_TIMEOUT).observing();
        let seen = |event| {
            if let (Event::Deployment { .. }, Some(first)) = (event, first.take()) {
                first.send(()).unwrap_or_default();
            }
        };
        let guest = self.endpoint()?;
        tokio::select! {
            biased;
            Ok(()) = began => Ok(()),
            answered = self.controller.services.guests.call(&guest, call, seen) => answered.map(drop),
        }
    }
}

#[async_trait]
impl Transfer for GitTransfer {
    async fn start(&self) -> Result<GitProgram, NodeError> {
        let key = Credential::Key(self.controller.services.control_key.clone());
        serve_git(connect(&self.endpoint()?, &key).await?, &self.request).await
    }

    async fn record_pillar_read(&self) -> Result<(), BackendError> {
        self.audit("git.fetch_pillar", json!({ "guest": self.target.guest })).await
    }

    async fn record_push(&self) -> Result<(), BackendError> {
        let GitRequest { repository, deployment, .. } = &self.request;
        let detail = json!({ "repository": repository.as_str(), "deployment": deployment, "guest": self.target.guest });
        self.audit("git.push", detail).await
    }

    async fn judge(&self, changes: &[RefChange]) -> Result<(), Refusal> {
        let (target, path) = (&self.target, (self.target.environment, self.request.repository));
        if path == (Environment::Dev, Repository::Project)
            && let Some(push) = PreviewPush::of(changes)?
        {
            self.controller.may_push_preview((target.project_id, &target.project), &push).await?;
            drop(self.preview.set(push));
            return Ok(());
        }
        let kept = self.controller.keep_before_push(&self.who, target, self.request.deployment, changes).await;
        let kept = kept.map_err(|error| refusal(error, GitService::ReceivePack, &self.path()))?;
        drop(self.kept.set(kept));
        Ok(())
    }

    async fn ended(&self) -> Result<Vec<String>, BackendError> {
        let Some(push) = self.preview.get() else { return Ok(Vec::new()) };
        // A role counts at that moment: it may have been taken while the push came in.
        let found = self.controller.key_holders(std::slice::from_ref(&self.fingerprint)).await;
        let holder = found.map_err(BackendError::new)?.remove(&self.fingerprint);
        let holder = holder.filter(|holder| holder.principal.id == self.who.id);
        match holder {
            Some(holder) => Ok(self.controller.preview_pushed(&holder.principal, &self.target.project, push).await),
            None => Ok(vec!["your key is not a member's any more, so nothing came of the branch".to_owned()]),
        }
    }

    async fn begun(&self) {
        if let Err(error) = self.first_entry().await {
            tracing::debug!(deployment.id = %self.request.deployment, %error, "a push is not followed");
            pending::<()>().await;
        }
    }

    async fn follow(&self) -> Result<(), BackendError> {
        let (by, guest, id) = (Some(self.who.id), self.target.guest_id, self.request.deployment);
        self.controller.deployment_began(by, guest, id, Trigger::Push).await.map(drop).map_err(BackendError::new)
    }

    async fn whereabouts(&self) -> Result<Vec<String>, BackendError> {
        let services = &self.controller.services;
        let mut conn = services.db.acquire().await.map_err(BackendError::new)?;
        let found = deployments_shown::whereabouts(&mut conn, self.request.deployment, self.target.guest_id).await;
        let Whereabouts { number, sites } = found.map_err(BackendError::new)?;
        let pages = &services.settings.public_url;
        let page = match number {
            Some(number) => format!("{pages}/projects/{}/deployments/{number}", self.target.project),
            None => format!("{pages}/deployments/{}", self.request.deployment),
        };
        let kept = self.kept.get().into_iter().flatten();
        let kept = kept.map(|kept| format!("a snapshot of {} was taken before", kept.guest));
        let sites = sites.iter().map(|site| format!("site {site}"));
        Ok(kept.chain(sites).chain([format!("deployment {page}")]).collect())
    }
}
