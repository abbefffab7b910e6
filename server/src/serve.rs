//! The running server: everything built in order, and taken down in the reverse one.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use corpus_controller::dns::{DnsError, DnsProvider, PowerDns, PowerDnsSettings};
use corpus_controller::jobs::{Engine, EngineConfig};
use corpus_controller::seal::{SealError, SealKeys};
use corpus_controller::{Controller, Parts};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::{Dns, Settings};
use crate::database::{Database, DatabaseError};
use crate::login::{Accounts, Directory, DirectoryError, LocalError, Login, Watch};
use crate::web::{self, Web};
use crate::{pages, sessions};

/// How long requests may still take once the server is told to end, and then the steps of jobs.
const GRACE: Duration = Duration::from_secs(10);

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
    /// The data folder can't be made.
    #[error("data_folder can't be made")]
    DataFolder(#[source] std::io::Error),
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
    stopping: CancellationToken,
    /// Asks the directory about members, so often; none without a directory.
    watch: Option<(Watch, Duration)>,
    /// The password of the administrator if it was made just now.
    pub new_admin: Option<SecretString>,
}

impl Server {
    /// Builds everything: what is missing stops the start before anything is served.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let address = settings.listen;
        let listening = TcpListener::bind(address).await;
        let listener = listening.map_err(|source| StartError::Listen { address, source })?;
        std::fs::create_dir_all(&settings.data_folder).map_err(StartError::DataFolder)?;
        let directory = settings.ldap.clone().map(Directory::new).transpose()?;
        let database = Database::open(&settings).await?;
        let accounts = Accounts::new(database.pool.clone());
        let new_admin = accounts.ensure_admin().await?;
        let (controller, engine) = Controller::start(parts(&settings, &database)?, &EngineConfig::default()).await?;
        let stopping = CancellationToken::new();
        let every = settings.ldap.as_ref().map(|ldap| ldap.check);
        let watch = directory.clone().map(|directory| Watch::new(directory, controller.clone())).zip(every);
        let web = Web {
            controller: controller.clone(),
            leptos: pages::leptos_options(&settings.site_folder),
            settings: Arc::new(settings),
            login: Arc::new(Login::new(accounts, directory)),
            pool: database.pool.clone(),
            stopping: stopping.clone(),
        };
        Ok(Self { listener, router: web::router(web), controller, engine, database, stopping, watch, new_admin })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `end`, then lets requests and steps of jobs finish and stops what it started.
    pub async fn run(self, end: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
        let cleaning = tokio::spawn(sessions::Store::new(self.database.pool.clone()).keep_clean());
        let (controller, stopping) = (self.controller, self.stopping.clone());
        let watching = tokio::spawn(async move { controller.watch_nodes(stopping).await });
        let asking = self.watch.map(|(watch, every)| tokio::spawn(watch.run(every, self.stopping.clone())));
        let stopping = self.stopping.clone();
        let told = async move {
            end.await;
            tracing::info!("shutting down");
            stopping.cancel();
        };
        let service = self.router.into_make_service_with_connect_info::<SocketAddr>();
        let serving = axum::serve(self.listener, service).with_graceful_shutdown(told);
        let too_long = async {
            self.stopping.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        let served = tokio::select! {
            served = serving.into_future() => served,
            () = too_long => Ok(()),
        };
        cleaning.abort();
        watching.abort();
        if let Some(asking) = asking {
            asking.abort();
        }
        self.engine.shutdown(GRACE).await;
        self.database.close().await;
        served
    }
}

fn parts(settings: &Settings, database: &Database) -> Result<Parts, StartError> {
    let authority = settings.dns.as_ref().map_or(SocketAddr::from(([127, 0, 0, 1], 53)), |dns| dns.server);
    let decided = corpus_controller::Settings {
        name: settings.public_url.host_str().unwrap_or("corpus").to_owned(),
        network: settings.guests.network,
        bridge: settings.guests.bridge.clone(),
        agent_binary: settings.agent_binary.clone(),
        image_folder: settings.image_folder.clone(),
        authority,
    };
    let dns = settings.dns.as_ref().map(power_dns).transpose()?;
    let seal = SealKeys::load_or_create(&settings.seal_key_file)?;
    Ok(Parts { db: database.pool.clone(), settings: decided, dns, seal })
}

fn power_dns(dns: &Dns) -> Result<Arc<dyn DnsProvider>, DnsError> {
    Ok(Arc::new(PowerDns::new(PowerDnsSettings {
        api_url: dns.api_url.clone(),
        api_key: dns.api_key.clone(),
        server_id: dns.server_id.clone(),
        nameservers: dns.nameservers.clone(),
    })?))
}

/// The lines that show a new password of the administrator, this once.
pub fn announcement(password: &SecretString) -> String {
    let line = "=".repeat(72);
    let password = password.expose_secret();
    format!("{line}\nThe local administrator:   login admin   password {password}\nIt is shown only now.\n{line}")
}
