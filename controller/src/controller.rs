//! [`Controller`]: what the server holds, and everything that operations and jobs work with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use corpus_domain::{GuestId, GuestNetwork};
use secrecy::SecretString;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::authz::Principal;
use crate::dns::DnsProvider;
use crate::jobs::{Engine, EngineConfig, JobParams, Jobs, NewJob, StepError};
use crate::nodes::{AgentBinary, ControlKey, Pool, StillLinked};
use crate::seal::{Purpose, SealKeys, Sealed};
use crate::store::{Db, Transaction, control_key, guests, nodes};
use crate::surroundings::Surroundings;
use crate::{Error, ProjectGroups, Result, Rules, sagas, ssh_keys};

/// What the operator decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of this controller, in the comment of its key.
    pub name: String,
    /// The network of a node's guests unless the link form says otherwise.
    pub network: GuestNetwork,
    /// The bridge of a node.
    pub bridge: String,
    /// The static agent binary that is copied to nodes.
    pub agent_binary: PathBuf,
    /// The folder with image archives, `<image>.tar.zst`.
    pub image_folder: PathBuf,
    /// Where the authoritative server of our zones answers, for checks.
    pub authority: SocketAddr,
    /// The bundle of Salt that is brought to guests of projects, `.tar.gz`; none: they have no Salt.
    pub salt_bundle: Option<PathBuf>,
    /// What the address of a project's repositories begins with: `ssh://git@corpus.example.org:2222`;
    /// none: git is not served here.
    pub git_url: Option<String>,
    /// What nodes and guests must know of everything around them.
    pub surroundings: Surroundings,
    /// Who makes projects, and which names are nobody's.
    pub rules: Rules,
}

/// What steps of jobs and operations share.
pub struct Services {
    /// The database.
    pub db: Db,
    /// What the operator decided.
    pub settings: Settings,
    /// The lines to the nodes.
    pub nodes: Pool,
    /// The lines to the guests that environments stand on.
    pub guests: Pool<GuestId>,
    /// The key that opens them all.
    pub control_key: ControlKey,
    /// Its line for `authorized_keys`.
    pub control_public_line: String,
    /// Where zones are held; none when no DNS is configured.
    pub dns: Option<Arc<dyn DnsProvider>>,
    /// Which projects the directory has groups for; none when there is no directory.
    pub groups: Option<Arc<dyn ProjectGroups>>,
    /// What secrets are sealed with.
    pub seal: SealKeys,
    /// The key by which members recognise the git server.
    pub git_host_key: ControlKey,
    /// This server, among those of one database.
    pub instance: Uuid,
    /// Told when nodes must know something else of what is around them.
    pub(crate) surroundings_changed: Notify,
}

impl Services {
    /// Begins a transaction.
    #[track_caller]
    pub(crate) fn begin(&self) -> impl Future<Output = sqlx::Result<Transaction>> + Send + use<> {
        self.db.begin()
    }

    /// Seals a guest's password so that only this guest's row can hold it.
    pub(crate) fn seal_password(&self, guest: GuestId, password: &SecretString) -> Result<Vec<u8>> {
        let sealed = self.seal.seal(password, &Purpose::guest_password(guest));
        Ok(sealed.map_err(|error| internal("the password could not be sealed", error))?.to_bytes())
    }

    /// Opens a guest's sealed password.
    pub(crate) fn open_password(&self, guest: GuestId, sealed: &[u8]) -> Result<SecretString> {
        let opened =
            Sealed::from_bytes(sealed).and_then(|sealed| self.seal.open(&sealed, &Purpose::guest_password(guest)));
        opened
            .map_err(|error| internal("the password could not be opened with the seal keys that are configured", error))
    }

    /// The guest's password: the one of the request, else a generated one, sealed before it is used.
    pub(crate) async fn guest_password(&self, guest: GuestId) -> std::result::Result<SecretString, StepError> {
        let failed = |error: Error| StepError::permanent(error.to_string()).caused_by(error);
        let mut conn = self.db.acquire().await?;
        if let Some(sealed) = guests::password(&mut conn, guest).await? {
            return self.open_password(guest, &sealed).map_err(failed);
        }
        let password = ssh_keys::generate_password();
        let sealed = self.seal_password(guest, &password).map_err(failed)?;
        guests::set_password(&mut conn, guest, &sealed).await?;
        Ok(password)
    }
}

fn internal(message: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Internal { message, source: Box::new(error) }
}

/// The provisioning service; cheap to clone.
#[derive(Clone)]
pub struct Controller {
    pub(crate) services: Arc<Services>,
    pub(crate) jobs: Jobs,
}

/// What the server gives the controller to begin with.
pub struct Parts {
    /// The database, migrated.
    pub db: Db,
    /// What the operator decided.
    pub settings: Settings,
    /// Where zones are held.
    pub dns: Option<Arc<dyn DnsProvider>>,
    /// Which projects the directory has groups for.
    pub groups: Option<Arc<dyn ProjectGroups>>,
    /// What secrets are sealed with.
    pub seal: SealKeys,
}

impl Controller {
    /// Takes up work: the engine that is returned runs the jobs until it is shut down.
    pub async fn start(parts: Parts, config: &EngineConfig) -> Result<(Self, Engine)> {
        let controller = Self::open(parts).await?;
        let engine = controller.engine(config);
        Ok((controller, engine))
    }

    /// Loads (or makes) the control key and opens the jobs, without running any.
    pub async fn open(parts: Parts) -> Result<Self> {
        let Parts { db, settings, dns, groups, seal } = parts;
        let control_key = ensure_control_key(&db, &seal, &settings.name).await?;
        let git_host_key = crate::git::ensure_host_key(&mut *db.acquire().await?, &seal, &settings.name).await?;
        let agent = AgentBinary::load(&settings.agent_binary)
            .await
            .map_err(|error| internal("the agent's binary can't be read: set agent_binary", error))?;
        let control_public_line =
            control_key.public_line().map_err(|error| internal("the control key can't be read", error))?;
        let guests = Pool::new(control_key.clone(), agent.clone());
        let nodes = Pool::asking(control_key.clone(), agent, still_linked(db.clone()));
        let services = Arc::new(Services {
            db: db.clone(),
            settings,
            nodes,
            guests,
            control_key,
            control_public_line,
            dns,
            groups,
            seal,
            git_host_key,
            instance: Uuid::now_v7(),
            surroundings_changed: Notify::new(),
        });
        let jobs = Jobs::open(db, sagas::registry().outlines()).await.map_err(crate::ops::jobs_error)?;
        Ok(Self { services, jobs })
    }

    /// The fingerprint of the git server's host key, `SHA256:…`, for people to compare.
    pub fn git_host_fingerprint(&self) -> String {
        self.services.git_host_key.fingerprint()
    }

    pub(crate) fn git_host_key(&self) -> &ControlKey {
        &self.services.git_host_key
    }

    /// Begins to run jobs, until the engine is shut down.
    pub fn engine(&self, config: &EngineConfig) -> Engine {
        Engine::start(self.jobs.clone(), &sagas::registry(), Arc::clone(&self.services), config)
    }

    /// Queues a job in the principal's name, in the caller's transaction.
    pub(crate) async fn submit<P: JobParams>(
        &self,
        tx: &mut sqlx::PgTransaction<'_>,
        principal: &Principal,
        job: NewJob<P>,
    ) -> Result<corpus_domain::JobId> {
        let submitted = self.jobs.submit(tx, job.created_by(principal.id)).await.map_err(crate::ops::jobs_error)?;
        Ok(submitted.id())
    }
}

/// The controller's key pair; the first server on a database makes it.
async fn ensure_control_key(db: &Db, seal: &SealKeys, name: &str) -> Result<ControlKey> {
    const SEALED: &str = "the control key can't be opened with the seal keys that are configured";
    const UNREADABLE: &str = "the control key can't be made or read";
    let mut conn = db.acquire().await?;
    if control_key::load(&mut conn).await?.is_none() {
        let new = ControlKey::generate(name).map_err(|error| internal(UNREADABLE, error))?;
        let private = new.private().map_err(|error| internal(UNREADABLE, error))?;
        let sealed = seal.seal(&private, &Purpose::control_key()).map_err(|error| internal(SEALED, error))?;
        let public_key = new.public_line().map_err(|error| internal(UNREADABLE, error))?;
        let row = control_key::Stored { id: Uuid::now_v7(), public_key, private_sealed: sealed.to_bytes() };
        control_key::insert(&mut conn, &row).await?;
    }
    let stored = control_key::load(&mut conn).await?.ok_or(sqlx::Error::RowNotFound)?;
    let opened =
        Sealed::from_bytes(&stored.private_sealed).and_then(|sealed| seal.open(&sealed, &Purpose::control_key()));
    ControlKey::parse(&opened.map_err(|error| internal(SEALED, error))?).map_err(|error| internal(UNREADABLE, error))
}

/// A server whose database does not answer brings no agent anywhere.
fn still_linked(db: Db) -> StillLinked {
    Arc::new(move |node| {
        let db = db.clone();
        Box::pin(async move {
            let linked = async { nodes::is_linked(&mut *db.acquire().await?, node).await };
            linked.await.unwrap_or(false)
        })
    })
}
