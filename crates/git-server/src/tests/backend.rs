//! A backend of accounts in memory, which keeps what it was asked and told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use corpus_domain::{DeploymentId, Environment, GitService, ProjectId, ProjectRole, Repository};
use corpus_fleet::{ControlKey, Credential, GitProgram, GitRequest, NodeEndpoint, NodeError, connect, serve_git};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{Access, Backend, BackendError, Member, Permitted, Refusal, RepositoryPath, Standing, Transfer};

/// The project.
const SHOP: ProjectId = ProjectId(Uuid::nil());
/// What a developer hears of a push.
pub const MAINTAINERS_PUSH: &str = "maintainers of shop push here, and you are none";

/// A member, and what they are in the project.
pub struct Account {
    pub member: Member,
    pub role: Option<ProjectRole>,
}

impl Account {
    fn may(&self, service: GitService) -> bool {
        self.role >= Some(least(service))
    }
}

/// Maintainers push, and developers fetch: simpler than in truth, which is not decided here.
fn least(service: GitService) -> ProjectRole {
    match service {
        GitService::ReceivePack => ProjectRole::Maintainer,
        GitService::UploadPack => ProjectRole::Developer,
    }
}

pub struct TestBackend {
    /// By the fingerprint of their key.
    pub accounts: Mutex<BTreeMap<String, Account>>,
    /// The project is not there any more.
    pub destroyed: Mutex<bool>,
    /// Why nothing is pushed or fetched, if so.
    pub stopped: Mutex<Option<String>>,
    /// How often it was asked who has which keys, and about how many the last time.
    pub asked: Mutex<(usize, usize)>,
    /// Who read which pillar.
    pub read: Mutex<Vec<(String, String)>>,
    /// Who pushed what.
    pub pushed: Mutex<Vec<(String, Repository, DeploymentId)>>,
    /// A deployment has begun.
    pub begun: Notify,
    pub followed: Mutex<Vec<DeploymentId>>,
    guest: (ControlKey, NodeEndpoint),
    own: std::sync::Weak<Self>,
}

impl TestBackend {
    pub fn new(key: ControlKey, endpoint: NodeEndpoint) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            accounts: Mutex::default(),
            destroyed: Mutex::default(),
            stopped: Mutex::default(),
            asked: Mutex::default(),
            read: Mutex::default(),
            pushed: Mutex::default(),
            begun: Notify::new(),
            followed: Mutex::default(),
            guest: (key, endpoint),
            own: own.clone(),
        })
    }

    fn note_asked(&self, keys: usize) {
        let mut asked = self.asked.lock().unwrap();
        *asked = (asked.0 + 1, keys);
    }

    /// Who may do this, or why not.
    fn decide(&self, fingerprint: &str, service: GitService, path: &RepositoryPath) -> Result<Member, Refusal> {
        let accounts = self.accounts.lock().unwrap();
        let account = accounts.get(fingerprint).ok_or(Refusal::UnknownKey)?;
        let there = path.project.as_str() == "shop" && path.environment != Environment::Dev;
        if !there || *self.destroyed.lock().unwrap() || account.role.is_none() {
            return Err(Refusal::NotFound);
        }
        if !account.may(service) {
            return Err(Refusal::Reason(MAINTAINERS_PUSH.to_owned()));
        }
        let stopped = self.stopped.lock().unwrap().clone();
        stopped.map_or_else(|| Ok(account.member.clone()), |why| Err(Refusal::Reason(why)))
    }
}

#[async_trait]
impl Backend for TestBackend {
    async fn member(&self, fingerprint: &str) -> Result<Option<Member>, BackendError> {
        self.note_asked(1);
        Ok(self.accounts.lock().unwrap().get(fingerprint).map(|account| account.member.clone()))
    }

    async fn authorize(
        &self,
        fingerprint: &str,
        service: GitService,
        path: &RepositoryPath,
    ) -> Result<Permitted, Refusal> {
        let member = self.decide(fingerprint, service, path)?;
        let deployment = DeploymentId(Uuid::now_v7());
        let request = GitRequest {
            project: path.project.clone(),
            service,
            repository: path.repository,
            by: member.login.clone(),
            deployment,
        };
        let backend = self.own.upgrade().unwrap();
        let transfer = Box::new(TestTransfer { backend, request, path: path.clone() });
        let access = Access { project: SHOP, path: path.clone(), service };
        Ok(Permitted { member, access, guest: "www.shop.test".parse().unwrap(), deployment, transfer })
    }

    async fn recheck(
        &self,
        keys: &BTreeMap<String, BTreeSet<Access>>,
    ) -> Result<BTreeMap<String, Standing>, BackendError> {
        self.note_asked(keys.len());
        let (accounts, destroyed) = (self.accounts.lock().unwrap(), *self.destroyed.lock().unwrap());
        let standing = |(key, accesses): (&String, &BTreeSet<Access>)| {
            let account = accounts.get(key)?;
            let permitted = accesses.iter().filter(|access| !destroyed && account.may(access.service)).cloned();
            Some((key.clone(), Standing { member: account.member.clone(), permitted: permitted.collect() }))
        };
        Ok(keys.iter().filter_map(standing).collect())
    }
}

struct TestTransfer {
    backend: Arc<TestBackend>,
    request: GitRequest,
    path: RepositoryPath,
}

#[async_trait]
impl Transfer for TestTransfer {
    async fn start(&self) -> Result<GitProgram, NodeError> {
        let (key, endpoint) = &self.backend.guest;
        serve_git(connect(endpoint, &Credential::Key(key.clone())).await?, &self.request).await
    }

    async fn record_pillar_read(&self) -> Result<(), BackendError> {
        self.backend.read.lock().unwrap().push((self.request.by.to_string(), self.path.to_string()));
        Ok(())
    }

    async fn record_push(&self) -> Result<(), BackendError> {
        let GitRequest { by, repository, deployment, .. } = &self.request;
        self.backend.pushed.lock().unwrap().push((by.to_string(), *repository, *deployment));
        Ok(())
    }

    async fn begun(&self) {
        self.backend.begun.notified().await;
    }

    async fn follow(&self) -> Result<(), BackendError> {
        self.backend.followed.lock().unwrap().push(self.request.deployment);
        Ok(())
    }

    async fn whereabouts(&self) -> Result<Vec<String>, BackendError> {
        Ok(vec![format!("deployment https://corpus.test/deployments/{}", self.request.deployment)])
    }
}
