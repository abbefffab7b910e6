//! Sealing of what must not be readable in the database: guest passwords, private keys.
//!
//! `XChaCha20-Poly1305` with a random nonce. A sealed value is bound to what it is for
//! ([`Purpose`]), so a row's value that was copied to another row does not open. The key is
//! outside of the database: a copy of the database alone reveals nothing. Several keys can be
//! known: the first seals, all open, so a key can be replaced while everything stays readable
//! ([`SealKeys::reseal`]). Secrets go in and come out as [`secrecy`] types.
//!
//! The bytes of a sealed value: version (1), key id (4), nonce (24), ciphertext with its tag.

mod key_file;
#[cfg(test)]
mod tests;

use std::fmt;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret, SecretBox, SecretSlice, SecretString};
use thiserror::Error;
use uuid::Uuid;

/// The only version so far.
const VERSION: u8 = 1;
const NONCE_LENGTH: usize = 24;
const KEY_LENGTH: usize = 32;

/// Why a value can't be sealed or opened, or the keys not be loaded. Never holds a secret.
#[derive(Debug, Error)]
pub enum SealError {
    /// The value was sealed with a key that is not known here.
    #[error("this was sealed with the key {0}, which is not among the seal keys: add it to the seal key file")]
    KeyUnknown(KeyId),
    /// The value was changed, or was sealed for something else.
    #[error("the sealed value does not open: it was changed, or belongs to something else")]
    Broken,
    /// The value is shorter than any sealed value, or of a later version.
    #[error("this is no sealed value of a version that is known here")]
    NotSealed,
    /// What was sealed is not text.
    #[error("the sealed value is no text")]
    NotText,
    /// The value is too large to be sealed.
    #[error("the value is too large to be sealed")]
    TooLarge,
    /// The key file or variable is not as it should be.
    #[error(
        "the seal keys in {place} are not valid, line {line}: each line is <key id> <32 bytes in base64>, the first one seals"
    )]
    KeysInvalid {
        /// The file or variable.
        place: String,
        /// The line, from 1.
        line: usize,
    },
    /// There is no key at all.
    #[error("there is no seal key in {0}")]
    NoKey(String),
    /// Others than the owner may read the key file.
    #[error("the seal key file {path} may be read by others (mode {mode:o}): chmod 600 it")]
    TooOpen {
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The key file could not be read or made.
    #[error("the seal key file {path} could not be read or made")]
    File {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// What a sealed value is for. It is authenticated, and not stored with the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose(String);

impl Purpose {
    /// The root password of a guest.
    pub fn guest_password(guest: corpus_domain::GuestId) -> Self {
        Self::of("guest-password", guest.0)
    }

    /// The private key by which the controller logs in to nodes.
    pub fn control_key() -> Self {
        Self("control-key".to_owned())
    }

    /// The private key of the authority that signs certificates of names.
    pub fn certificate_authority() -> Self {
        Self("certificate-authority".to_owned())
    }

    /// Our account at a directory of certificates.
    pub fn acme_account(directory: &str) -> Self {
        Self(format!("acme-account:{directory}"))
    }

    /// Another purpose: a constant word and the row that holds the value.
    pub fn of(what: &'static str, row: Uuid) -> Self {
        Self(format!("{what}:{row}"))
    }
}

/// Names a key in sealed values; chosen at random when the key is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId([u8; 4]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// A sealed value, as it is stored in a `bytea` column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    key_id: KeyId,
    nonce: [u8; NONCE_LENGTH],
    ciphertext: Vec<u8>,
}

impl Sealed {
    /// The key it was sealed with.
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The bytes to store.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.key_id.0);
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&self.ciphertext);
        bytes
    }

    /// A stored value.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SealError> {
        let (version, rest) = bytes.split_first().ok_or(SealError::NotSealed)?;
        let (key_id, rest) = rest.split_first_chunk().ok_or(SealError::NotSealed)?;
        let (nonce, ciphertext) = rest.split_first_chunk().ok_or(SealError::NotSealed)?;
        if *version != VERSION {
            return Err(SealError::NotSealed);
        }
        Ok(Self { key_id: KeyId(*key_id), nonce: *nonce, ciphertext: ciphertext.to_vec() })
    }
}

struct SealKey {
    id: KeyId,
    key: SecretBox<[u8; KEY_LENGTH]>,
}

impl SealKey {
    fn generate() -> Self {
        let mut key = SecretBox::new(Box::new([0; KEY_LENGTH]));
        rand::fill(secrecy::ExposeSecretMut::expose_secret_mut(&mut key));
        Self { id: KeyId(rand::random()), key }
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.key.expose_secret().into())
    }
}

/// The keys that seal and open. Cheap to share behind an `Arc`.
pub struct SealKeys {
    first: SealKey,
    others: Vec<SealKey>,
}

impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealKeys").field("first", &self.first.id).finish_non_exhaustive()
    }
}

impl SealKeys {
    /// The key that seals.
    pub fn key_id(&self) -> KeyId {
        self.first.id
    }

    /// Seals a text.
    pub fn seal(&self, secret: &SecretString, purpose: &Purpose) -> Result<Sealed, SealError> {
        self.seal_bytes(secret.expose_secret().as_bytes(), purpose)
    }

    /// Opens a sealed text.
    pub fn open(&self, sealed: &Sealed, purpose: &Purpose) -> Result<SecretString, SealError> {
        let plain = self.open_bytes(sealed, purpose)?;
        let text = std::str::from_utf8(plain.expose_secret()).map_err(|_| SealError::NotText)?;
        Ok(SecretString::from(text))
    }

    /// The same value sealed with the key that seals now; `None` if it is already.
    pub fn reseal(&self, sealed: &Sealed, purpose: &Purpose) -> Result<Option<Sealed>, SealError> {
        if sealed.key_id == self.first.id {
            return Ok(None);
        }
        let plain = self.open_bytes(sealed, purpose)?;
        self.seal_bytes(plain.expose_secret(), purpose).map(Some)
    }

    fn seal_bytes(&self, plain: &[u8], purpose: &Purpose) -> Result<Sealed, SealError> {
        let nonce: [u8; NONCE_LENGTH] = rand::random();
        let ciphertext = self
            .first
            .cipher()
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: purpose.0.as_bytes() })
            .map_err(|_| SealError::TooLarge)?;
        Ok(Sealed { key_id: self.first.id, nonce, ciphertext })
    }

    fn open_bytes(&self, sealed: &Sealed, purpose: &Purpose) -> Result<SecretSlice<u8>, SealError> {
        let key = std::iter::once(&self.first)
            .chain(&self.others)
            .find(|key| key.id == sealed.key_id)
            .ok_or(SealError::KeyUnknown(sealed.key_id))?;
        key.cipher()
            .decrypt(&XNonce::from(sealed.nonce), Payload { msg: &sealed.ciphertext, aad: purpose.0.as_bytes() })
            .map(SecretSlice::from)
            .map_err(|_| SealError::Broken)
    }
}
