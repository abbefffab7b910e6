//! The running server: everything built in order, and taken down in the reverse one.

use std::fs::{File, TryLockError};
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use corpus_controller::mail::{MailError, Mailer};
use corpus_controller::seal::{SealError, SealKeys};
use corpus_controller::{Controller, OwnBackups, Parts, ProjectGroups};
use corpus_dns::world::World;
use corpus_dns::{DnsError, DnsProvider, PowerDns, PowerDnsSettings, Provider, Providers, Rfc2136, Rfc2136Settings};
use corpus_git_server::{GitServer, Limits};
use corpus_jobs::{Engine, EngineConfig};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::{Dns, DnsKind, Git, Settings};
use crate::connections::{self, Places, Times};
use crate::database::{Database, DatabaseError};
use crate::login::{Accounts, Directory, DirectoryError, LocalError, Refused, Watch};
use crate::web::{self, Web};
use crate::{own_backup, sessions, surroundings};
/// How long requests and the steps of jobs may still take once the server is told to end.
const GRACE: Duration = Duration::from_secs(10);
/// How long it still takes connections then, while `/readyz` says 503: the time that a proxy
/// has to notice. Longer than two checks of a proxy that looks once a second.
const NOTICE: Duration = Duration::from_millis(2_500);

/// The server can't start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address can't be listened on.
    #[error("can't listen on {address} (the key listen)")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The git server's address can't be listened on.
    #[error("can't listen on {address} (the key git.listen)")]
    GitListen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The mail settings.
    #[error("the settings of [mail] can't be used")]
    Mail(#[from] MailError),
    /// The data folder can't be made.
    #[error("data_folder can't be made")]
    DataFolder(#[source] std::io::Error),
    /// The private PostgreSQL is for one server.
    #[error(
        "another corpus-server runs with data_folder {0} and the private PostgreSQL in it: give each server its own data_folder, or let several share one PostgreSQL by database_url"
    )]
    InUse(PathBuf),
    /// The database.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The local accounts.
    #[error("the local administrator could not be made")]
    Local(#[from] LocalError),
    /// The directory's settings.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The seal key.
    #[error("the key of seal_key_file can't be used")]
    Seal(#[from] SealError),
    /// The DNS settings.
    #[error("the settings of [dns] can't be used")]
    Dns(#[from] DnsError),
    /// The controller.
    #[error(transparent)]
    Controller(#[from] corpus_controller::Error),
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    router: Router,
    controller: Controller,
    engine: Engine,
    database: Database,
    /// Held as long as the server lives.
    claim: Option<File>,
    stopping: CancellationToken,
    places: Places,
    git: Option<GitServer>,
    mailer: Option<Mailer>,
    refused: Refused,
    /// Asks the directory about members, so often; none without a directory.
    watch: Option<(Watch, Duration)>,
    settings: Arc<Settings>,
    /// The password of the administrator if it was made just now.
    pub new_admin: Option<SecretString>,
}

impl Server {
    /// Builds everything: what is missing stops the start before anything is served.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let address = settings.listen;
        let limits = connections::limits(connections::raise());
        tracing::info!(connections = limits.all, of_one_address = limits.of_one, "the limits of browsers' connections");
        let places = Places::new(limits, settings.trusted_proxies.clone());
        let listening = TcpListener::bind(address).await;
        let listener = listening.map_err(|source| StartError::Listen { address, source })?;
        std::fs::create_dir_all(&settings.data_folder).map_err(StartError::DataFolder)?;
        let claim = settings.database_url.is_none().then(|| claimed(&settings.data_folder)).transpose()?;
        let directory = settings.ldap.clone().map(Directory::new).transpose()?;
        let database = Database::open(&settings).await?;
        let accounts = Accounts::new(database.db.clone());
        let new_admin = accounts.ensure_admin().await?;
        let config = EngineConfig::default();
        tracing::info!(instance = %config.instance, "this server, in the leases of jobs");
        let parts = parts(&settings, &database, directory.clone())?;
        let (controller, engine) = Controller::start(parts, &config).await?;
        let git = open_git(&settings, &controller).await?;
        let mailer = settings.mail.as_ref().map(|mail| Mailer::new(&mail.relay, &mail.from, &settings.public_url));
        let mailer = mailer.transpose()?;
        let stopping = CancellationToken::new();
        let every = settings.ldap.as_ref().map(|ldap| ldap.check);
        let watch = directory.clone().map(|directory| Watch::new(directory, controller.clone())).zip(every);
        let web = Web::new(settings, controller.clone(), accounts, directory, stopping.clone());
        let refused = web.login.refused.clone();
        let settings = Arc::clone(&web.settings);
        let router = web::router(web);
        Ok(Self {
            listener,
            router,
            controller,
            engine,
            database,
            claim,
            stopping,
            places,
            git,
            mailer,
            refused,
            watch,
            settings,
            new_admin,
        })
    }

    /// Where its git server listens.
    pub fn git_address(&self) -> Option<std::io::Result<SocketAddr>> {
        self.git.as_ref().map(GitServer::address)
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `end`. Then `/readyz` says 503 at once, live events end so that browsers open
    /// them elsewhere, and each job goes to another server as soon as its step has ended; a little
    /// later no more connections are taken, and the requests that are there are answered.
    pub async fn run(self, end: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
        let cleaning = tokio::spawn(sessions::Store::new(self.database.db.clone()).keep_clean());
        let mut beside = JoinSet::new();
        let (controller, stopping) = (self.controller.clone(), self.stopping.clone());
        beside.spawn(async move { controller.watch_nodes(stopping).await });
        let (controller, stopping) = (self.controller.clone(), self.stopping.clone());
        beside.spawn(async move { controller.discover_deployments(stopping).await });
        let (controller, stopping) = (self.controller.clone(), self.stopping.clone());
        beside.spawn(async move { controller.forget_what_is_over(stopping).await });
        let (controller, stopping, refused) = (self.controller.clone(), self.stopping.clone(), self.refused.clone());
        beside.spawn(refused.keep(controller, stopping));
        let (controller, stopping, mailer) = (self.controller.clone(), self.stopping.clone(), self.mailer);
        beside.spawn(async move { controller.send_mail(mailer, stopping).await });
        let (controller, stopping) = (self.controller.clone(), self.stopping.clone());
        beside.spawn(controller.send_webhooks(stopping));
        beside.spawn(own_backup::keep(Arc::clone(&self.settings), self.database.clone(), self.stopping.clone()));
        let pushing = self.git.map(|git| git.run(self.stopping.clone()));
        let asking = self.watch.map(|(watch, every)| tokio::spawn(watch.run(every, self.stopping.clone())));
        let stopping = self.stopping.clone();
        tokio::spawn(async move {
            end.await;
            tracing::info!("shutting down");
            stopping.cancel();
        });
        let engine = self.engine;
        let handing_over = async {
            self.stopping.cancelled().await;
            engine.shutdown(GRACE).await;
            tracing::info!("the jobs are handed over");
        };
        let pushing = async {
            if let Some(pushing) = pushing {
                pushing.await;
            }
        };
        let serving = serve(self.listener, self.router, self.places, &self.stopping);
        tokio::join!(serving, handing_over, pushing);
        cleaning.abort();
        beside.abort_all();
        if let Some(asking) = asking {
            asking.abort();
        }
        self.refused.keep_now(&self.controller).await;
        self.database.close().await;
        drop(self.claim);
        Ok(())
    }
}

/// Serves until a little after `stopping`, and until the requests that are there then are answered.
async fn serve(listener: TcpListener, router: Router, places: Places, stopping: &CancellationToken) {
    let noticed = {
        let stopping = stopping.clone();
        async move {
            stopping.cancelled().await;
            tokio::time::sleep(NOTICE).await;
        }
    };
    let too_long = async {
        stopping.cancelled().await;
        tokio::time::sleep(NOTICE + GRACE).await;
    };
    tokio::select! {
        () = connections::serve(listener, router, (places, Times::default()), noticed) => {}
        () = too_long => {}
    }
}

/// Makes sure that no other server lives in the folder. The system forgets the claim of a dead one.
fn claimed(folder: &Path) -> Result<File, StartError> {
    let file = File::create(folder.join("server.lock")).map_err(StartError::DataFolder)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(StartError::DataFolder(error)),
    }
}

async fn open_git(settings: &Settings, controller: &Controller) -> Result<Option<GitServer>, StartError> {
    let Some(git) = &settings.git else { return Ok(None) };
    let (key, backend) = (controller.git_host_key(), Arc::new(controller.clone()));
    let opened = GitServer::bind(git.listen, &git.url(), key, backend, Limits::default()).await;
    let server = opened.map_err(|source| StartError::GitListen { address: git.listen, source })?;
    tracing::info!(address = %git.listen, fingerprint = controller.git_host_fingerprint(), "the git server");
    Ok(Some(server))
}

fn parts(settings: &Settings, database: &Database, directory: Option<Directory>) -> Result<Parts, StartError> {
    let decided = corpus_controller::Settings {
        name: settings.public_url.host_str().unwrap_or("corpus").to_owned(),
        network: settings.guests.network,
        bridge: settings.guests.bridge.clone(),
        agent_binary: settings.agent_binary.clone(),
        image_folder: settings.image_folder.clone(),
        images: settings.images.clone(),
        made_images: settings.made_images.clone(),
        salt_bundle: settings.salt_bundle.clone(),
        hooks_folder: settings.hooks_folder.clone(),
        git_url: settings.git.as_ref().map(Git::url),
        public_url: settings.public_url.origin().ascii_serialization(),
        surroundings: surroundings::of(settings),
        rules: settings.rules(),
        audit_days: settings.audit_days,
        certificates: settings.certificates.clone(),
        access_addresses: settings.access_addresses,
        intrusion: settings.intrusion.clone(),
        guest_backups: settings.guest_backups.clone(),
        own_backups: settings
            .backup
            .as_ref()
            .map(|backup| OwnBackups { place: backup.storage.to_string(), every_hours: backup.every_hours }),
    };
    let dns = providers(&settings.dns)?;
    let world = if settings.resolvers.is_empty() { World::of_system() } else { World::new(settings.resolvers.clone()) };
    let seal = SealKeys::load_or_create(&settings.seal_key_file)?;
    let groups = directory.map(|directory| Arc::new(directory) as Arc<dyn ProjectGroups>);
    Ok(Parts { db: database.db.clone(), settings: decided, dns, world, groups, seal })
}

fn providers(all: &[Dns]) -> Result<Providers, DnsError> {
    let mut providers = Providers::default();
    for one in all {
        // A loopback address is another server on each node: names are then resolved as the world does.
        let resolver = Some(one.resolver_server).filter(|server| !server.ip().is_loopback());
        providers.add(one.name.clone(), Provider { dns: provider(one)?, authority: one.server, resolver });
    }
    Ok(providers)
}

fn provider(dns: &Dns) -> Result<Arc<dyn DnsProvider>, DnsError> {
    Ok(match &dns.kind {
        DnsKind::PowerDns { api_url, api_key, server_id, nameservers } => Arc::new(PowerDns::new(PowerDnsSettings {
            api_url: api_url.clone(),
            api_key: api_key.clone(),
            server_id: server_id.clone(),
            nameservers: nameservers.clone(),
        })?),
        DnsKind::Rfc2136 { key_name, key, zones } => Arc::new(Rfc2136::new(Rfc2136Settings {
            server: dns.server,
            key_name: key_name.clone(),
            key: key.clone(),
            zones: zones.clone(),
        })?),
    })
}

/// The lines that show a new password of the administrator, this once.
pub fn announcement(password: &SecretString) -> String {
    let line = "=".repeat(72);
    let password = password.expose_secret();
    format!("{line}\nThe local administrator:   login admin   password {password}\nIt is shown only now.\n{line}")
}
