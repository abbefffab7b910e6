//! What opens places on other machines: keys and what they are recognised by, never shown.
//!
//! All of it is judged when it is read, so that a key that is none is a fault of the configuration and not of the first
//! backup.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, Client, redirect};
use russh::keys::{PrivateKey, PublicKey, decode_secret_key};
use rusty_s3::Credentials;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use url::Url;

/// How long it may take until there is a connection to an S3 server.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What opens places, of each kind that needs it.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// SFTP servers.
    pub sftp: Option<Arc<SftpAccess>>,
    /// The S3 server.
    pub s3: Option<Arc<S3Access>>,
}

/// How SFTP servers are entered and recognised.
pub struct SftpAccess {
    pub(super) key: Arc<PrivateKey>,
    pub(super) host_keys: Vec<PublicKey>,
}

/// How an S3 server is reached, and who asks it.
pub struct S3Access {
    pub(super) endpoint: Url,
    pub(super) region: String,
    /// Their secret is not shown, and overwritten when they are dropped.
    pub(super) credentials: Credentials,
    /// Whether the bucket is a part of the host, not of the path.
    pub(super) bucket_in_host: bool,
    pub(super) client: Client,
}

/// The parts of an [`S3Access`].
pub struct S3Options {
    /// Where it answers, without a path.
    pub endpoint: Url,
    /// The region that requests are signed for.
    pub region: String,
    /// Whose requests they are.
    pub key_id: String,
    /// What they are signed with.
    pub secret: SecretString,
    /// Whether the bucket is a part of the host, not of the path.
    pub bucket_in_host: bool,
    /// Certificates in PEM form of who vouches for the server; none: those of the system.
    pub authorities: Option<Vec<u8>>,
}

/// What is to open a place can't.
#[derive(Debug, Error)]
pub enum InvalidAccess {
    /// SFTP, and no word of how.
    #[error("a place of sftp:// needs the section [sftp]: sftp.key_file and sftp.host_keys")]
    NoSftp,
    /// S3, and no word of how.
    #[error("a place of s3:// needs the section [s3]: s3.endpoint, s3.access_key_id and s3.secret_access_key_file")]
    NoS3,
    /// It is no private key.
    // What the library says of it is left out: it may cite the file.
    #[error("it holds no private key of OpenSSH, or one with a passphrase: make one with ssh-keygen -t ed25519 -N ''")]
    Key,
    /// It is no public key.
    #[error(
        "number {0} is no host key: a line of ssh-keyscan, or of the server's .pub file, such as ssh-ed25519 AAAA…"
    )]
    HostKey(usize),
    /// There is none.
    #[error("no host key is given: a server is recognised by nothing else")]
    NoHostKey,
    /// They are none.
    #[error("it holds no certificates in PEM form")]
    Authorities,
    /// The client of HTTP.
    #[error("no client for HTTPS can be made: {0}")]
    Client(String),
}

impl SftpAccess {
    /// With a private key in OpenSSH's form, without a passphrase, and the host keys of all servers.
    pub fn new(key: &SecretString, host_keys: &[String]) -> Result<Self, InvalidAccess> {
        let key = decode_secret_key(key.expose_secret(), None).map_err(|_| InvalidAccess::Key)?;
        let numbered = (1..).zip(host_keys);
        let read = numbered.map(|(number, line)| host_key(line).ok_or(InvalidAccess::HostKey(number)));
        let host_keys = read.collect::<Result<Vec<_>, _>>()?;
        if host_keys.is_empty() {
            return Err(InvalidAccess::NoHostKey);
        }
        Ok(Self { key: Arc::new(key), host_keys })
    }
}

/// With the host before it, as `ssh-keyscan` and `known_hosts` have it, or without.
fn host_key(line: &str) -> Option<PublicKey> {
    let line = line.trim();
    let rest = line.split_once(' ').map_or("", |(_, rest)| rest);
    PublicKey::from_openssh(line).or_else(|_| PublicKey::from_openssh(rest)).ok()
}

impl S3Access {
    /// Of its parts.
    pub fn new(options: S3Options) -> Result<Self, InvalidAccess> {
        // Fails only when a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let S3Options { endpoint, region, key_id, secret, bucket_in_host, authorities } = options;
        let mut client = Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            .redirect(redirect::Policy::none())
            .https_only(endpoint.scheme() == "https")
            .user_agent(concat!("corpus/", env!("CARGO_PKG_VERSION")));
        if let Some(pem) = authorities {
            let roots = Certificate::from_pem_bundle(&pem).map_err(|_| InvalidAccess::Authorities)?;
            if roots.is_empty() {
                return Err(InvalidAccess::Authorities);
            }
            client = client.tls_certs_only(roots);
        }
        let client = client.build().map_err(|error| InvalidAccess::Client(error.without_url().to_string()))?;
        let credentials = Credentials::new(key_id, secret.expose_secret());
        Ok(Self { endpoint, region, credentials, bucket_in_host, client })
    }

    /// What the server is called in errors.
    pub(super) fn server(&self) -> String {
        self.endpoint.host_str().unwrap_or_default().to_owned()
    }
}

impl fmt::Debug for SftpAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SftpAccess").finish_non_exhaustive()
    }
}

impl fmt::Debug for S3Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Access").field("endpoint", &self.endpoint.as_str()).finish_non_exhaustive()
    }
}
