//! A real controller over simulated nodes: its rows, and what is asked of it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use corpus_api::Problem;
use corpus_api::guests::{GuestLine, ListGuests, RequestGuest};
use corpus_api::keys::AddKey;
use corpus_api::nodes::{LinkNode, ProbeHostKey};
use corpus_api::words::{Limit, Port};
use corpus_api::{Denied, Principal};
use corpus_controller::seal::{SealError, SealKeys};
use corpus_controller::ssh_keys::GenerateError;
use corpus_controller::{Ask, Controller, Handle, ImageNames, Parts, Rules, Settings, SignIn};
use corpus_database::Db;
use corpus_dns::{DnsProvider, Providers};
use corpus_domain::{
    Environment, GuestId, GuestName, GuestNetwork, Invalid, JobId, JobState, NodeAddress, NodeId, ProjectId,
    ProjectName, ProjectRole, SizeProfile,
};
use corpus_jobs::{Engine, EngineConfig};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tempfile::TempDir;
use thiserror::Error;
use uuid::Uuid;

/// Guests of one node that were there before, at most.
pub const MOST_GUESTS: u8 = 200;

/// Where simulated nodes are: all that a controller in another process has to know of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Place {
    /// The addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// The SSH port of all.
    pub port: u16,
    /// The host key of all.
    pub host_key: String,
}

/// The controller, the one who asks, and the project of all guests.
pub struct Fleet {
    /// The controller.
    pub controller: Controller,
    /// An operator who is also the project's maintainer.
    pub principal: Principal,
    /// The project.
    pub project: ProjectId,
    /// Its name.
    pub project_name: ProjectName,
    db: PgPool,
    _files: TempDir,
}

/// Why a fleet could not be made or asked.
#[derive(Debug, Error)]
pub enum FleetError {
    /// The controller refused.
    #[error(transparent)]
    Refused(#[from] corpus_controller::Error),
    /// An operation was not done.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The controller did not let the fleet's own member in.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A word of the fleet's own is none of the domain's.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// The seal keys could not be made.
    #[error("no seal keys")]
    Seal(#[from] SealError),
    /// A key could not be made.
    #[error("no key")]
    Key(#[from] GenerateError),
    /// A file could not be written.
    #[error("no folder for the fleet's files")]
    Io(#[from] std::io::Error),
    /// Jobs are still open.
    #[error("{0} jobs are not over after {1:?}")]
    Late(usize, Duration),
}

/// What a fleet's controller works with.
pub struct FleetConfig {
    /// The zones' provider, if there is one.
    pub dns: Option<Arc<dyn DnsProvider>>,
    /// Where the authoritative server answers.
    pub authority: SocketAddr,
    /// The engine's times and sizes.
    pub engine: EngineConfig,
}

impl Default for FleetConfig {
    /// As the product is, without DNS.
    fn default() -> Self {
        Self { dns: None, authority: (Ipv4Addr::LOCALHOST, 53).into(), engine: EngineConfig::default() }
    }
}

impl Fleet {
    /// Starts a controller on a migrated database.
    pub async fn start(db: PgPool, config: FleetConfig) -> Result<(Self, Engine), FleetError> {
        let files = tempfile::tempdir()?;
        let agent_binary = files.path().join("corpus-agent");
        std::fs::write(&agent_binary, b"simulated nodes have their own")?;
        let settings = Settings {
            name: "simulation".to_owned(),
            network: GuestNetwork::DEFAULT,
            bridge: "lxcbr1".to_owned(),
            agent_binary,
            image_folder: files.path().to_owned(),
            made_images: files.path().join("made-images"),
            images: ImageNames::default(),
            salt_bundle: None,
            hooks_folder: "/nonexistent".into(),
            git_url: Some("ssh://git@corpus.test:2222".to_owned()),
            public_url: "https://corpus.test".to_owned(),
            surroundings: corpus_controller::Surroundings::default(),
            rules: Rules::default(),
            audit_days: None,
            certificates: corpus_controller::CertificateSettings::default(),
            access_addresses: corpus_controller::AddressDetail::default(),
            intrusion: corpus_controller::IntrusionSettings::default(),
            own_backups: None,
            guest_backups: None,
        };
        let seal = SealKeys::load_or_create(&files.path().join("seal.key"))?;
        let dns = config.dns.map(|dns| Providers::one(dns, config.authority, None)).unwrap_or_default();
        let world = corpus_dns::world::World::default();
        let parts = Parts { db: db.clone().into(), settings, dns, world, groups: None, seal };
        let (controller, engine) = Controller::start(parts, &config.engine).await?;
        let who = SignIn {
            realm: "ldap",
            login: "olga".parse()?,
            display_name: "Olga".to_owned(),
            mail: None,
            ops: true,
            roles: vec![("atlas".parse()?, ProjectRole::Maintainer)],
        };
        let id = controller.sign_in(who, "127.0.0.1").await?;
        let principal = controller.principal(id).await?.ok_or(Denied::NotFound)?;
        let project = *principal.roles.keys().next().ok_or(Denied::NotFound)?;
        let project_name = "atlas".parse()?;
        Ok((Self { controller, principal, project, project_name, db, _files: files }, engine))
    }

    /// Keeps rows of nodes that were initialized long ago, each with `guests` guests named as
    /// [`guest_name`] says.
    pub async fn seed(&self, place: &Place, guests: u8) -> Result<Vec<NodeId>, FleetError> {
        let ids: Vec<Uuid> = place.addresses.iter().map(|_| Uuid::now_v7()).collect();
        let addresses: Vec<String> = place.addresses.iter().map(ToString::to_string).collect();
        let mut tx = Db::from(self.db.clone()).begin().await?;
        sqlx::query(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, public_ip, environments, state, network,
                 bridge, slots, created_by)
             select id, address, $3, 'root', $4, address, array['dev', 'prod'], 'ready', '10.5.0.1/16', 'lxcbr1', 256, $5
             from unnest($1, $2) as new (id, address)",
        )
        .bind(&ids)
        .bind(&addresses)
        .bind(i32::from(place.port))
        .bind(&place.host_key)
        .bind(self.principal.id.0)
        .execute(&mut **tx)
        .await?;
        sqlx::query(
            "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, ip,
                 mac, ssh_port, id_range, routed, state, created_by)
             select gen_random_uuid(), format('g%s.%s.sim.test', k, replace(n.address, '.', '-')), n.id, $2, 'dev',
                 'lxc', 'debian-12', 'overlayfs', 'small', 'masterless', format('10.5.0.%s', 9 + k),
                 format('00:16:3e:05:00:%s', lpad(to_hex(9 + k), 2, '0')), 39999 + k,
                 1073741824 + k * 65536::bigint, true, 'running', $3
             from nodes n, generate_series(1, $4) as k where n.id = any($1)",
        )
        .bind(&ids)
        .bind(self.project.0)
        .bind(self.principal.id.0)
        .bind(i32::from(guests.min(MOST_GUESTS)))
        .execute(&mut **tx)
        .await?;
        tx.commit().await?;
        sqlx::query("analyze").execute(&self.db).await?;
        Ok(ids.into_iter().map(NodeId).collect())
    }

    /// Asks to link a node, for the first time.
    pub async fn link(&self, address: Ipv4Addr, port: u16) -> Result<(NodeId, JobId), FleetError> {
        let (address, port) = (NodeAddress::Ip(IpAddr::V4(address)), Some(Port::try_from(u64::from(port))?));
        let seen = self.ask(ProbeHostKey { address: address.clone(), port }).await?;
        let environments = vec![Environment::Dev].try_into().unwrap_or_default();
        let wanted = LinkNode {
            port,
            password: Some("any will do here".parse()?),
            ..LinkNode::new(address, seen.host_key.parse()?, environments)
        };
        let linking = self.ask(wanted).await?;
        Ok((linking.node, linking.job))
    }

    /// Asks for an operation.
    pub async fn ask<O: Ask>(&self, operation: O) -> Result<O::Output, FleetError>
    where
        Controller: Handle<O>,
    {
        Ok(self.controller.call(&self.principal, operation, None).await?)
    }

    /// Gives the one who asks another key, and so a job to each node with guests of theirs.
    pub async fn change_keys(&self) -> Result<(), FleetError> {
        let key = corpus_controller::ssh_keys::generate_host_key()?;
        let line = format!("{} olga@home", key.public.trim_end());
        self.controller.call(&self.principal, AddKey { line: line.parse()? }, None).await?;
        Ok(())
    }

    /// The guests of a node, at most as many as were there before.
    pub async fn guests_on(&self, node: NodeId) -> Result<Vec<GuestLine>, FleetError> {
        let limit = Limit::try_from(u64::from(MOST_GUESTS)).ok();
        let asked = ListGuests { node: Some(node), limit, ..ListGuests::default() };
        Ok(self.controller.call(&self.principal, asked, None).await?.items)
    }

    /// Asks for a guest, on this node or any.
    pub async fn request(&self, name: GuestName, node: Option<NodeId>) -> Result<(GuestId, JobId), FleetError> {
        let project = self.project_name.clone();
        let wanted = RequestGuest {
            node,
            autostart: true,
            ..RequestGuest::new(project, Environment::Dev, name, SizeProfile::Small)
        };
        let asked = self.controller.call(&self.principal, wanted, None).await?;
        Ok((asked.guest, asked.job))
    }

    /// Waits until all these jobs are over.
    pub async fn ended(&self, jobs: &[JobId], limit: Duration) -> Result<Vec<(JobId, JobState)>, FleetError> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
        let began = Instant::now();
        loop {
            let rows: Vec<(Uuid, String)> =
                sqlx::query_as("select id, state from jobs where id = any($1)").bind(&ids).fetch_all(&self.db).await?;
            let states = rows.into_iter().map(|(id, state)| Ok((JobId(id), state.parse()?)));
            let states: Vec<(JobId, JobState)> = states.collect::<Result<_, Invalid>>()?;
            let open = states.iter().filter(|(_, state)| !state.is_over()).count();
            if open == 0 {
                return Ok(states);
            }
            if began.elapsed() > limit {
                return Err(FleetError::Late(open, limit));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Fleet {
    /// Of jobs that are over: each from submission to end, and from start to end, in seconds.
    pub async fn job_times(&self, jobs: &[JobId]) -> Result<(Vec<f64>, Vec<f64>), FleetError> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
        let times = sqlx::query_as(
            "select coalesce(array_agg(extract(epoch from ended_at - created_at)::float8), '{}'),
                 coalesce(array_agg(extract(epoch from ended_at - started_at)::float8), '{}')
             from jobs where id = any($1) and ended_at is not null and started_at is not null",
        );
        Ok(times.bind(&ids).fetch_one(&self.db).await?)
    }
}

/// The name of a node's guest, counted from 1, that was there before.
pub fn guest_name(address: Ipv4Addr, number: u8) -> Result<GuestName, Invalid> {
    format!("g{number}.{}.sim.test", address.to_string().replace('.', "-")).parse()
}
