//! The server with the real controller behind it: members, roles and rows are those of a database.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use corpus_api::keys::AddKey;
use corpus_domain::{Door, Environment, ProjectRole, UserId};
use corpus_git_server::testing::client::{WAIT_LIMIT, ended, git_command, run_git, said};
use corpus_git_server::testing::guest::Guest;
use corpus_git_server::{GitServer, Limits};
use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use sqlx::PgPool;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::dns::{DnsProvider, Providers};
use crate::nodes::testing::sshd::{new_host_key, start_as_guest, write};
use crate::seal::SealKeys;
use crate::store::audit::{self, Reader};
use crate::{Controller, ImageNames, Parts, Rules, Settings, SignIn};

pub(super) struct Whole {
    pub controller: Controller,
    pub db: PgPool,
    pub guest: Guest,
    url: String,
    dir: TempDir,
    pub stop: CancellationToken,
}

async fn open(db: &PgPool, folder: &Path, dns: Option<Arc<dyn DnsProvider>>) -> Controller {
    std::fs::write(folder.join("agent"), "no agent").unwrap();
    let settings = Settings {
        name: "test".to_owned(),
        network: "10.5.0.1/16".parse().unwrap(),
        bridge: "lxcbr1".to_owned(),
        agent_binary: folder.join("agent"),
        image_folder: folder.to_owned(),
        made_images: folder.join("made-images"),
        images: ImageNames::default(),
        salt_bundle: None,
        hooks_folder: "/nonexistent".into(),
        git_url: Some("ssh://git@corpus.test:2222".to_owned()),
        public_url: "https://corpus.test".to_owned(),
        surroundings: crate::Surroundings::default(),
        rules: Rules::default(),
        audit_days: None,
        certificates: crate::CertificateSettings::default(),
        access_addresses: crate::AddressDetail::default(),
        intrusion: crate::IntrusionSettings::default(),
        own_backups: None,
        guest_backups: None,
    };
    let seal = SealKeys::load_or_create(&folder.join("seal.key")).unwrap();
    let dns = dns.map(|dns| Providers::one(dns, ([127, 0, 0, 1], 53).into(), None)).unwrap_or_default();
    let world = crate::dns::world::World::default();
    Controller::open(Parts { db: db.clone().into(), settings, dns, world, groups: None, seal }).await.unwrap()
}

/// The git server of a controller, on a port of its own.
pub(crate) async fn serve(controller: &Controller) -> GitServer {
    let (any, url) = ("127.0.0.1:0".parse().unwrap(), "ssh://git@corpus.test:2222");
    let backend = Arc::new(controller.clone());
    GitServer::bind(any, url, controller.git_host_key(), backend, Limits::default()).await.unwrap()
}

impl Whole {
    pub async fn start(db: PgPool) -> Self {
        Self::with(db, None).await
    }

    /// With this DNS server.
    pub async fn with(db: PgPool, dns: Option<Arc<dyn DnsProvider>>) -> Self {
        let dir = tempfile::Builder::new().prefix("corpus-git-").tempdir().unwrap();
        let controller = open(&db, dir.path(), dns).await;
        let key = controller.services.control_public_line.clone();
        let guest = tokio::task::spawn_blocking(move || Guest::of(start_as_guest(), &key)).await.unwrap();
        rows(&db, &guest).await;
        let server = serve(&controller).await;
        let address = server.address().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(server.run(stop.clone()));
        let known = controller.git_host_key().public_line().unwrap();
        write(&dir.path().join("known_hosts"), &format!("[127.0.0.1]:{} {known}\n", address.port()), 0o600);
        let url = format!("ssh://git@127.0.0.1:{}", address.port());
        let whole = Self { controller, db, guest, url, dir, stop };
        let copy = whole.copy();
        run_git(&["init", "--quiet", "--initial-branch=main", copy.to_str().unwrap()]);
        std::fs::write(copy.join("index.html"), "one").unwrap();
        run_git(&["-C", copy.to_str().unwrap(), "add", "."]);
        run_git(&["-C", copy.to_str().unwrap(), "commit", "--quiet", "-m", "one"]);
        whole
    }

    fn copy(&self) -> std::path::PathBuf {
        self.dir.path().join("copy")
    }

    pub async fn member(&self, login: &str, role: Option<ProjectRole>) -> UserId {
        let who = SignIn {
            realm: "ldap",
            login: login.parse().unwrap(),
            display_name: login.to_owned(),
            mail: None,
            ops: false,
            roles: role.map(|role| ("shop".parse().unwrap(), role)).into_iter().collect(),
        };
        let id = self.controller.sign_in(who, "127.0.0.1").await.unwrap();
        let principal = self.controller.principal(id).await.unwrap().unwrap();
        let line = self.new_key(login).parse().unwrap();
        self.controller.call(&principal, AddKey { line }, None).await.unwrap();
        id
    }

    /// A key with which [`Self::push`] pushes as `login`: its public line.
    pub fn new_key(&self, login: &str) -> String {
        let key: PrivateKey = new_host_key();
        write(&self.dir.path().join(login), &key.to_openssh(LineEnding::LF).unwrap(), 0o600);
        key.public_key().to_openssh().unwrap()
    }

    pub async fn push(&self, login: &str, path: &str) -> Output {
        self.push_ref(login, path, &["main"]).await
    }

    /// Pushes what these name of the working copy.
    pub async fn push_ref(&self, login: &str, path: &str, refs: &[&str]) -> Output {
        let dir = self.dir.path().display();
        let ssh = format!(
            "ssh -F none -i {dir}/{login} -o UserKnownHostsFile={dir}/known_hosts -o IdentitiesOnly=yes \
             -o StrictHostKeyChecking=yes -o BatchMode=yes -o KexAlgorithms=curve25519-sha256"
        );
        let url = format!("{}/{path}", self.url);
        let copy = self.copy();
        let words = ["-C", copy.to_str().unwrap(), "push", url.as_str()];
        let words: Vec<&str> = words.into_iter().chain(refs.iter().copied()).collect();
        let mut push = git_command(&words);
        push.env("GIT_SSH_COMMAND", ssh);
        ended(push).await
    }

    pub async fn deployments(&self) -> Vec<(Uuid, String)> {
        sqlx::query_as("select id, by from deployments").fetch_all(&self.db).await.unwrap()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Project shop with prod on the guest.
async fn rows(db: &PgPool, guest: &Guest) {
    let (node, project, host) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    let host_key = guest.sshd.host_key().to_string();
    sqlx::query("insert into projects (id, name) values ($1, 'shop')").bind(project).execute(db).await.unwrap();
    sqlx::query(
        "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
         values ($1, '127.0.0.1', 22, 'root', $2, '{prod}', 'ready', '10.5.0.1/16', 'lxcbr1')",
    )
    .bind(node)
    .bind(&host_key)
    .execute(db)
    .await
    .unwrap();
    sqlx::query(
        "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state,
             ssh_port, host_key, ip, id_range)
         values ($1, 'www.shop.test', $2, $3, 'prod', 'lxc', 'debian-12', 'dir', 'small', 'masterless', 'running',
             $4, $5, '10.5.0.2', 1073741824)",
    )
    .bind(host)
    .bind(node)
    .bind(project)
    .bind(i32::from(guest.port()))
    .bind(&host_key)
    .execute(db)
    .await
    .unwrap();
    let environment = "with made as (insert into environments (project_id, environment) values ($1, 'prod'))
        insert into environment_guests (project_id, environment, guest_id, role, state)
        values ($1, 'prod', $2, 'leader', 'ready')";
    sqlx::query(environment).bind(project).bind(host).execute(db).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn members_by_their_keys_and_roles(db: PgPool) {
    let whole = Whole::start(db).await;
    let mia = whole.member("mia", Some(ProjectRole::Maintainer)).await;
    whole.member("dan", Some(ProjectRole::Developer)).await;
    whole.member("eve", None).await;

    let pushed = whole.push("mia", "shop/prod").await;
    assert!(pushed.status.success(), "{}", said(&pushed));
    let asked = corpus_api::audit::ListAudit::default();
    let page = audit::list(&mut whole.db.acquire().await.unwrap(), Reader::Ops, &asked, None, 50).await.unwrap();
    let audited = page.iter().find(|row| row.action == "git.push").unwrap();
    let by = (audited.actor.as_str(), audited.door, audited.subject.as_str(), audited.project.as_deref());
    assert_eq!(by, ("mia", Some(Door::Git), "shop/prod", Some("shop")));

    let refused = whole.push("dan", "shop/prod").await;
    assert!(said(&refused).contains("you must be maintainer of shop"), "{}", said(&refused));
    let nothing = "corpus: no such project or environment, or not yours";
    for path in ["shop/prod", "nothing/prod"] {
        let hidden = whole.push("eve", path).await;
        assert!(said(&hidden).contains(nothing), "{path}: {}", said(&hidden));
    }
    let none = whole.push("mia", "shop/dev").await;
    assert!(said(&none).contains("corpus: project shop has no dev"), "{}", said(&none));

    sqlx::query("update guests set state = 'stopped'").execute(&whole.db).await.unwrap();
    let stopped = whole.push("mia", "shop/prod").await;
    assert!(said(&stopped).contains("is stopped; start it first"), "{}", said(&stopped));

    sqlx::query("update users set disabled_at = now() where id = $1").bind(mia.0).execute(&whole.db).await.unwrap();
    let disabled = whole.push("mia", "shop/prod").await;
    assert!(said(&disabled).contains("Permission denied (publickey)"), "{}", said(&disabled));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_push_that_deploys_has_its_row_while_it_runs(db: PgPool) {
    let whole = Whole::start(db).await;
    let mia = whole.member("mia", Some(ProjectRole::Maintainer)).await;
    // As the hook of the guest does: the deployment is there before the push has ended.
    let (deployment, go_on) = (whole.guest.path("deployment"), whole.guest.path("go-on"));
    whole.guest.before(&format!("echo \"${{10}}\" > {}", deployment.display()));
    whole.guest.hook("pre-receive", &format!("until test -e {}; do sleep 0.05; done", go_on.display()));
    let push = whole.push("mia", "shop/prod");
    tokio::pin!(push);
    let seen = async {
        let began = std::time::Instant::now();
        while whole.deployments().await.is_empty() {
            assert!(began.elapsed() < WAIT_LIMIT, "no row");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = seen => {}
        output = &mut push => panic!("the push has ended before: {}", said(&output)),
    }
    std::fs::write(go_on, "").unwrap();
    assert!(push.await.status.success());
    let id = std::fs::read_to_string(deployment).unwrap().trim().to_owned();
    assert_eq!(whole.deployments().await, [(id.parse().unwrap(), "mia".to_owned())]);
    let by: Option<Uuid> = sqlx::query_scalar("select created_by from jobs").fetch_one(&whole.db).await.unwrap();
    assert_eq!(by, Some(mia.0), "the job that follows it is theirs");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_was_pushed_past_corpus_is_found_once(db: PgPool) {
    let whole = Whole::start(db).await;
    let id = Uuid::now_v7();
    std::fs::write(whole.guest.path("deployment"), id.to_string()).unwrap();
    // Two servers look; one of them reads the guests.
    let other = open(&whole.db, whole.dir.path(), None).await;
    for controller in [whole.controller.clone(), other] {
        let stop = whole.stop.clone();
        tokio::spawn(async move { controller.discover_deployments(stop).await });
    }
    let began = std::time::Instant::now();
    while whole.deployments().await.is_empty() {
        assert!(began.elapsed() < WAIT_LIMIT, "it is not found");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(whole.deployments().await[0].0, id);
    let jobs: i64 = sqlx::query_scalar("select count(*) from jobs").fetch_one(&whole.db).await.unwrap();
    assert_eq!(jobs, 1);
    let observed: bool = sqlx::query_scalar("select observed_at is not null from environment_guests")
        .fetch_one(&whole.db)
        .await
        .unwrap();
    assert!(observed);
    let environment: String =
        sqlx::query_scalar("select environment from deployments").fetch_one(&whole.db).await.unwrap();
    assert_eq!(environment, Environment::Prod.as_str());
}

#[sqlx::test(migrations = "../../migrations")]
async fn all_servers_of_a_database_show_one_key(db: PgPool) {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(&db, dir.path(), None).await, open(&db, dir.path(), None).await);
    assert_eq!(one.git_host_fingerprint(), two.git_host_fingerprint());
    assert_ne!(one.git_host_fingerprint(), one.services.control_key.fingerprint());
    let sealed: Vec<u8> = sqlx::query_scalar("select private_sealed from git_host_keys").fetch_one(&db).await.unwrap();
    assert!(!String::from_utf8_lossy(&sealed).contains("PRIVATE"));
}
