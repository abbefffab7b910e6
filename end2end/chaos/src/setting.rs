//! What a controller of the matrix is made of; the same for the conductor and its servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use corpus_acme::{DirectorySettings, ProofKind};
use corpus_controller::seal::SealKeys;
use corpus_controller::{AcmeSettings, CertificateSettings, Controller, ImageNames, Issuer, Parts, Rules, Settings};
use corpus_database::as_server;
use corpus_dns::{PowerDns, PowerDnsSettings, Providers};
use corpus_jobs::EngineConfig;
use corpus_jobs::testing::Faults;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;

/// Where everything is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setting {
    pub database_url: String,
    pub seal_key_file: PathBuf,
    pub agent_binary: PathBuf,
    pub image_folder: PathBuf,
    pub hooks_folder: PathBuf,
    pub dns_api: String,
    pub dns_api_key: String,
    pub authority: String,
    /// The directory that issues certificates; none: the internal authority does.
    pub directory: Option<DirectoryAddress>,
}

/// Where a directory of certificates is, and the authority that its own is of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DirectoryAddress {
    pub url: String,
    pub root: PathBuf,
}

impl DirectoryAddress {
    fn settings(&self) -> Result<CertificateSettings> {
        let root = Some(self.root.clone());
        let directory = DirectorySettings { directory: self.url.parse()?, contact: None, eab: None, root };
        let acme = Some(AcmeSettings { directory, profile: None, challenge: ProofKind::Http01 });
        Ok(CertificateSettings { issuer: Issuer::Acme, acme })
    }
}

impl Setting {
    /// A controller on the setting's database. Its jobs run where an engine is started.
    pub async fn open(&self) -> Result<Controller> {
        let options = PgPoolOptions::new().max_connections(12).acquire_timeout(Duration::from_secs(10));
        let dns = PowerDns::new(PowerDnsSettings {
            api_url: self.dns_api.parse()?,
            api_key: SecretString::from(self.dns_api_key.clone()),
            server_id: "localhost".to_owned(),
            nameservers: vec!["ns1.corpus.test".parse()?],
        })?;
        let settings = Settings {
            name: "chaos".to_owned(),
            network: "10.5.0.1/16".parse()?,
            bridge: "lxcbr1".to_owned(),
            agent_binary: self.agent_binary.clone(),
            image_folder: self.image_folder.clone(),
            images: ImageNames::default(),
            made_images: self.seal_key_file.with_file_name("made-images"),
            salt_bundle: std::env::var_os("CORPUS_SALT_BUNDLE").map(Into::into),
            hooks_folder: self.hooks_folder.clone(),
            git_url: Some("ssh://git@corpus.test:2222".to_owned()),
            public_url: "https://corpus.test".to_owned(),
            surroundings: corpus_controller::Surroundings::default(),
            rules: Rules::default(),
            audit_days: None,
            access_addresses: corpus_controller::AddressDetail::default(),
            certificates: self.directory.as_ref().map(DirectoryAddress::settings).transpose()?.unwrap_or_default(),
            intrusion: corpus_controller::IntrusionSettings::default(),
            own_backups: None,
            guest_backups: self.seal_key_file.parent().map(|folder| folder.join("backups").into()),
        };
        let parts = Parts {
            db: options.connect_with(as_server(self.database_url.parse()?)).await?.into(),
            settings,
            dns: Providers::one(Arc::new(dns), self.authority.parse()?, None),
            world: corpus_dns::world::World::default(),
            groups: None,
            seal: SealKeys::load_or_create(&self.seal_key_file)?,
        };
        Ok(Controller::open(parts).await?)
    }
}

/// How an engine runs jobs here: a lost lease is noticed in a second and a half, which is
/// the only difference to a real one besides the pace.
pub fn engine_config(faults: Faults) -> EngineConfig {
    EngineConfig {
        lease: Duration::from_millis(1500),
        heartbeat: Duration::from_millis(300),
        poll: Duration::from_millis(100),
        cancel_grace: Duration::from_secs(1),
        faults: Arc::new(faults),
        ..EngineConfig::default()
    }
}
