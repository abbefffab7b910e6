//! Keys and passwords that Corpus makes itself.

use corpus_protocol::{SshHostKey, UnixPasswordHash};
use rand::RngExt;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use secrecy::{ExposeSecret, SecretString};
use sha_crypt::{CustomizedPasswordHasher, Params, ShaCrypt};
use thiserror::Error;

/// Letters and digits that can't be taken for one another when read aloud or typed from paper:
/// 55 of them, so 24 make 138 bits.
const ALPHABET: &[u8; 55] = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// Characters of a generated password.
const PASSWORD_LENGTH: usize = 24;
/// Rounds of sha512-crypt: the default of crypt(5). The passwords are random, 138 bits, so more
/// rounds would protect nothing more; these take about 5 ms.
const ROUNDS: u32 = 5_000;
/// The most salt that crypt(5) takes is 16 characters, which are 12 bytes.
const SALT_LENGTH: usize = 12;

/// A key could not be written, or a password not be hashed.
#[derive(Debug, Error)]
pub enum GenerateError {
    /// The key's text form failed.
    #[error("a new SSH key could not be made")]
    Key(#[from] russh::keys::ssh_key::Error),
    /// The hash failed.
    #[error("a password could not be hashed")]
    Hash(#[source] sha_crypt::password_hash::Error),
}

/// A new ed25519 key pair in OpenSSH's form, for a guest's sshd.
pub fn generate_host_key() -> Result<SshHostKey, GenerateError> {
    let key = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519)?;
    let private = key.to_openssh(LineEnding::LF)?;
    Ok(SshHostKey { private: private.as_str().to_owned(), public: key.public_key().to_openssh()? })
}

/// A new password of 24 letters and digits, 138 bits.
pub fn generate_password() -> SecretString {
    let mut rng = rand::rng();
    // Reserved whole, so that no part of it stays behind in a smaller buffer.
    let mut password = String::with_capacity(PASSWORD_LENGTH);
    while password.len() < PASSWORD_LENGTH {
        let index = rng.random_range(0..ALPHABET.len());
        password.extend(ALPHABET.get(index).map(|byte| char::from(*byte)));
    }
    SecretString::from(password)
}

/// The password hashed as crypt(5) wants it for shadow(5): `$6$rounds=5000$salt$hash`.
pub fn unix_hash(password: &SecretString) -> Result<UnixPasswordHash, GenerateError> {
    let salt: [u8; SALT_LENGTH] = rand::random();
    let params = Params::new(ROUNDS).unwrap_or(Params::RECOMMENDED);
    let bytes = password.expose_secret().as_bytes();
    let hash =
        ShaCrypt::SHA512.hash_password_customized(bytes, &salt, None, None, params).map_err(GenerateError::Hash)?;
    Ok(UnixPasswordHash(hash.as_str().to_owned()))
}
