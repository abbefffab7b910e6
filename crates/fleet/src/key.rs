//! The controller's own key pair, with which it enters nodes and guests.

use std::sync::Arc;

use russh::keys::key::safe_rng;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::ssh_key::{self, LineEnding};
use russh::keys::{Algorithm, PrivateKey};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
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

    /// The key for the gateway of one node, which is called so: `address:port`. It is made from this one, so that there is
    /// no further secret to keep, and none that opens anything else.
    pub fn for_gateway(&self, node: &str) -> Result<Self, InvalidControlKey> {
        let own = self.0.key_data().ed25519().ok_or(ssh_key::Error::AlgorithmUnknown)?;
        let root = Sha256::new().chain_update("corpus: keys for gateways\0").chain_update(own.private.to_bytes());
        let seed: [u8; 32] = Sha256::new().chain_update(root.finalize()).chain_update(node).finalize().into();
        let mut pair = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
        pair.set_comment(self.0.comment().clone());
        Ok(Self(Arc::new(pair)))
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

    /// Lines in `authorized_keys` of gateways are for these: a release that made others would be locked out.
    #[test]
    fn a_gateway_has_a_key_that_is_always_the_same() {
        let key = ControlKey::generate("lab").unwrap();
        let again = ControlKey::parse(&key.private().unwrap()).unwrap();
        let of = |key: &ControlKey, node: &str| key.for_gateway(node).unwrap().public_line().unwrap();
        assert_eq!(of(&key, "10.0.0.7:22"), of(&again, "10.0.0.7:22"));
        assert!(of(&key, "10.0.0.7:22").ends_with(" corpus@lab"));
        let (other, stranger) = (of(&key, "10.0.0.7:23"), ControlKey::generate("lab").unwrap());
        assert_ne!(of(&key, "10.0.0.7:22"), other);
        assert_ne!(of(&key, "10.0.0.7:22"), of(&stranger, "10.0.0.7:22"));
        assert_ne!(of(&key, "10.0.0.7:22"), key.public_line().unwrap());
        // Made by hashlib and RFC 8032.
        let fixed = ControlKey(Arc::new(PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]))));
        let known = "AAAAC3NzaC1lZDI1NTE5AAAAILAOdhNz+vQAtR7QQSEyQYpobNl5xOgwc37Ng0CrWnZn";
        assert_eq!(of(&fixed, "10.0.0.7:22").split(' ').nth(1), Some(known));
    }
}
