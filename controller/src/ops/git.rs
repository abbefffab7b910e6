//! What the git server asks: who has this key, may they push there, and where is it.

use corpus_domain::{DeploymentId, Environment, GuestId, GuestName, NodeAddress, ProjectId, ProjectName, SshPort};
use corpus_protocol::{Answer, Request};
use std::collections::BTreeMap;
use std::time::Duration;

use super::deployments::{others_run, runs};
use super::environments::is_ready;
use crate::authz::{Denied, Operation, Permit, Principal};
use crate::git::Repository;
use crate::nodes::{Call, GuestEndpoint, HostKey, NodeError};
use crate::store::environments::{self, Stands, Told};
use crate::store::{deployments, guests, keys, projects};
use crate::{Controller, Error, Result};

/// No host key is longer, as a line.
const LONGEST_KEY: usize = 8 << 10;
/// How long a guest may take to tell of its project.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Which way git goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitService {
    /// A push.
    ReceivePack,
    /// A fetch or clone.
    UploadPack,
}

/// What is done by git, where: what it takes is asked before it begins, and again while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitAccess {
    /// The project.
    pub project: ProjectId,
    /// Its name.
    pub name: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// Which way.
    pub service: GitService,
    /// Which repository.
    pub repository: Repository,
}

impl GitAccess {
    /// Whether the principal may; `open` is whether the project's developers may enter prod. Who
    /// may not enter it doesn't read its pillar either, which holds what prod runs with.
    pub fn permit(&self, who: &Principal, open: bool) -> std::result::Result<Permit, Denied> {
        let operation = match (self.service, self.repository, self.environment) {
            (GitService::ReceivePack, _, environment) => Operation::deploy_to(environment),
            (GitService::UploadPack, Repository::Pillar, Environment::Prod) if !open => Operation::PillarReadProd,
            (GitService::UploadPack, _, _) => Operation::GitRead,
        };
        who.permit_in(operation, self.project)
    }

    /// What is done, as a word between `you may not` and the place.
    pub const fn doing(&self) -> &'static str {
        match self.service {
            GitService::ReceivePack => "push to",
            GitService::UploadPack => "fetch from",
        }
    }
}

/// Who has a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    /// The member.
    pub principal: Principal,
    /// What began in an earlier epoch of the member is over.
    pub epoch: i32,
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
}

impl GitTarget {
    fn of(stands: Stands) -> Option<Self> {
        Some(Self {
            project_id: stands.project,
            project: stands.name,
            environment: stands.environment,
            guest_id: stands.guest,
            guest: stands.guest_name,
            address: stands.address,
            ssh_port: stands.ssh_port?,
            host_key: stands.host_key?,
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
        let access = GitAccess { project: id, name: project.clone(), environment, service, repository };
        let _permit = access.permit(principal, open)?;
        let stands = environments::get(&mut conn, id, environment).await?.ok_or_else(|| {
            Error::Conflict(format!("{project} has no {environment}; a maintainer sets it up on the project's page."))
        })?;
        is_ready(&stands)?;
        runs(&stands)?;
        others_run(&environments::others(&mut conn, id, environment).await?)?;
        let guest = stands.guest_name.clone();
        GitTarget::of(stands).ok_or_else(|| Error::Conflict(format!("{guest} can't be entered by SSH yet.")))
    }

    /// The members who have the keys of these `SHA256:` fingerprints, by fingerprint; nobody for
    /// those that are nobody's, or of a disabled member.
    pub async fn key_holders(&self, fingerprints: &[String]) -> Result<BTreeMap<String, KeyHolder>> {
        let mut conn = self.services.db.acquire().await?;
        Ok(keys::holders(&mut conn, fingerprints).await?)
    }

    /// Those of the projects that are there, and whether their developers may enter prod.
    pub(crate) async fn entered_by_developers(&self, ids: &[ProjectId]) -> Result<BTreeMap<ProjectId, bool>> {
        let mut conn = self.services.db.acquire().await?;
        Ok(projects::entered_by_developers(&mut conn, ids).await?)
    }

    /// All environments that can be pushed to, for who reads them now and then.
    pub async fn git_targets(&self) -> Result<Vec<GitTarget>> {
        let mut conn = self.services.db.acquire().await?;
        let all = environments::list(&mut conn, environments::Of::Ready).await?;
        Ok(all.into_iter().filter_map(GitTarget::of).collect())
    }

    /// Reads an environment from its guest: what is live, its archives and configuration are
    /// taken over. Tells the deployments, oldest first, that are not known here to their end.
    pub async fn read_environment(&self, target: &GitTarget) -> Result<Vec<DeploymentId>> {
        let call = Call::new(Request::ReadProject { project: target.project.clone() }, READ_LIMIT).observing();
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
        let known = Told { live, archives, configuration: Some(configuration) };
        environments::observe(&mut tx, target.guest_id, &known).await?;
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
            Some(NodeError::HostKeyChanged { seen, .. }) if seen.public.len() <= LONGEST_KEY => {
                Some(seen.public.as_str())
            }
            Some(_) => return Ok(()),
        };
        let mut conn = self.services.db.acquire().await?;
        Ok(guests::note_host_key(&mut conn, target.guest_id, shown).await?)
    }
}
