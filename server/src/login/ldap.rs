//! Members of an LDAP directory.
//!
//! The service account searches, and the person's password is tried by a bind on a connection
//! of its own. The connection is always under TLS and the directory's certificate is always
//! checked. An empty password is refused before anything is sent, since a directory takes it
//! for an anonymous bind and says yes. An unknown login costs the same round trips as a wrong
//! password and gets the same answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use corpus_controller::{GroupsError, ProjectGroups};
use corpus_domain::{ProjectName, UserName};
use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, LdapError, LdapResult, Scope, SearchEntry, ldap_escape};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

use super::{Person, Refusal};
use crate::config::Ldap as Settings;

/// The limit for connecting, and for each operation after it.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// A DN that nobody has, bound to when a login is unknown.
const NOBODY: &str = "cn=no such person";

/// The settings of the directory can't be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// The authorities' file.
    #[error("ldap.ca_file {path} can't be used: {message}")]
    Authorities {
        /// Which file.
        path: std::path::PathBuf,
        /// Why not.
        message: String,
    },
}

/// The directory.
#[derive(Debug, Clone)]
pub struct Directory {
    settings: Arc<Settings>,
    tls: Option<Arc<ClientConfig>>,
}

/// One person, as found by the service account.
struct Found {
    dn: String,
    display_name: String,
    mail: Option<String>,
    disabled: bool,
    groups: Vec<String>,
}

impl Directory {
    /// Reads the authorities; connects to nothing.
    pub fn new(settings: Settings) -> Result<Self, DirectoryError> {
        let tls = settings.ca_file.as_deref().map(tls_with).transpose()?;
        Ok(Self { settings: Arc::new(settings), tls })
    }

    /// Checks a login and its password, and says who it is and what they may.
    pub async fn sign_in(&self, login: &UserName, password: &SecretString) -> Result<Person, Refusal> {
        if password.expose_secret().is_empty() {
            return Err(Refusal::WrongPassword);
        }
        let found = self.find(login).await?;
        let dn = found.as_ref().map_or(NOBODY, |found| found.dn.as_str());
        self.try_password(dn, password).await?;
        let found = found.ok_or(Refusal::WrongPassword)?;
        if found.disabled {
            return Err(Refusal::Disabled);
        }
        Ok(self.person(login, found))
    }

    /// Opens a connection for questions by the service account.
    pub(super) async fn ask(&self) -> Result<Asking<'_>, Refusal> {
        let mut ldap = self.connect().await?;
        self.bind_service(&mut ldap).await?;
        Ok(Asking { directory: self, ldap })
    }

    async fn find(&self, login: &UserName) -> Result<Option<Found>, Refusal> {
        let mut asking = self.ask().await?;
        let found = self.find_on(&mut asking.ldap, login).await?;
        asking.end().await;
        Ok(found)
    }

    async fn find_on(&self, ldap: &mut Ldap, login: &UserName) -> Result<Option<Found>, Refusal> {
        let settings = &self.settings;
        let filter = settings.people_filter.replace("{login}", &ldap_escape(login.as_str()));
        let names = ["displayName", "cn", "mail"];
        let mut people = search(ldap, &settings.people_base, Scope::Subtree, &filter, &names).await?;
        if people.len() > 1 {
            return Err(Refusal::Ambiguous);
        }
        let Some(entry) = people.pop() else { return Ok(None) };
        let disabled = match &settings.disabled_filter {
            Some(filter) => !search(ldap, &entry.dn, Scope::Base, filter, &["1.1"]).await?.is_empty(),
            None => false,
        };
        let groups = self.groups(ldap, login, &entry.dn).await?;
        let first = |name: &str| entry.attrs.get(name).and_then(|values| values.first()).cloned();
        Ok(Some(Found {
            display_name: first("displayName").or_else(|| first("cn")).unwrap_or_else(|| login.to_string()),
            mail: first("mail"),
            dn: entry.dn,
            disabled,
            groups,
        }))
    }

    async fn groups(&self, ldap: &mut Ldap, login: &UserName, dn: &str) -> Result<Vec<String>, Refusal> {
        let filter = self.settings.groups_filter.replace("{dn}", &ldap_escape(dn));
        let filter = filter.replace("{login}", &ldap_escape(login.as_str()));
        let groups = search(ldap, &self.settings.groups_base, Scope::Subtree, &filter, &["cn"]).await?;
        Ok(groups.into_iter().filter_map(|mut group| group.attrs.remove("cn")).flatten().collect())
    }

    fn person(&self, login: &UserName, found: Found) -> Person {
        let pattern = &self.settings.project_group_pattern;
        Person {
            realm: super::Realm::Ldap,
            login: login.clone(),
            display_name: found.display_name,
            mail: found.mail,
            ops: found.groups.contains(&self.settings.ops_group),
            roles: found.groups.iter().filter_map(|group| pattern.role(group)).collect(),
        }
    }

    /// Binds as the person, on a connection that nothing else was done on.
    async fn try_password(&self, dn: &str, password: &SecretString) -> Result<(), Refusal> {
        let mut ldap = self.connect().await?;
        let answer = ldap.with_timeout(TIME_LIMIT).simple_bind(dn, password.expose_secret()).await.map_err(down)?;
        ldap.unbind().await.ok();
        match answer.success() {
            Ok(_) => Ok(()),
            Err(LdapError::LdapResult { result }) => Err(bind_refused(&result)),
            Err(error) => Err(down(error)),
        }
    }

    async fn bind_service(&self, ldap: &mut Ldap) -> Result<(), Refusal> {
        let password = self.settings.bind_password.expose_secret();
        let answer = ldap.with_timeout(TIME_LIMIT).simple_bind(&self.settings.bind_dn, password).await.map_err(down)?;
        answer.success().map(drop).map_err(misconfigured)
    }

    async fn connect(&self) -> Result<Ldap, Refusal> {
        let mut settings = LdapConnSettings::new().set_conn_timeout(TIME_LIMIT).set_starttls(self.settings.starttls);
        if let Some(tls) = &self.tls {
            settings = settings.set_config(tls.clone());
        }
        let (connection, ldap) =
            LdapConnAsync::from_url_with_settings(settings, &self.settings.url).await.map_err(down)?;
        tokio::spawn(async move {
            if let Err(error) = connection.drive().await {
                tracing::debug!(%error, "a connection to the directory ended");
            }
        });
        Ok(ldap)
    }
}

#[async_trait]
impl ProjectGroups for Directory {
    async fn has_groups(&self, project: &ProjectName) -> Result<bool, GroupsError> {
        let mut asking = self.ask().await?;
        let names = self.settings.project_group_pattern.groups(project);
        let names: Vec<_> = names.iter().map(|name| ldap_escape(name.as_str())).collect();
        let filter = format!("(|(cn={}))", names.join(")(cn="));
        let found = search(&mut asking.ldap, &self.settings.groups_base, Scope::Subtree, &filter, &["1.1"]).await;
        asking.end().await;
        Ok(!found?.is_empty())
    }
}

/// One connection on which the service account asks about several people.
pub(super) struct Asking<'a> {
    directory: &'a Directory,
    ldap: Ldap,
}

impl Asking<'_> {
    /// Who that is and what they may; none when there is no such person any more, more than
    /// one, or one who is disabled.
    pub(super) async fn about(&mut self, login: &UserName) -> Result<Option<Person>, Refusal> {
        match self.directory.find_on(&mut self.ldap, login).await {
            Ok(found) => Ok(found.filter(|found| !found.disabled).map(|found| self.directory.person(login, found))),
            Err(Refusal::Ambiguous) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Closes the connection.
    pub(super) async fn end(mut self) {
        self.ldap.unbind().await.ok();
    }
}

async fn search(
    ldap: &mut Ldap,
    base: &str,
    scope: Scope,
    filter: &str,
    attributes: &[&str],
) -> Result<Vec<SearchEntry>, Refusal> {
    let found = ldap.with_timeout(TIME_LIMIT).search(base, scope, filter, attributes.to_vec()).await.map_err(down)?;
    let (entries, _) = found.success().map_err(misconfigured)?;
    let people = entries.into_iter().filter(|entry| !entry.is_ref() && !entry.is_intermediate());
    Ok(people.map(SearchEntry::construct).collect())
}

/// What a refused bind of a person means. A locked or disabled account answers 53
/// (unwillingToPerform) or 19 (constraintViolation), Active Directory 49 with "data 533" or "data 775".
fn bind_refused(result: &LdapResult) -> Refusal {
    match result.rc {
        49 if ["data 533", "data 775"].iter().any(|data| result.text.contains(data)) => Refusal::Disabled,
        // 32 noSuchObject, 34 invalidDNSyntax: some directories say so of a DN that is not there.
        32 | 34 | 48 | 49 => Refusal::WrongPassword,
        19 | 53 => Refusal::Disabled,
        51 | 52 => Refusal::DirectoryDown(Arc::new(LdapError::LdapResult { result: result.clone() })),
        _ => misconfigured(LdapError::LdapResult { result: result.clone() }),
    }
}

fn down(error: LdapError) -> Refusal {
    Refusal::DirectoryDown(Arc::new(error))
}

fn misconfigured(error: LdapError) -> Refusal {
    Refusal::Misconfigured(Arc::new(error))
}

/// TLS that trusts only the authorities of that file.
fn tls_with(path: &std::path::Path) -> Result<Arc<ClientConfig>, DirectoryError> {
    let refuse = |message: String| DirectoryError::Authorities { path: path.to_owned(), message };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))? {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refuse("it holds no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.map_err(|error| refuse(error.to_string()))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
