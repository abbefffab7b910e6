//! The directory that certificates are had from: who we are there, and what its failures mean for a job.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use corpus_acme::{Account, AcmeError, Directory, DirectorySettings, Order, ProofKind, RenewalInfo};
use corpus_domain::{CertifiedName, DnsNameId};
use secrecy::SecretString;

use crate::jobs::StepError;
use crate::seal::{Purpose, SealError, Sealed};
use crate::services::Services;
use crate::store::acme_accounts;

/// For how long a server stays signed in: what the directory says of itself may have changed.
const SESSION: Duration = Duration::from_mins(10);

/// The directory, as the operator decides.
#[derive(Debug, Clone)]
pub struct AcmeSettings {
    /// Where it is, and who we are there.
    pub directory: DirectorySettings,
    /// Which kind of certificate is asked for, where it has several.
    pub profile: Option<String>,
    /// How names are proven that allow both ways.
    pub challenge: ProofKind,
}

/// Why a step that talks to a directory failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// By what the directory answered, or did not.
    Acme(AcmeError),
    /// By something of ours.
    Step(StepError),
}

impl From<AcmeError> for Failure {
    fn from(error: AcmeError) -> Self {
        Self::Acme(error)
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Step(error.into())
    }
}

impl From<SealError> for Failure {
    fn from(error: SealError) -> Self {
        let message = "a key can't be sealed or opened with the seal keys that are configured";
        Self::Step(StepError::permanent(message).caused_by(error))
    }
}

/// Our account at the directory as it was signed in last: the steps of a job follow each other within a second, and each
/// would ask again where everything is, over a connection of its own.
#[derive(Default)]
pub(crate) struct SignedIn(Mutex<Option<Session>>);

struct Session {
    /// What is kept of the account, sealed: another account has another.
    sealed: Vec<u8>,
    account: Arc<Account>,
    since: Instant,
}

impl SignedIn {
    /// The account that this was kept of.
    fn of(&self, sealed: &[u8]) -> Option<Arc<Account>> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session.as_ref()?;
        (session.sealed == sealed && session.since.elapsed() < SESSION).then(|| Arc::clone(&session.account))
    }

    fn keep(&self, sealed: Vec<u8>, account: Account) -> Arc<Account> {
        let account = Arc::new(account);
        let session = Session { sealed, account: Arc::clone(&account), since: Instant::now() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        account
    }

    /// After a failure it is signed in anew: the reason may be what is remembered.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Services {
    /// What is decided of the directory.
    pub(crate) fn acme(&self) -> Result<&AcmeSettings, StepError> {
        let message =
            "no directory of certificates is configured any more: see [certificates] in Corpus' configuration";
        self.settings.certificates.acme.as_ref().ok_or_else(|| StepError::permanent(message))
    }

    /// Our account at the directory, which is made when there is none.
    async fn account(&self) -> Result<Arc<Account>, Failure> {
        let settings = &self.acme()?.directory;
        let url = settings.directory.as_str();
        let purpose = Purpose::acme_account(url);
        let kept = acme_accounts::get(&mut *self.db.acquire().await?, url).await?;
        if let Some(account) = kept.as_deref().and_then(|sealed| self.signed_in.of(sealed)) {
            return Ok(account);
        }
        let directory = Directory::new(settings.clone())?;
        if let Some(sealed) = kept {
            let credentials = self.seal.open(&Sealed::from_bytes(&sealed)?, &purpose)?;
            match directory.sign_in(&credentials).await {
                Err(error) if error.is_of_lost_account() => {
                    tracing::warn!(directory = url, error = &error as &dyn std::error::Error, "our account is lost");
                }
                signed_in => return Ok(self.signed_in.keep(sealed, signed_in?)),
            }
        }
        let (account, credentials) = directory.sign_up().await?;
        let sealed = self.seal.seal(&credentials, &purpose)?.to_bytes();
        acme_accounts::keep(&mut *self.db.acquire().await?, url, &sealed).await?;
        tracing::info!(directory = url, "an account was made at the directory of certificates");
        Ok(self.signed_in.keep(sealed, account))
    }

    /// Orders a certificate; a directory that has forgotten us gets another account.
    pub(crate) async fn order(&self, names: &[CertifiedName]) -> Result<Order, Failure> {
        let AcmeSettings { directory, profile, .. } = self.acme()?;
        let ordered = self.account().await?.order(names, profile.as_deref()).await;
        match ordered {
            Err(error) if error.is_of_lost_account() => {
                acme_accounts::forget(&mut *self.db.acquire().await?, directory.directory.as_str()).await?;
                Ok(self.account().await?.order(names, profile.as_deref()).await?)
            }
            ordered => Ok(ordered?),
        }
    }

    /// Our account, and the order at an address.
    pub(crate) async fn resume(&self, url: &str) -> Result<(Arc<Account>, Order), Failure> {
        let account = self.account().await?;
        let order = account.resume(url).await?;
        Ok((account, order))
    }

    /// What the directory says of when to renew a chain; none when it does not say such things.
    pub(crate) async fn renewal(&self, chain: &str) -> Result<Option<RenewalInfo>, Failure> {
        let said = self.account().await?.renewal(chain).await;
        Ok(said.inspect_err(|_| self.signed_in.forget())?)
    }

    /// Seals the key of what is ordered, for its name.
    pub(crate) fn seal_order_key(&self, name: DnsNameId, key: &SecretString) -> Result<Vec<u8>, Failure> {
        Ok(self.seal.seal(key, &order_key(name))?.to_bytes())
    }

    /// Opens it.
    pub(crate) fn open_order_key(&self, name: DnsNameId, sealed: &[u8]) -> Result<SecretString, Failure> {
        Ok(self.seal.open(&Sealed::from_bytes(sealed)?, &order_key(name))?)
    }
}

fn order_key(name: DnsNameId) -> Purpose {
    Purpose::of("certificate-order-key", name.0)
}

/// What a failure of the directory means for a job: whether a step is tried again at once. What takes the directory
/// longer is tried by another job later.
pub(crate) fn step_error(error: AcmeError) -> StepError {
    let message = error.to_string();
    let waits = matches!(error, AcmeError::RateLimited { .. } | AcmeError::OrderInvalid { .. });
    if error.is_transient() && !waits && error.retry_after().is_none() {
        let awaited = "the directory of certificates to answer";
        return StepError::transient(message).while_waiting_for(awaited).caused_by(error);
    }
    StepError::permanent(message).caused_by(error)
}
