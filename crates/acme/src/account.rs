//! Our account at a directory: made once, and restored from what was kept of it.

use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use corpus_domain::CertifiedName;
use instant_acme::{AccountBuilder, AccountCredentials, ExternalAccountKey, Identifier, NewAccount, NewOrder};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::http::Http;
use crate::{AcmeError, Order};

/// Where a directory is, and who we are there.
#[derive(Debug, Clone)]
pub struct DirectorySettings {
    /// Its address.
    pub directory: Url,
    /// Where it writes to when something is about our certificates: an address of mail.
    pub contact: Option<String>,
    /// The account there that ours is bound to, where it asks for one.
    pub eab: Option<ExternalAccount>,
    /// PEM certificates that the directory's own is of; none: the authorities of the system.
    pub root: Option<PathBuf>,
}

/// An account that was made by other means (external account binding).
#[derive(Debug, Clone)]
pub struct ExternalAccount {
    /// Its key's id.
    pub key_id: String,
    /// The key, base64url.
    pub key: SecretString,
}

/// A directory that certificates are had from.
pub struct Directory {
    http: Http,
    settings: DirectorySettings,
    external: Option<ExternalAccountKey>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Our account at a directory.
pub struct Account {
    inner: instant_acme::Account,
    http: Http,
}

impl Directory {
    /// Prepares the client; nothing is sent yet.
    pub fn new(settings: DirectorySettings) -> Result<Self, AcmeError> {
        let roots = settings.root.as_ref().map(read_roots).transpose()?;
        let external = settings.eab.as_ref().map(external_key).transpose()?;
        Ok(Self { http: Http::new(&settings.directory, roots)?, settings, external })
    }

    /// Its address.
    pub const fn url(&self) -> &Url {
        &self.settings.directory
    }

    fn builder(&self) -> AccountBuilder {
        instant_acme::Account::builder_with_http(Box::new(self.http.clone()))
    }

    /// Makes an account. What comes with it is what [`Self::sign_in`] wants: a secret.
    pub async fn sign_up(&self) -> Result<(Account, SecretString), AcmeError> {
        let contact: Vec<String> = self.settings.contact.iter().map(|address| format!("mailto:{address}")).collect();
        let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
        let asked = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let made = self.builder().create(&asked, self.settings.directory.to_string(), self.external.as_ref()).await;
        let (inner, credentials) = made.map_err(|error| match AcmeError::from(error) {
            AcmeError::Refused { text } => AcmeError::AccountRefused { text },
            error => error,
        })?;
        let kept = serde_json::to_string(&credentials).map_err(AcmeError::CredentialsInvalid)?;
        Ok((Account { inner, http: self.http.clone() }, SecretString::from(kept)))
    }

    /// The account that [`Self::sign_up`] made.
    pub async fn sign_in(&self, credentials: &SecretString) -> Result<Account, AcmeError> {
        let credentials: AccountCredentials =
            serde_json::from_str(credentials.expose_secret()).map_err(AcmeError::CredentialsInvalid)?;
        let inner = self.builder().from_credentials(credentials).await?;
        Ok(Account { inner, http: self.http.clone() })
    }
}

impl Account {
    pub(crate) const fn inner(&self) -> &instant_acme::Account {
        &self.inner
    }

    /// Orders a certificate for these names.
    pub async fn order(&self, names: &[CertifiedName], profile: Option<&str>) -> Result<Order, AcmeError> {
        let names: Vec<Identifier> = names.iter().map(|name| Identifier::Dns(name.to_string())).collect();
        let mut asked = NewOrder::new(&names);
        if let Some(profile) = profile {
            asked = asked.profile(profile);
        }
        Ok(Order::new(self.inner.new_order(&asked).await?, self.http.clone()))
    }

    /// The order at this address.
    pub async fn resume(&self, url: &str) -> Result<Order, AcmeError> {
        Ok(Order::new(self.inner.order(url.to_owned()).await?, self.http.clone()))
    }
}

fn read_roots(path: &PathBuf) -> Result<Vec<reqwest::Certificate>, AcmeError> {
    let unreadable =
        |source: Box<dyn std::error::Error + Send + Sync>| AcmeError::RootUnreadable { path: path.clone(), source };
    let pem = std::fs::read(path).map_err(|error| unreadable(error.into()))?;
    let roots = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| unreadable(error.into()))?;
    if roots.is_empty() { Err(unreadable("there is no certificate in it".into())) } else { Ok(roots) }
}

fn external_key(account: &ExternalAccount) -> Result<ExternalAccountKey, AcmeError> {
    let key = account.key.expose_secret().trim_end_matches('=');
    let key = BASE64_URL_SAFE_NO_PAD.decode(key).map_err(|_| AcmeError::ExternalKeyInvalid)?;
    Ok(ExternalAccountKey::new(account.key_id.clone(), &key))
}
