//! The server under test, its members, and the git client.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use corpus_domain::{ProjectRole, UserId};
use corpus_fleet::ControlKey;
use corpus_fleet::testing::sshd::{new_host_key, write};
use russh::keys::ssh_key::LineEnding;
use russh::keys::{HashAlg, PrivateKey};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::backend::{Account, TestBackend};
use crate::testing::client::{WAIT_LIMIT, command, commit, ended, git_command, run_git, said};
use crate::testing::guest::Guest;
use crate::{Backend, GitServer, Limits, Member};

pub struct World {
    pub guest: Guest,
    pub backend: Arc<TestBackend>,
    pub address: SocketAddr,
    pub dir: TempDir,
    pub stop: CancellationToken,
    pub serving: JoinHandle<()>,
}

/// Limits that a slow machine keeps too.
pub fn limits() -> Limits {
    Limits { guest_start: Duration::from_secs(30), recheck: Duration::from_millis(300), ..Limits::default() }
}

impl World {
    pub async fn start() -> Self {
        Self::limited(limits()).await
    }

    pub async fn limited(limits: Limits) -> Self {
        let guest = tokio::task::spawn_blocking(Guest::start).await.unwrap();
        let endpoint = guest.sshd.endpoint_at("root", guest.port());
        let backend = TestBackend::new(guest.key(), endpoint);
        let host_key = ControlKey::generate("git").unwrap();
        let asked: Arc<dyn Backend> = Arc::clone(&backend) as Arc<dyn Backend>;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = GitServer::bind(any, "ssh://git@corpus.test:2222", &host_key, asked, limits).await.unwrap();
        let address = server.address().unwrap();
        let dir = tempfile::Builder::new().prefix("corpus-git-").tempdir().unwrap();
        let known = format!("[127.0.0.1]:{} {}\n", address.port(), host_key.public_line().unwrap());
        write(&dir.path().join("known_hosts"), &known, 0o600);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.run(stop.clone()));
        let world = Self { guest, backend, address, dir, stop, serving };
        world.member("mia");
        world
    }

    /// A member with a key, and the key's fingerprint.
    pub fn member(&self, login: &str) -> String {
        let fingerprint = self.key(login);
        let member = Member { id: UserId(Uuid::now_v7()), login: login.parse().unwrap(), epoch: 0 };
        let account = Account { member, role: Some(ProjectRole::Maintainer) };
        self.backend.accounts.lock().unwrap().insert(fingerprint.clone(), account);
        fingerprint
    }

    /// What a member is in the project from now on.
    pub fn role(&self, login: &str, role: Option<ProjectRole>) {
        let mut accounts = self.backend.accounts.lock().unwrap();
        accounts.values_mut().find(|account| account.member.login.as_str() == login).unwrap().role = role;
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

    /// The same, which is taken.
    pub async fn pushes(&self, key: &str, copy: &std::path::Path) {
        let pushed = self.push(key, copy).await;
        assert!(pushed.status.success(), "{}", said(&pushed));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
        self.serving.abort();
    }
}

/// Waits for something to be so.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < WAIT_LIMIT, "not so in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
