//! [`Services`]: what operations, steps of jobs and background tasks all work with.
//!
//! It knows of none of them: it is below them, so that each can be read without the others.

use std::path::PathBuf;
use std::sync::Arc;

use corpus_backup::Storage;
use corpus_certificates::Authority;
use corpus_domain::{GuestId, GuestNetwork, ProviderName};
use corpus_protocol::AddressDetail;
use secrecy::SecretString;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::access_followers::Followers;
use crate::acme::SignedIn;
use crate::certificates::CertificateSettings;
use crate::dns::world::World;
use crate::dns::{Provider, Providers};
use crate::guest_backups::Readers;
use crate::images::{self, ImageNames};
use crate::intrusion::IntrusionSettings;
use crate::jobs::StepError;
use crate::looked_at::LookedAt;
use crate::nodes::{ControlKey, Pool};
use crate::own_backups::OwnBackups;
use crate::seal::{Purpose, SealKeys, Sealed};
use crate::store::{Db, Transaction, guests};
use crate::surroundings::{Around, Surroundings};
use crate::uploads::Arrivals;
use crate::{Error, ProjectGroups, Result, Rules, ssh_keys};

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
    /// Which images there are.
    pub images: ImageNames,
    /// The folder with the archives of images that projects make. Several servers have it in common.
    pub made_images: PathBuf,
    /// The bundle of Salt that is brought to guests of projects, `.tar.gz`; none: they have no Salt.
    pub salt_bundle: Option<PathBuf>,
    /// The folder of the operator's hooks.
    pub hooks_folder: PathBuf,
    /// What the address of a project's repositories begins with: `ssh://git@corpus.example.org:2222`;
    /// none: git is not served here.
    pub git_url: Option<String>,
    /// What the addresses of the pages begin with: `https://corpus.example.org`.
    pub public_url: String,
    /// What nodes and guests must know of everything around them.
    pub surroundings: Surroundings,
    /// Who makes projects, and which names are nobody's.
    pub rules: Rules,
    /// For how many days the audit is kept, 30 at least; none: for ever.
    pub audit_days: Option<u16>,
    /// Who signs certificates of names.
    pub certificates: CertificateSettings,
    /// How much of visitors' addresses who follows their requests is told.
    pub access_addresses: AddressDetail,
    /// How many signs of intrusion are too many, and what is done then.
    pub intrusion: IntrusionSettings,
    /// Where backups of the controller are kept; none: none is taken.
    pub own_backups: Option<OwnBackups>,
    /// The place with the repositories of guests' backups, one a project; none: none are taken.
    pub guest_backups: Option<Storage>,
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
    /// Where zones are held.
    pub dns: Providers,
    /// Who is asked what the world answers.
    pub world: World,
    /// Which projects the directory has groups for; none when there is no directory.
    pub groups: Option<Arc<dyn ProjectGroups>>,
    /// What secrets are sealed with.
    pub seal: SealKeys,
    /// The key by which members recognise the git server.
    pub git_host_key: ControlKey,
    /// Who signs certificates of names where no directory does.
    pub authority: Authority,
    /// Our account at the directory of certificates, where one issues them.
    pub(crate) signed_in: SignedIn,
    /// This server, among those of one database.
    pub instance: Uuid,
    /// What was read of the archives of images.
    pub(crate) archives_seen: images::Seen,
    /// Archives of images that came and are not kept yet.
    pub(crate) arrivals: Arrivals,
    /// What somebody has on a page now.
    pub(crate) looked_at: LookedAt,
    /// Who follows requests of visitors now.
    pub(crate) access_followers: Arc<Followers>,
    /// Who reads backups now.
    pub(crate) backup_readers: Readers,
    /// Told when nodes must know something else of what is around them.
    pub(crate) surroundings_changed: Notify,
}

impl Services {
    /// Begins a transaction.
    #[track_caller]
    pub(crate) fn begin(&self) -> impl Future<Output = sqlx::Result<Transaction>> + Send + use<> {
        self.db.begin()
    }

    /// The DNS server of that name; what to say when it is in the configuration no more.
    pub(crate) fn provider(&self, name: &ProviderName) -> std::result::Result<&Provider, String> {
        self.dns.get(name).ok_or_else(|| {
            format!(
                "The DNS server {name} is not in Corpus' configuration any more; what it holds can't be changed until it is."
            )
        })
    }

    /// What nodes are told of everything around them.
    pub(crate) fn around(&self) -> Around<'_> {
        Around { decided: &self.settings.surroundings, dns: &self.dns }
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

/// A fault in Corpus itself, by what was being done.
pub(crate) fn internal(message: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Internal { message, source: Box::new(error) }
}
