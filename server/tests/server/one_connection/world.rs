//! A controller and its pages on a pool of one connection, and rows that only jobs make.

#![expect(clippy::disallowed_methods, reason = "keys are made by the real program")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use corpus_backup::Repository;
use corpus_controller::seal::{Purpose, SealKeys};
use corpus_controller::ssh_keys::NAMESPACE;
use corpus_controller::{Controller, ImageNames, Parts, Rules, Settings, SignIn};
use corpus_database::Db;
use corpus_dns::{Challenge, DnsError, DnsProvider, Owner, Providers, Record, Removal, Zone};
use corpus_domain::DnsName;
use corpus_server::login::Accounts;
use corpus_server::web::{self, Web};
use secrecy::{ExposeSecret, SecretString};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::settings;

pub const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF mia@laptop";

/// A DNS server that does what it is told.
struct Willing;

#[async_trait]
impl DnsProvider for Willing {
    async fn check(&self) -> Result<(), DnsError> {
        Ok(())
    }
    async fn zones(&self) -> Result<Vec<Zone>, DnsError> {
        Ok(Vec::new())
    }
    async fn ensure_zone(&self, _: &DnsName) -> Result<(), DnsError> {
        Ok(())
    }
    async fn remove_zone(&self, _: &DnsName) -> Result<Removal, DnsError> {
        Ok(Removal::Removed)
    }
    async fn made_by_others(&self, _: &DnsName, _: &Owner) -> Result<Option<String>, DnsError> {
        Ok(None)
    }
    async fn ensure_record(&self, _: &Record) -> Result<(), DnsError> {
        Ok(())
    }
    async fn remove_record(&self, _: &DnsName, _: &Owner) -> Result<Removal, DnsError> {
        Ok(Removal::Removed)
    }
    async fn ensure_challenge(&self, _: &Challenge) -> Result<(), DnsError> {
        Ok(())
    }
    async fn remove_challenge(&self, _: &Challenge) -> Result<Removal, DnsError> {
        Ok(Removal::Removed)
    }
}

pub struct World {
    pub router: Router,
    pub admin: String,
    controller: Controller,
    /// Another pool, for what no form does.
    beside: PgPool,
    folder: TempDir,
}

/// A folder of hooks with one in it.
fn hook_in(folder: &Path) -> PathBuf {
    let hooks = folder.join("hooks");
    let stage = hooks.join("guest/guest.ping.after");
    fs::create_dir_all(&stage).unwrap();
    let file = stage.join("10-monitoring");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    for path in [&file, &stage, &hooks.join("guest"), &hooks] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    hooks
}

impl World {
    pub async fn new(beside: PgPool) -> Self {
        let folder = TempDir::new().unwrap();
        let settings_of_server = settings(&beside, folder.path(), "");
        let options = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(3));
        let pool = options.connect_with((*beside.connect_options()).clone()).await.unwrap();
        let db = Db::from(pool);
        let of_controller = Settings {
            name: "test".to_owned(),
            network: "10.5.0.1/16".parse().unwrap(),
            bridge: "lxcbr1".to_owned(),
            agent_binary: folder.path().join("agent"),
            image_folder: folder.path().to_owned(),
            made_images: folder.path().join("made-images"),
            images: ImageNames::default(),
            salt_bundle: Some("/nowhere/salt.tar.gz".into()),
            hooks_folder: hook_in(folder.path()),
            git_url: Some("ssh://git@corpus.test:2222".to_owned()),
            public_url: "https://corpus.test".to_owned(),
            rules: Rules::default(),
            audit_days: None,
            certificates: corpus_controller::CertificateSettings::default(),
            access_addresses: corpus_controller::AddressDetail::default(),
            intrusion: corpus_controller::IntrusionSettings::default(),
            guest_backups: Some(folder.path().join("backups").into()),
            own_backups: Some(corpus_controller::OwnBackups { place: "/nonexistent".to_owned(), every_hours: None }),
            surroundings: corpus_controller::Surroundings {
                webhooks: vec!["192.0.2.0/24".parse().unwrap()],
                mail: Some(corpus_controller::GuestMailSettings {
                    relay: "192.0.2.25:25".parse().unwrap(),
                    messages_per_hour: 100,
                    max_message_bytes: 1 << 20,
                }),
                ..corpus_controller::Surroundings::default()
            },
        };
        let seal = SealKeys::load_or_create(&folder.path().join("seal.key")).unwrap();
        let dns = Providers::one(Arc::new(Willing), ([127, 0, 0, 1], 53).into(), None);
        let world = corpus_dns::world::World::default();
        let parts = Parts { db: db.clone(), settings: of_controller, dns, world, groups: None, seal };
        let controller = Controller::open(parts).await.unwrap();
        let accounts = Accounts::new(db);
        let admin = accounts.ensure_admin().await.unwrap().unwrap().expose_secret().to_owned();
        let web = Web::new(settings_of_server, controller.clone(), accounts, None, CancellationToken::new());
        Self { router: web::router(web), admin, controller, beside, folder }
    }

    /// A node that takes guests.
    pub async fn node(&self) -> String {
        let id = Uuid::now_v7().to_string();
        self.run(&format!(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge, slots,
                 reachability)
             values ('{id}', '192.0.2.1', 22, 'root', '{}', '{{dev}}', 'ready', '10.5.0.1/16', 'lxcbr1', 16, 'reachable')",
            KEY.rsplit_once(' ').unwrap().0,
        ))
        .await;
        id
    }

    /// Another guest that runs.
    pub async fn guest(&self, node: &str) -> String {
        let id = Uuid::now_v7().to_string();
        self.run(&format!(
            "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state,
                 ip, ssh_port, id_range, host_key)
             select '{id}', 'other.example.org', '{node}', id, 'dev', 'lxc', 'debian-12', 'dir', 'small', 'masterless',
                 'running', '10.5.0.10', 40002, 1073807360, '{}' from projects",
            KEY.rsplit_once(' ').unwrap().0,
        ))
        .await;
        id
    }

    /// A backup in the repository of the one project: its name there.
    pub async fn snapshot(&self) -> String {
        let project: Uuid = self.one("select id::text from projects").await.parse().unwrap();
        let seal = SealKeys::load_or_create(&self.folder.path().join("seal.key")).unwrap();
        let password = SecretString::from("correct horse");
        let sealed = seal.seal(&password, &Purpose::of("backup-repository", project)).unwrap();
        sqlx::query(
            "insert into backup_repositories (project_id, password_sealed) values ($1, $2)
             on conflict (project_id) do update set password_sealed = $2",
        )
        .bind(project)
        .bind(sealed.to_bytes())
        .execute(&self.beside)
        .await
        .unwrap();
        let from = self.folder.path().join("guest");
        fs::create_dir_all(from.join("etc")).unwrap();
        fs::write(from.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        let place = self.folder.path().join("backups").join(project.to_string());
        let repository = Repository::at(place.into(), password);
        repository.save(&from, "guest", "node").unwrap().snapshot.id
    }

    /// Somebody who has signed in.
    pub async fn member(&self, login: &str) {
        let who = SignIn {
            realm: "ldap",
            login: login.parse().unwrap(),
            display_name: login.to_owned(),
            mail: None,
            ops: false,
            roles: Vec::new(),
        };
        self.controller.sign_in(who, "127.0.0.1").await.unwrap();
    }

    /// A key of somebody, as a file beside its public half.
    pub fn key(&self) -> PathBuf {
        let path = self.folder.path().join("key");
        let made =
            Command::new("ssh-keygen").args(["-q", "-N", "", "-t", "ed25519", "-f"]).arg(&path).status().unwrap();
        assert!(made.success());
        path
    }

    /// What `ssh-keygen -Y sign` answers for a text.
    pub fn sign(&self, key: &Path, text: &str) -> String {
        let file = self.folder.path().join("text");
        std::fs::write(&file, text).unwrap();
        let signing =
            Command::new("ssh-keygen").args(["-q", "-Y", "sign", "-n", NAMESPACE, "-f"]).arg(key).arg(&file).status();
        assert!(signing.unwrap().success());
        std::fs::read_to_string(file.with_extension("sig")).unwrap()
    }

    pub async fn run(&self, statement: &str) {
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&self.beside).await.unwrap();
    }

    pub async fn one(&self, query: &'static str) -> String {
        sqlx::query_scalar(query).fetch_one(&self.beside).await.unwrap()
    }
}
