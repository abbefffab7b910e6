//! The keys by which hosts are recognised.

use std::time::Duration;

use corpus_domain::NodeAddress;
use russh::keys::ssh_key::HashAlg;
use russh::keys::{Algorithm, PublicKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::connect::{Ended, Trust, handshake};
use super::endpoint::host;
use super::error::NodeError;
use super::gateway::Way;

/// A host key as a host shows it, in the forms that people compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenHostKey {
    /// The line of a `.pub` file, without a comment: to be stored and pinned.
    pub public: String,
    /// Its algorithm, `ssh-ed25519`.
    pub algorithm: String,
    /// `SHA256:…`, as `ssh-keygen -l` prints it.
    pub fingerprint: String,
}

impl SeenHostKey {
    pub(super) fn of(key: &PublicKey) -> Self {
        let bare = PublicKey::new(key.key_data().clone(), "");
        Self {
            public: bare.to_openssh().unwrap_or_default(),
            algorithm: bare.algorithm().to_string(),
            fingerprint: bare.fingerprint(HashAlg::Sha256).to_string(),
        }
    }
}

/// A host key that was confirmed. Two are equal when the keys are, whatever the comments.
#[derive(Debug, Clone)]
pub struct HostKey(PublicKey);

/// A line that is no public key.
#[derive(Debug, Error)]
#[error("not a host key: the line of a .pub file is expected, such as `ssh-ed25519 AAAA…`")]
pub struct InvalidHostKey(#[source] russh::keys::ssh_key::Error);

impl HostKey {
    /// The key in the forms that people compare.
    pub fn seen(&self) -> SeenHostKey {
        SeenHostKey::of(&self.0)
    }

    /// Algorithm and fingerprint, `ssh-ed25519 SHA256:…`.
    pub fn title(&self) -> String {
        let seen = self.seen();
        format!("{} {}", seen.algorithm, seen.fingerprint)
    }

    pub(super) fn is(&self, key: &PublicKey) -> bool {
        self.0.key_data() == key.key_data()
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.0.algorithm()
    }
}

impl PartialEq for HostKey {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for HostKey {}

impl std::str::FromStr for HostKey {
    type Err = InvalidHostKey;
    fn from_str(line: &str) -> Result<Self, InvalidHostKey> {
        PublicKey::from_openssh(line.trim()).map(Self).map_err(InvalidHostKey)
    }
}

impl std::fmt::Display for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.seen().public)
    }
}

/// Asks a host for its key, ed25519 if it has one, and leaves without saying who asks.
pub async fn probe_host_key(address: &NodeAddress, port: u16, timeout: Duration) -> Result<SeenHostKey, NodeError> {
    probe_host_key_by(&Way::default(), address, port, timeout).await
}

/// The same on a way that is open already.
pub async fn probe_host_key_by(
    way: &Way,
    address: &NodeAddress,
    port: u16,
    timeout: Duration,
) -> Result<SeenHostKey, NodeError> {
    let host = host(address, port);
    let late = || NodeError::NoAnswer { host: host.clone(), doing: "asking for its host key", limit: timeout };
    let asked = async {
        let stream = way.open(address, port, timeout).await?;
        match handshake(stream, Trust::Probe).await {
            Err(Ended::HostKey(seen)) => Ok(*seen),
            Err(Ended::Ssh(source)) => Err(NodeError::Handshake { host: host.clone(), source: source.into() }),
            Ok(_) => Err(NodeError::Handshake { host: host.clone(), source: russh::Error::Kex.into() }),
        }
    };
    tokio::time::timeout(timeout, asked).await.map_err(|_| late())?
}
