//! Members, guests and the controller that the tests of projects share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use corpus_api::Problem;
use corpus_api::deployments::{Deploy, DeploymentAccepted, Phases};
use corpus_api::environments::SetUpEnvironment;
use corpus_api::projects::{CreateProject, GetProdEntry, GetProject, Project, SetProdEntry};
use corpus_domain::{
    DeploymentId, Environment, GuestId, IdRange, JobId, JobState, ProjectCreators, ProjectId, ProjectRole, UserId,
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::dns::powerdns_server::PowerDnsServer;
use crate::dns::world::World as DnsWorld;
use crate::dns::{DnsProvider, Providers};
use crate::jobs::testing::{Fault, Faults, Trial};
use crate::seal::SealKeys;
use crate::services::Services;
use crate::{Ask, Controller, Handle, ImageNames, Parts, ProjectGroups, Rules, Settings, SignIn};
use corpus_api::Principal;

pub const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF mia@laptop";

pub struct World {
    pub controller: Controller,
    pub db: PgPool,
    node: Uuid,
}

/// A controller that runs no job: there is no agent, and no image.
pub async fn controller(
    db: &PgPool,
    dns: Option<Arc<dyn DnsProvider>>,
    groups: Option<Arc<dyn ProjectGroups>>,
    rules: Rules,
) -> Controller {
    // Nobody answers there for what was written.
    let dns = dns.map(|dns| Providers::one(dns, ([127, 0, 0, 1], 53).into(), None));
    opened(db, (dns, groups), (crate::Surroundings::default(), rules)).await
}

type Others = (Option<Providers>, Option<Arc<dyn ProjectGroups>>);

async fn opened(db: &PgPool, others: Others, around: (crate::Surroundings, Rules)) -> Controller {
    opened_in(db, others, around, DnsWorld::default()).await
}

async fn opened_in(
    db: &PgPool,
    (dns, groups): Others,
    (surroundings, rules): (crate::Surroundings, Rules),
    world: DnsWorld,
) -> Controller {
    let certificates = crate::CertificateSettings::default();
    opened_with(db, (dns, groups), (surroundings, rules), world, certificates, Folders::default()).await
}

/// What lies on the controller's machine.
#[derive(Default)]
struct Folders {
    images: Option<(PathBuf, ImageNames)>,
    backups: Option<PathBuf>,
}

async fn opened_with(
    db: &PgPool,
    (dns, groups): Others,
    (surroundings, rules): (crate::Surroundings, Rules),
    world: DnsWorld,
    certificates: crate::CertificateSettings,
    folders: Folders,
) -> Controller {
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("agent"), "no agent").unwrap();
    let (image_folder, images) = folders.images.unwrap_or_else(|| (files.path().to_owned(), ImageNames::default()));
    let settings = Settings {
        name: "test".to_owned(),
        network: "10.5.0.1/16".parse().unwrap(),
        bridge: "lxcbr1".to_owned(),
        agent_binary: files.path().join("agent"),
        image_folder,
        made_images: files.path().join("made-images"),
        images,
        salt_bundle: Some(files.path().join("salt.tar.gz")),
        hooks_folder: "/nonexistent".into(),
        git_url: Some("ssh://git@corpus.test:2222".to_owned()),
        public_url: "https://corpus.test".to_owned(),
        surroundings,
        rules,
        audit_days: Some(30),
        certificates,
        access_addresses: crate::AddressDetail::default(),
        intrusion: crate::IntrusionSettings::default(),
        guest_backups: Some(folders.backups.unwrap_or_else(|| "/nonexistent/backups".into()).into()),
        own_backups: Some(crate::OwnBackups { place: "/mnt/backup".to_owned(), every_hours: Some(24) }),
    };
    let seal = SealKeys::load_or_create(&files.path().join("seal.key")).unwrap();
    let dns = dns.unwrap_or_default();
    Controller::open(Parts { db: db.clone().into(), settings, dns, world, groups, seal }).await.unwrap()
}

impl World {
    /// Where every member makes projects.
    pub async fn new(db: PgPool) -> Self {
        Self::with(db, None, None, Self::rules()).await
    }

    pub fn rules() -> Rules {
        Rules { project_creators: ProjectCreators::Members, ..Rules::default() }
    }

    pub async fn with(
        db: PgPool,
        dns: Option<Arc<dyn DnsProvider>>,
        groups: Option<Arc<dyn ProjectGroups>>,
        rules: Rules,
    ) -> Self {
        let controller = controller(&db, dns, groups, rules).await;
        Self::of(db, controller).await
    }

    /// Where this server holds our zones, and answers as the world does too.
    pub async fn asking(db: PgPool, dns: &PowerDnsServer, rules: Rules) -> Self {
        let providers = Providers::one(Arc::new(dns.provider()), dns.dns, None);
        let around = (crate::Surroundings::default(), rules);
        let controller = opened_in(&db, (Some(providers), None), around, DnsWorld::new(vec![dns.dns])).await;
        Self::of(db, controller).await
    }

    /// With these things around it.
    pub async fn around(db: PgPool, surroundings: crate::Surroundings, rules: Rules) -> Self {
        let controller = opened(&db, (None, None), (surroundings, rules)).await;
        Self::of(db, controller).await
    }

    /// Where certificates are had like this.
    pub async fn certified(db: PgPool, certificates: crate::CertificateSettings) -> Self {
        let around = (crate::Surroundings::default(), Self::rules());
        let folders = Folders::default();
        let controller = opened_with(&db, (None, None), around, DnsWorld::default(), certificates, folders).await;
        Self::of(db, controller).await
    }

    /// With archives of these images in a folder.
    pub async fn with_images(db: PgPool, folder: PathBuf, names: ImageNames) -> Self {
        let around = (crate::Surroundings::default(), Self::rules());
        let certificates = crate::CertificateSettings::default();
        let folders = Folders { images: Some((folder, names)), ..Folders::default() };
        let controller = opened_with(&db, (None, None), around, DnsWorld::default(), certificates, folders).await;
        Self::of(db, controller).await
    }

    /// With backups of guests in a folder.
    pub async fn with_backups(db: PgPool, folder: PathBuf) -> Self {
        let around = (crate::Surroundings::default(), Self::rules());
        let certificates = crate::CertificateSettings::default();
        let folders = Folders { backups: Some(folder), ..Folders::default() };
        let controller = opened_with(&db, (None, None), around, DnsWorld::default(), certificates, folders).await;
        Self::of(db, controller).await
    }

    async fn of(db: PgPool, controller: Controller) -> Self {
        let node = Uuid::now_v7();
        sqlx::query(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
             values ($1, '192.0.2.1', 22, 'root', $2, '{dev}', 'ready', '10.5.0.1/16', 'lxcbr1')",
        )
        .bind(node)
        .bind(KEY.rsplit_once(' ').unwrap().0)
        .execute(&db)
        .await
        .unwrap();
        Self { controller, db, node }
    }

    /// A member, as the directory says.
    pub async fn member(&self, login: &str, roles: &[(&str, ProjectRole)]) -> Principal {
        let id = self.sign_in(login, false, roles).await;
        self.principal(id).await
    }

    pub async fn ops(&self) -> Principal {
        let id = self.sign_in("ops", true, &[]).await;
        self.principal(id).await
    }

    pub async fn sign_in(&self, login: &str, ops: bool, roles: &[(&str, ProjectRole)]) -> UserId {
        let who = SignIn {
            realm: "ldap",
            login: login.parse().unwrap(),
            display_name: login.to_owned(),
            mail: None,
            ops,
            roles: roles.iter().map(|(project, role)| (project.parse().unwrap(), *role)).collect(),
        };
        self.controller.sign_in(who, "127.0.0.1").await.unwrap()
    }

    pub async fn principal(&self, id: UserId) -> Principal {
        self.controller.principal(id).await.unwrap().unwrap()
    }

    /// Asks for an operation.
    pub async fn ask<O: Ask>(&self, who: &Principal, operation: O) -> Result<O::Output, Problem>
    where
        Controller: Handle<O>,
    {
        self.controller.call(who, operation, None).await
    }

    /// A project that the member made.
    pub async fn project(&self, owner: &mut Principal, name: &str) -> ProjectId {
        self.ask(owner, CreateProject { name: name.parse().unwrap() }).await.unwrap();
        *owner = self.principal(owner.id).await;
        let id = sqlx::query_scalar("select id from projects where name = $1").bind(name);
        ProjectId(id.fetch_one(&self.db).await.unwrap())
    }

    /// A project with its environments.
    pub async fn seen(&self, who: &Principal, name: &str) -> Result<Project, Problem> {
        self.ask(who, GetProject { project: name.parse().unwrap() }).await
    }

    /// Deploys what the branch holds.
    pub async fn deploy(
        &self,
        who: &Principal,
        project: &str,
        environment: Environment,
    ) -> Result<DeploymentAccepted, Problem> {
        self.ask(who, head(project, environment)).await
    }

    /// Lets developers into prod, or not any more, as one who looks first.
    pub async fn set_prod_entry(&self, who: &Principal, project: &str, developers: bool) -> Result<(), Problem> {
        let project: corpus_domain::ProjectName = project.parse().unwrap();
        let version = self.ask(&self.ops().await, GetProdEntry { project: project.clone() }).await?.version;
        self.ask(who, SetProdEntry { project, developers, version }).await.map(drop)
    }

    /// A guest that runs.
    pub async fn guest(&self, project: ProjectId, environment: Environment) -> GuestId {
        let id = Uuid::now_v7();
        let count: i64 = sqlx::query_scalar("select count(*) from guests").fetch_one(&self.db).await.unwrap();
        sqlx::query(
            "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state,
                 ip, ssh_port, host_key, id_range)
             values ($1, $2, $3, $4, $5, 'lxc', 'debian', 'dir', 'small', 'masterless', 'running', $6, $7, $8, $9)",
        )
        .bind(id)
        .bind(format!("guest{count}.example.org"))
        .bind(self.node)
        .bind(project.0)
        .bind(environment.as_str())
        .bind(format!("10.5.0.{}", 10 + count))
        .bind(40_000 + i32::try_from(count).unwrap())
        .bind(KEY.rsplit_once(' ').unwrap().0)
        .bind((count << 16) + i64::from(IdRange::LOWEST))
        .execute(&self.db)
        .await
        .unwrap();
        GuestId(id)
    }

    /// An environment that can be pushed to, without a job on it.
    pub async fn environment(&self, owner: &Principal, project: ProjectId, environment: Environment) -> GuestId {
        let guest = self.guest(project, environment).await;
        let name: String = sqlx::query_scalar("select name from projects where id = $1")
            .bind(project.0)
            .fetch_one(&self.db)
            .await
            .unwrap();
        let project = name.parse().unwrap();
        self.ask(owner, SetUpEnvironment { project, environment: Some(environment), guest }).await.unwrap();
        self.run("update environment_guests set state = 'ready'").await;
        self.run("delete from jobs").await;
        guest
    }

    pub fn node_id(&self) -> corpus_domain::NodeId {
        self.node.into()
    }

    pub async fn run(&self, statement: &'static str) {
        sqlx::query(statement).execute(&self.db).await.unwrap();
    }

    pub async fn count(&self, statement: &'static str) -> i64 {
        sqlx::query_scalar(statement).fetch_one(&self.db).await.unwrap()
    }

    /// Runs a job with a fault until it is over; how it ended, and why. For jobs that need no node, up to the fault.
    pub async fn run_job(&self, job: JobId, fault: Fault) -> (JobState, Option<String>) {
        let config = Trial::<Services>::config(Arc::new(Faults::new(fault)));
        let engine = self.controller.engine(&config);
        for _ in 0..6000 {
            let now = self.controller.jobs.get(job).await.unwrap().job;
            if now.state.is_over() {
                engine.shutdown(Duration::from_secs(5)).await;
                return (now.state, now.error);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the job hangs: {:?}", self.controller.jobs.get(job).await.unwrap().job);
    }

    pub async fn state_of(&self, id: DeploymentId) -> String {
        sqlx::query_scalar("select state from deployments where id = $1").bind(id.0).fetch_one(&self.db).await.unwrap()
    }
}

/// An order to deploy what the branch holds.
pub fn head(project: &str, environment: Environment) -> Deploy {
    let project = project.parse().unwrap();
    Deploy { project, environment, commit: None, archive: None, only: Phases::default(), plain_archive: false }
}

#[track_caller]
fn refused<T>(outcome: Result<T, impl Into<Problem>>, word: &str) -> Problem {
    let problem: Problem = outcome.err().unwrap_or_else(|| panic!("nothing is {word}")).into();
    assert_eq!(problem.word(), word, "{problem:?}");
    problem
}

#[track_caller]
pub fn forbidden<T>(outcome: Result<T, impl Into<Problem>>) {
    refused(outcome, "forbidden");
}

#[track_caller]
pub fn hidden<T>(outcome: Result<T, impl Into<Problem>>) {
    refused(outcome, "not_found");
}

#[track_caller]
pub fn at_field<T>(outcome: Result<T, impl Into<Problem>>, expected: &str, says: &str) {
    let problem: Problem = outcome.err().unwrap_or_else(|| panic!("nothing is wrong")).into();
    assert!(["fields", "taken"].contains(&problem.word()), "{problem:?}");
    let errors = problem.errors;
    let [wrong] = errors.as_slice() else { panic!("not one wrong field: {errors:?}") };
    assert_eq!(wrong.field, expected, "{wrong:?}");
    assert!(wrong.detail.to_lowercase().contains(&says.to_lowercase()), "{wrong:?}");
}

#[track_caller]
pub fn conflict<T>(outcome: Result<T, impl Into<Problem>>, says: &str) {
    let problem = refused(outcome, "conflict");
    assert!(problem.text().to_lowercase().contains(&says.to_lowercase()), "{problem:?}");
}

#[track_caller]
pub fn refusal<T>(outcome: Result<T, impl Into<Problem>>) -> Problem {
    match outcome {
        Err(refused) => refused.into(),
        Ok(_) => panic!("it was not refused"),
    }
}
