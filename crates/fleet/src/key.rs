//! The controller's own key pair, with which it enters nodes and guests.

use std::sync::Arc;

use russh::keys::key::safe_rng;
use russh::keys::ssh_key::{self, LineEnding};
use russh::keys::{Algorithm, PrivateKey};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

/// An ed25519 key pair. `Debug` shows the public part only.
#[derive(Clone)]
pub struct ControlKey(Arc<PrivateKey>);

/// A private key could not be read or made.
#[derive(Debug, Error)]
#[error("the control key is not a readable OpenSSH private key")]
pub struct InvalidControlKey(#[from] ssh_key::Error);

impl ControlKey {
    /// Makes a new pair for the controller of this name; the comment is `corpus@<name>`.
    pub fn generate(controller: &str) -> Result<Self, InvalidControlKey> {
        let mut pair = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519)?;
        pair.set_comment(format!("corpus@{controller}"));
        Ok(Self(Arc::new(pair)))
    }

    /// Reads the OpenSSH private key file (PEM) that [`Self::private`] gave.
    pub fn parse(pem: &SecretString) -> Result<Self, InvalidControlKey> {
        Ok(Self(Arc::new(PrivateKey::from_openssh(pem.expose_secret())?)))
    }

    /// The OpenSSH private key file (PEM), not encrypted: to be sealed by the caller.
    pub fn private(&self) -> Result<SecretString, InvalidControlKey> {
        Ok(SecretString::from(self.0.to_openssh(LineEnding::LF)?.to_string()))
    }

    /// The line for `authorized_keys(5)`, with the comment.
    pub fn public_line(&self) -> Result<String, InvalidControlKey> {
        Ok(self.0.public_key().to_openssh()?)
    }

    /// The fingerprint as `ssh-keygen -l` prints it, `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint(ssh_key::HashAlg::Sha256).to_string()
    }

    /// The pair, for a server that is known by it.
    pub fn pair(&self) -> Arc<PrivateKey> {
        Arc::clone(&self.0)
    }
}

impl std::fmt::Debug for ControlKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ControlKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_nothing_shown() {
        let key = ControlKey::generate("lab").unwrap();
        let again = ControlKey::parse(&key.private().unwrap()).unwrap();
        assert_eq!(key.public_line().unwrap(), again.public_line().unwrap());
        assert!(key.public_line().unwrap().ends_with(" corpus@lab"));
        let shown = format!("{key:?} {:?}", key.private().unwrap());
        assert!(!shown.contains("PRIVATE"), "{shown}");
        assert!(ControlKey::parse(&SecretString::from("rubbish")).is_err());
    }
}
