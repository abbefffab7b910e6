//! Members, guests and the controller that the tests of projects share.

use std::sync::Arc;

use corpus_domain::{DeploymentId, Environment, GuestId, IdRange, ProjectCreators, ProjectId, ProjectRole, UserId};
use sqlx::PgPool;
use uuid::Uuid;

use crate::authz::{Denied, Principal};
use crate::dns::DnsProvider;
use crate::seal::SealKeys;
use crate::{Controller, Error, Parts, ProjectGroups, Rules, Settings, SignIn};

pub const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF mia@laptop";

pub struct World {
    pub controller: Controller,
    pub db: PgPool,
    node: Uuid,
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
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("agent"), "no agent").unwrap();
        let settings = Settings {
            name: "test".to_owned(),
            network: "10.5.0.1/16".parse().unwrap(),
            bridge: "lxcbr1".to_owned(),
            agent_binary: files.path().join("agent"),
            image_folder: files.path().to_owned(),
            authority: "127.0.0.1:53".parse().unwrap(),
            salt_bundle: None,
            git_url: Some("ssh://git@corpus.test:2222".to_owned()),
            surroundings: crate::Surroundings::default(),
            rules,
        };
        let seal = SealKeys::load_or_create(&files.path().join("seal.key")).unwrap();
        let controller = Controller::open(Parts { db: db.clone().into(), settings, dns, groups, seal }).await.unwrap();
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

    /// A project that the member made.
    pub async fn project(&self, owner: &mut Principal, name: &str) -> ProjectId {
        let id = self.controller.create_project(owner, name.parse().unwrap()).await.unwrap();
        *owner = self.principal(owner.id).await;
        id
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
        self.controller.set_up_environment(owner, project, environment, guest).await.unwrap();
        self.run("update environments set state = 'ready'").await;
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

    pub async fn state_of(&self, id: DeploymentId) -> String {
        sqlx::query_scalar("select state from deployments where id = $1").bind(id.0).fetch_one(&self.db).await.unwrap()
    }
}

#[track_caller]
pub fn forbidden<T>(outcome: Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::Denied(Denied::Forbidden))), "{:?}", outcome.err());
}

#[track_caller]
pub fn hidden<T>(outcome: Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::Denied(Denied::NotFound))), "{:?}", outcome.err());
}

#[track_caller]
pub fn at_field<T>(outcome: Result<T, Error>, expected: &str, says: &str) {
    match outcome.err() {
        Some(Error::Field { field, message }) => {
            assert_eq!(field, expected, "{message}");
            assert!(message.contains(says), "{message}");
        }
        other => panic!("no error at {expected}: {other:?}"),
    }
}

#[track_caller]
pub fn conflict<T>(outcome: Result<T, Error>, says: &str) {
    match outcome.err() {
        Some(Error::Conflict(message)) => assert!(message.contains(says), "{message}"),
        other => panic!("no conflict: {other:?}"),
    }
}
