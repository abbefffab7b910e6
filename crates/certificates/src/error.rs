//! Why a chain or its key is refused, and what to do about it: it is shown at the field of who sent it.

use chrono::{DateTime, Utc};
use thiserror::Error;

/// Why a chain and a key are not taken. Never holds a byte of the key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MaterialError {
    /// There is no block of a certificate.
    #[error("There is no certificate in it: paste the whole text, from -----BEGIN CERTIFICATE----- on.")]
    NoCertificate,
    /// A block that is no certificate.
    #[error("Certificate {0} of the chain can't be read: paste it as it was issued, in PEM.")]
    Unreadable(usize),
    /// More than is served.
    #[error(
        "It is too large: leave out what is no certificate of this chain. 10 certificates and 60 KiB are the most."
    )]
    TooLarge,
    /// The certificates do not lead to one another, or begin with another one.
    #[error(
        "Certificate {0} of the chain is not the issuer of the one before it: put the certificate of the name first, then its issuer, then that one's issuer."
    )]
    Order(usize),
    /// The first one is an authority's.
    #[error("The first certificate is an authority's: put the certificate of the name first, then its issuer.")]
    LeafNotFirst,
    /// It is over.
    #[error("The certificate ended on {}: get a new one from who issued it.", .0.format("%Y-%m-%d %H:%M UTC"))]
    Expired(DateTime<Utc>),
    /// It has not begun.
    #[error("The certificate is valid from {} on: upload it then.", .0.format("%Y-%m-%d %H:%M UTC"))]
    NotYet(DateTime<Utc>),
    /// It has no names in it.
    #[error("The certificate is for no DNS name: browsers look at its alternative names only. Get one that has them.")]
    NoNames,
    /// It has too many names.
    #[error("The certificate is for more than 100 names: get one for fewer.")]
    TooManyNames,
    /// It is not one of a server.
    #[error("The certificate is not for servers: get one whose extended key usage has server authentication.")]
    NotForServers,
    /// There is no block of a private key.
    #[error("There is no private key in it: paste the whole text, from -----BEGIN PRIVATE KEY----- on.")]
    NoKey,
    /// It has a passphrase.
    #[error("The private key has a passphrase: take it off with openssl pkey -in key.pem -out plain.pem.")]
    EncryptedKey,
    /// It can't be read, or is of a kind that is not served.
    #[error(
        "The private key can't be used: it must be RSA (2048 bits or more), ECDSA (P-256 or P-384) or Ed25519, in PEM."
    )]
    KeyUnreadable,
    /// It belongs to another certificate.
    #[error("The private key is not the certificate's: upload the key that the certificate was asked for with.")]
    OtherKey,
}

impl MaterialError {
    /// Whether it is the key that is wrong, and not the chain.
    pub const fn is_of_key(&self) -> bool {
        matches!(self, Self::NoKey | Self::EncryptedKey | Self::KeyUnreadable | Self::OtherKey)
    }
}
