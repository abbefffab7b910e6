//! [`Controller`]: what the server holds: the services, the jobs that work with them, and the gate.

use std::sync::Arc;

use corpus_gate::Gate;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::acme::SignedIn;
use crate::dns::Providers;
use crate::dns::world::World;
use crate::guest_backups::Readers;
use crate::images;
use crate::jobs::{Engine, EngineConfig, JobParams, Jobs, NewJob, OnEnd};
use crate::looked_at::{LookedAt, Seen};
use crate::nodes::{AgentBinary, ControlKey, Pool, StillLinked};
use crate::seal::SealKeys;
use crate::services::{Services, Settings, internal};
use crate::store::{Db, nodes};
use crate::uploads::Arrivals;
use crate::{ProjectGroups, Result, events, job_errors, sagas, server_keys};
use corpus_api::Principal;
use corpus_api::notices::NoticeOf;

/// The provisioning service; cheap to clone.
#[derive(Clone)]
pub struct Controller {
    pub(crate) services: Arc<Services>,
    pub(crate) jobs: Jobs,
    pub(crate) gate: Gate,
}

/// What the server gives the controller to begin with.
pub struct Parts {
    /// The database, migrated.
    pub db: Db,
    /// What the operator decided.
    pub settings: Settings,
    /// Where zones are held.
    pub dns: Providers,
    /// Who is asked what the world answers.
    pub world: World,
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
        let Parts { db, settings, dns, world, groups, seal } = parts;
        let control_key = server_keys::control(&mut *db.acquire().await?, &seal, &settings.name).await?;
        let git_host_key = server_keys::git_host(&mut *db.acquire().await?, &seal, &settings.name).await?;
        let authority = server_keys::authority(&mut *db.acquire().await?, &seal, &settings.name).await?;
        let gate = Gate::new(db.clone(), settings.rules.project_creators);
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
            world,
            groups,
            seal,
            git_host_key,
            authority,
            signed_in: SignedIn::default(),
            instance: Uuid::now_v7(),
            archives_seen: images::Seen::default(),
            arrivals: Arrivals::default(),
            looked_at: LookedAt::default(),
            access_followers: Arc::default(),
            backup_readers: Readers::default(),
            surroundings_changed: Notify::new(),
        });
        let on_end: OnEnd = |conn, job| Box::pin(events::job_ended(conn, job));
        let jobs = Jobs::telling(db, sagas::registry().outlines(), on_end).await.map_err(job_errors::jobs_error)?;
        Ok(Self { services, jobs, gate })
    }

    /// The fingerprint of the git server's host key, `SHA256:…`, for people to compare.
    pub fn git_host_fingerprint(&self) -> String {
        self.services.git_host_key.fingerprint()
    }

    /// The git server's host key.
    pub fn git_host_key(&self) -> &ControlKey {
        &self.services.git_host_key
    }

    /// The certificate of the authority that signs certificates of names, as PEM: what people trust.
    pub fn certificate_root(&self) -> &str {
        self.services.authority.certificate()
    }

    /// Begins to run jobs, until the engine is shut down.
    pub fn engine(&self, config: &EngineConfig) -> Engine {
        Engine::start(self.jobs.clone(), &sagas::registry(), Arc::clone(&self.services), config)
    }

    /// They look at what notices may be about: those are read, a moment later.
    pub fn saw(&self, who: &Principal, of: NoticeOf) {
        self.services.looked_at.note_seen(Seen::News(who.id, of));
    }

    /// Queues a job in the principal's name, in the caller's transaction.
    pub(crate) async fn submit<P: JobParams>(
        &self,
        tx: &mut sqlx::PgTransaction<'_>,
        principal: &Principal,
        job: NewJob<P>,
    ) -> Result<corpus_domain::JobId> {
        let submitted = self.jobs.submit(tx, job.created_by(principal.id)).await.map_err(job_errors::jobs_error)?;
        Ok(submitted.id())
    }
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
