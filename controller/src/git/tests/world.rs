//! The server under test, its members, and the git client.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use corpus_domain::{DeploymentId, Environment, GuestId, ProjectId, ProjectName, ProjectRole, UserId};
use russh::keys::ssh_key::LineEnding;
use russh::keys::{HashAlg, PrivateKey};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::guest::{Guest, any_port};
use crate::Error;
use crate::authz::{Denied, Principal};
use crate::git::keeper::Keeper;
use crate::git::{GitServer, Limits, Repository};
use crate::nodes::tests::sshd::{localhost, new_host_key, write};
use crate::nodes::{Connection, ControlKey, Credential, NodeError, connect};
use crate::ops::{GitAccess, GitService, GitTarget, KeyHolder};

type Result<T, E = Error> = std::result::Result<T, E>;

/// The project.
pub const SHOP: ProjectId = ProjectId(Uuid::nil());
/// Long enough for two slow processors that others use too.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The controller's part: who has which key, and who may what.
pub struct Book {
    pub members: Mutex<BTreeMap<String, KeyHolder>>,
    /// Whether the project's developers may enter prod; none: it is not there any more.
    pub open: Mutex<Option<bool>>,
    /// How often it was asked who has which keys, and about how many the last time.
    pub asked: Mutex<(usize, usize)>,
    pub read: Mutex<Vec<(String, String)>>,
    pub pushed: Mutex<Vec<(String, Repository, DeploymentId)>>,
    pub begun: Notify,
    pub followed: Mutex<Vec<DeploymentId>>,
    pub stopped: Mutex<Option<String>>,
    guest: (ControlKey, crate::nodes::NodeEndpoint),
}

#[async_trait]
impl Keeper for Book {
    async fn holders(&self, fingerprints: &[String]) -> Result<BTreeMap<String, KeyHolder>> {
        let mut asked = self.asked.lock().unwrap();
        *asked = (asked.0 + 1, fingerprints.len());
        let members = self.members.lock().unwrap();
        Ok(fingerprints.iter().filter_map(|one| Some((one.clone(), members.get(one)?.clone()))).collect())
    }

    async fn projects(&self, ids: &[ProjectId]) -> Result<BTreeMap<ProjectId, bool>> {
        let open = *self.open.lock().unwrap();
        Ok(ids.iter().filter_map(|id| Some((*id, open?))).collect())
    }

    async fn target(
        &self,
        who: &Principal,
        project: &ProjectName,
        environment: Environment,
        (service, repository): (GitService, Repository),
    ) -> Result<GitTarget> {
        if project.as_str() != "shop" || environment == Environment::Dev {
            return Err(Denied::NotFound.into());
        }
        let open = self.open.lock().unwrap().ok_or(Denied::NotFound)?;
        let access = GitAccess { project: SHOP, name: project.clone(), environment, service, repository };
        let _permit = access.permit(who, open)?;
        if let Some(why) = &*self.stopped.lock().unwrap() {
            return Err(Error::Conflict(why.clone()));
        }
        Ok(GitTarget {
            project_id: SHOP,
            project: project.clone(),
            environment,
            guest_id: GuestId(Uuid::nil()),
            guest: "www.shop.test".parse().unwrap(),
            address: localhost(),
            ssh_port: any_port(),
            host_key: self.guest.1.pinned_host_key.clone(),
        })
    }

    async fn enter(&self, _: &GitTarget) -> Result<Connection, NodeError> {
        connect(&self.guest.1, &Credential::Key(self.guest.0.clone())).await
    }

    async fn reading_pillar(&self, who: &Principal, target: &GitTarget) -> Result<()> {
        let place = format!("{}/{}", target.project, target.environment);
        self.read.lock().unwrap().push((who.login.to_string(), place));
        Ok(())
    }

    async fn pushing(&self, who: &Principal, _: &GitTarget, to: Repository, id: DeploymentId) -> Result<()> {
        self.pushed.lock().unwrap().push((who.login.to_string(), to, id));
        Ok(())
    }

    async fn begun(&self, _: &GitTarget, _: DeploymentId) {
        self.begun.notified().await;
    }

    async fn follow(&self, _: &Principal, _: &GitTarget, id: DeploymentId) -> Result<()> {
        self.followed.lock().unwrap().push(id);
        Ok(())
    }
}

pub struct World {
    pub guest: Guest,
    pub book: Arc<Book>,
    pub address: SocketAddr,
    pub dir: TempDir,
    pub stop: CancellationToken,
    pub serving: JoinHandle<()>,
}

/// Limits that a slow machine keeps too.
pub fn limits() -> Limits {
    Limits { guest: Duration::from_secs(30), check: Duration::from_millis(300), ..Limits::default() }
}

impl World {
    pub async fn start() -> Self {
        Self::limited(limits()).await
    }

    pub async fn limited(limits: Limits) -> Self {
        let guest = tokio::task::spawn_blocking(Guest::start).await.unwrap();
        let endpoint = guest.sshd.endpoint_at("root", guest.port());
        let book = Arc::new(Book {
            members: Mutex::default(),
            open: Mutex::new(Some(false)),
            asked: Mutex::default(),
            read: Mutex::default(),
            pushed: Mutex::default(),
            begun: Notify::new(),
            followed: Mutex::default(),
            stopped: Mutex::default(),
            guest: (guest.key(), endpoint),
        });
        let host_key = ControlKey::generate("git").unwrap();
        let keeper: Arc<dyn Keeper> = Arc::clone(&book) as Arc<dyn Keeper>;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let url = "ssh://git@corpus.test:2222";
        let server = GitServer::with(any, url, &host_key, keeper, limits).await.unwrap();
        let address = server.address().unwrap();
        let dir = tempfile::Builder::new().prefix("corpus-git-").tempdir().unwrap();
        let known = format!("[127.0.0.1]:{} {}\n", address.port(), host_key.public_line().unwrap());
        write(&dir.path().join("known_hosts"), &known, 0o600);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.run(stop.clone()));
        let world = Self { guest, book, address, dir, stop, serving };
        world.member("mia");
        world
    }

    /// A member with a key, and the key's fingerprint.
    pub fn member(&self, login: &str) -> String {
        let fingerprint = self.key(login);
        let principal = Principal {
            id: UserId(Uuid::now_v7()),
            login: login.parse().unwrap(),
            display_name: login.to_owned(),
            ops: false,
            roles: BTreeMap::from([(SHOP, ProjectRole::Maintainer)]),
        };
        self.book.members.lock().unwrap().insert(fingerprint.clone(), KeyHolder { principal, epoch: 0 });
        fingerprint
    }

    /// What a member is in the project from now on.
    pub fn role(&self, login: &str, role: Option<ProjectRole>) {
        let mut members = self.book.members.lock().unwrap();
        let holder = members.values_mut().find(|holder| holder.principal.login.as_str() == login).unwrap();
        holder.principal.roles = role.map(|role| (SHOP, role)).into_iter().collect();
    }

    /// A key that is nobody's.
    pub fn key(&self, name: &str) -> String {
        let key: PrivateKey = new_host_key();
        write(&self.dir.path().join(name), &key.to_openssh(LineEnding::LF).unwrap(), 0o600);
        key.public_key().fingerprint(HashAlg::Sha256).to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("ssh://git@127.0.0.1:{}/{path}", self.address.port())
    }

    fn ssh(&self, key: &str) -> Vec<String> {
        let dir = self.dir.path().display();
        let options = [
            format!("UserKnownHostsFile={dir}/known_hosts"),
            format!("IdentityFile={dir}/{key}"),
            "IdentitiesOnly=yes".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "BatchMode=yes".to_owned(),
            "KexAlgorithms=curve25519-sha256".to_owned(),
        ];
        let options = options.into_iter().flat_map(|option| ["-o".to_owned(), option]);
        ["ssh".to_owned(), "-F".to_owned(), "none".to_owned()].into_iter().chain(options).collect()
    }

    /// A working copy with one commit on `main`.
    pub fn copy(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        run_git(&["init", "--quiet", "--initial-branch=main", path.to_str().unwrap()]);
        commit(&path, "index.html", b"one");
        path
    }

    /// Git, by the key of this name.
    pub fn git(&self, key: &str, args: &[&str]) -> Command {
        let mut git = git_command(args);
        git.env("GIT_SSH_COMMAND", self.ssh(key).join(" "));
        git
    }

    /// Plain ssh, by the key of this name.
    pub fn plain_ssh(&self, key: &str, args: &[&str]) -> Command {
        let words = self.ssh(key);
        let mut ssh = command(&words[0]);
        ssh.args(&words[1..]).args(["-p", &self.address.port().to_string()]).args(args);
        ssh
    }

    /// Pushes `main` of a working copy to the project's prod.
    pub async fn push(&self, key: &str, copy: &std::path::Path) -> Output {
        let push = self.git(key, &["-C", copy.to_str().unwrap(), "push", &self.url("shop/prod"), "main"]);
        ended(push).await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
        self.serving.abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "the client under test is a process")]
pub fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn git_command(args: &[&str]) -> Command {
    let mut git = command("git");
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").env("LC_ALL", "C");
    for side in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{side}_NAME"), "Mia").env(format!("GIT_{side}_EMAIL"), "mia@corpus.test");
    }
    git.args(args);
    git
}

/// Commits a file of this content in a working copy.
pub fn commit(copy: &std::path::Path, file: &str, content: &[u8]) {
    std::fs::write(copy.join(file), content).unwrap();
    let at = copy.to_str().unwrap();
    run_git(&["-C", at, "add", "."]);
    run_git(&["-C", at, "commit", "--quiet", "-m", "a change"]);
}

/// Git on this machine, which must succeed.
pub fn run_git(args: &[&str]) -> String {
    let output = git_command(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs a command to its end, but not for ever.
pub async fn ended(mut command: Command) -> Output {
    let child = command.spawn().unwrap();
    let id = child.id().to_string();
    let waiting = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    if let Ok(output) = tokio::time::timeout(PATIENCE, waiting).await {
        return output.unwrap();
    }
    drop(self::command("kill").arg(id).status());
    panic!("{command:?} did not end");
}

/// What a command said on its standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for something to be so.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "not so in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
