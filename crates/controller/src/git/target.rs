//! What the git server asks: who has this key, may they push there, and where is it.

use corpus_domain::{
    DeploymentId, Environment, GitService, Grant, GuestId, GuestName, NodeAddress, ProjectId, ProjectName, Repository,
    SshPort,
};
use corpus_git_server::{Access, RepositoryPath};
use corpus_protocol::{Answer, Request};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::nodes::{Call, Gateway, GuestEndpoint, HostKey, NodeError};
use crate::readiness::{followers_run, is_ready, runs};
use crate::store::environments::{self, Filter, Placement, ProjectReading};
use crate::store::keys::KeyHolder;
use crate::store::{deployments, guests, keys, projects};
use crate::{Controller, Error, Result};
use corpus_api::principal::{to_deploy, to_enter};
use corpus_api::{Denied, Principal, Role};

/// No host key is longer, as a line.
const MAX_HOST_KEY: usize = 8 << 10;
/// How long a guest may take to tell of its project.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the principal may; `open` is whether the project's developers may enter prod. Who
/// may not enter it doesn't read its pillar either, which holds what prod runs with; a robot enters nothing, so it
/// takes a maintainer among them. Its key may be good to fetch only.
pub(crate) fn permit_git(who: &Principal, access: &Access, open: bool) -> std::result::Result<(), Denied> {
    let RepositoryPath { environment, repository, .. } = access.path;
    let open = open && who.robot.is_none();
    let needed = match (access.service, repository, environment) {
        (GitService::ReceivePack, _, environment) => to_deploy(environment),
        (GitService::UploadPack, Repository::Pillar, environment) => to_enter(environment, open),
        (GitService::UploadPack, Repository::Project, _) => Role::Developer,
    };
    let judged = who.judge(needed, Some(access.project));
    if judged != Err(Denied::NotFound) && !who.is_within(environment) {
        return Err(Denied::Bounded(environment));
    }
    judged?;
    who.is_granted(match access.service {
        GitService::ReceivePack => Grant::Deploy,
        GitService::UploadPack => Grant::Read,
    })
}

/// What a member hears to whom [`permit_git`] says no.
pub(crate) fn needed_role(service: GitService, path: &RepositoryPath) -> String {
    let (doing, role) = match (service, path.environment, path.repository) {
        (GitService::UploadPack, Environment::Prod, Repository::Pillar) => ("read the pillar", "maintainer"),
        (GitService::UploadPack, ..) => ("fetch", "developer"),
        (GitService::ReceivePack, Environment::Prod, _) => ("push", "maintainer"),
        (GitService::ReceivePack, ..) => ("push", "developer"),
    };
    let project = &path.project;
    format!("to {doing} here you must be {role} of {project}, and you are not; ask a maintainer of it")
}

/// Where the repositories of an environment are; entered as root with the control key.
#[derive(Debug, Clone)]
pub struct GitTarget {
    /// The project.
    pub project_id: ProjectId,
    /// Its name.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The guest that it stands on.
    pub guest_id: GuestId,
    /// Its name.
    pub guest: GuestName,
    /// The address of the guest's node.
    pub address: NodeAddress,
    /// The node's port that leads to the guest's SSH.
    pub ssh_port: SshPort,
    /// The guest's own host key.
    pub host_key: HostKey,
    /// What its node is reached through, if it does not answer from here.
    pub gateway: Option<Box<Gateway>>,
}

impl GitTarget {
    fn of(placement: Placement) -> Option<Self> {
        Some(Self {
            project_id: placement.project,
            project: placement.name,
            environment: placement.environment,
            guest_id: placement.guest,
            guest: placement.guest_name,
            address: placement.address,
            ssh_port: placement.ssh_port?,
            host_key: placement.host_key?,
            gateway: placement.behind,
        })
    }

    /// How the guest is entered.
    pub fn endpoint(&self) -> Result<GuestEndpoint> {
        Ok(GuestEndpoint {
            id: self.guest_id,
            address: self.address.clone(),
            port: self.ssh_port.get(),
            user: "root".parse()?,
            pinned_host_key: self.host_key.clone(),
            gateway: self.gateway.clone(),
        })
    }
}

impl Controller {
    /// Where a push to (or fetch from) an environment goes, if the principal may.
    pub async fn git_target(
        &self,
        principal: &Principal,
        project: &ProjectName,
        environment: Environment,
        (service, repository): (GitService, Repository),
    ) -> Result<GitTarget> {
        let mut conn = self.services.db.acquire().await?;
        let id = projects::by_name(&mut conn, project).await?.ok_or(Denied::NotFound)?;
        let open = projects::entered_by_developers(&mut conn, &[id]).await?;
        let open = *open.get(&id).ok_or(Denied::NotFound)?;
        let path = RepositoryPath { project: project.clone(), environment, repository };
        permit_git(principal, &Access { project: id, path, service }, open)?;
        if service == GitService::ReceivePack
            && let Some(leaving) = corpus_gate::leaving(&mut conn, id).await?
        {
            return Err(Error::Conflict(leaving.sentence()));
        }
        let placement = environments::get(&mut conn, id, environment).await?.ok_or_else(|| {
            Error::Conflict(format!(
                "project {project} has no {environment}; a maintainer sets it up on the project's page."
            ))
        })?;
        is_ready(&placement)?;
        runs(&placement)?;
        followers_run(&environments::followers(&mut conn, id, environment).await?)?;
        let guest = placement.guest_name.clone();
        GitTarget::of(placement).ok_or_else(|| Error::Conflict(format!("{guest} can't be entered by SSH yet.")))
    }

    /// The members who have the keys of these `SHA256:` fingerprints, by fingerprint; nobody for
    /// those that are nobody's, or of a disabled member.
    pub async fn key_holders(&self, fingerprints: &[String]) -> Result<BTreeMap<String, KeyHolder>> {
        let mut conn = self.services.db.acquire().await?;
        Ok(keys::holders(&mut conn, fingerprints).await?)
    }

    /// Notes that git is used with a key.
    pub(crate) async fn key_used(&self, fingerprint: &str) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        Ok(keys::note_use(&mut conn, fingerprint).await?)
    }

    /// Those of the projects that are there, and whether their developers may enter prod.
    pub(crate) async fn entered_by_developers(&self, ids: &[ProjectId]) -> Result<BTreeMap<ProjectId, bool>> {
        let mut conn = self.services.db.acquire().await?;
        Ok(projects::entered_by_developers(&mut conn, ids).await?)
    }

    /// All environments that can be pushed to, for who reads them now and then.
    pub async fn git_targets(&self) -> Result<Vec<GitTarget>> {
        let mut conn = self.services.db.acquire().await?;
        let all = environments::list(&mut conn, Filter::Ready).await?;
        Ok(all.into_iter().filter_map(GitTarget::of).collect())
    }

    /// Reads an environment from its guest: what is live, its archives and configuration are
    /// taken over. Tells the deployments, oldest first, that are not known here to their end.
    pub async fn read_environment(&self, target: &GitTarget) -> Result<Vec<DeploymentId>> {
        let call = Call::new(Request::ReadProject { project: target.project.clone() }, READ_TIMEOUT).observing();
        let asked = self.services.guests.call(&target.endpoint()?, call, |_| ()).await;
        self.note_host_key(target, asked.as_ref().err()).await?;
        let unavailable = |source| Error::Unavailable {
            message: format!("{} did not tell of {}", target.guest, target.project),
            source: Box::new(source),
        };
        let Answer::Project { mut live, mut archives, configuration, deployments: mut told } =
            asked.map_err(unavailable)?
        else {
            return Ok(Vec::new());
        };
        let mut tx = self.services.begin().await?;
        environments::own_only(&mut tx, target.guest_id, &mut live, &mut archives).await?;
        let reading = ProjectReading { live, archives, configuration: Some(configuration) };
        environments::observe(&mut tx, target.guest_id, &reading).await?;
        told.reverse();
        let unfinished = deployments::unfinished(&mut tx, target.guest_id, &told).await?;
        tx.commit().await?;
        Ok(unfinished)
    }

    /// Keeps that a guest shows another key than its own, or does so no more, for its page. One that does not
    /// answer says nothing of that.
    async fn note_host_key(&self, target: &GitTarget, error: Option<&NodeError>) -> Result<()> {
        let shown = match error {
            None => None,
            Some(NodeError::HostKeyChanged { seen, .. }) if seen.public.len() <= MAX_HOST_KEY => {
                Some(seen.public.as_str())
            }
            Some(_) => return Ok(()),
        };
        let mut conn = self.services.db.acquire().await?;
        Ok(guests::note_host_key(&mut conn, target.guest_id, shown).await?)
    }
}
