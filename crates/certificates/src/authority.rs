//! The authority that signs where no directory does: for a network of one's own, and for trying out.
//!
//! Who trusts its root trusts all that it signs. So it signs for servers only, can make no other authority, and its
//! private key is the controller's, sealed.

use chrono::{DateTime, TimeDelta, Utc};
use corpus_domain::CertifiedName;
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use thiserror::Error;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{Material, MaterialError};

/// For how long the root is valid: nobody wants to trust a new one on every machine.
const ROOT_LIFE: TimeDelta = TimeDelta::days(20 * 365);
/// Clocks differ, by a day on a node that nobody looks after: so much earlier all that is signed begins.
const EARLIER: TimeDelta = TimeDelta::days(2);
/// RFC 5280 has no longer common names.
const MAX_COMMON_NAME: usize = 64;

/// Why an authority can't be made or read, or does not sign.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// The library refused.
    #[error("the certificate authority's certificate or key can't be made or read")]
    Crypto(#[from] rcgen::Error),
    /// Its certificate is none.
    #[error("the certificate authority's certificate can't be read")]
    Unreadable,
    /// Its key is another's.
    #[error("the certificate authority's key is not its certificate's")]
    OtherKey,
    /// A time that no certificate can have.
    #[error("the time {0} can't be in a certificate")]
    Time(DateTime<Utc>),
    /// It has ended, or ends before what is to be signed begins.
    #[error("the certificate authority ended on {0}: a new one must be made and trusted")]
    Ended(DateTime<Utc>),
    /// What was signed is not fit to be served.
    #[error("what the certificate authority signed can't be served")]
    Signed(#[from] MaterialError),
}

/// An authority: its certificate and its key.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    not_after: DateTime<Utc>,
    fingerprint: String,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Authority {
    /// A new one, called after the controller that has it.
    pub fn make(name: &str, now: DateTime<Utc>) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name = called(&format!("{name} certificate authority"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.not_before = time(now - EARLIER)?;
        params.not_after = time(now + ROOT_LIFE)?;
        let certificate = params.self_signed(&key)?.pem();
        Self::of(certificate, key)
    }

    /// One that was made before.
    pub fn read(certificate: &str, key: &SecretString) -> Result<Self, AuthorityError> {
        Self::of(certificate.to_owned(), KeyPair::from_pem(key.expose_secret())?)
    }

    fn of(certificate: String, key: KeyPair) -> Result<Self, AuthorityError> {
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|_| AuthorityError::Unreadable)?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|_| AuthorityError::Unreadable)?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(AuthorityError::OtherKey);
        }
        let not_after = DateTime::from_timestamp(parsed.validity().not_after.timestamp(), 0);
        let not_after = not_after.ok_or(AuthorityError::Unreadable)?;
        let pairs: Vec<String> = Sha256::digest(&der).iter().map(|byte| format!("{byte:02X}")).collect();
        let issuer = Issuer::from_ca_cert_der(&der, key)?;
        Ok(Self { certificate, issuer, not_after, fingerprint: pairs.join(":") })
    }

    /// Its certificate, the root that people trust, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its private key, as PEM.
    pub fn key(&self) -> SecretString {
        self.issuer.key().serialize_pem().into()
    }

    /// SHA-256 of the root, as browsers and openssl show it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Until when the root is valid.
    pub const fn not_after(&self) -> DateTime<Utc> {
        self.not_after
    }

    /// Signs a certificate for these names, with a key of its own; it ends with the root at the latest.
    pub fn sign(
        &self,
        names: &[CertifiedName],
        now: DateTime<Utc>,
        life: TimeDelta,
    ) -> Result<Material, AuthorityError> {
        let (chain, key) = self.issue(names, &[ExtendedKeyUsagePurpose::ServerAuth], now, life)?;
        Ok(Material::read(&chain, &key, now)?)
    }

    /// Signs one by which a node is known to others, at both ends of a connection. Its chain goes on to the root, by which
    /// it knows them.
    pub fn sign_node(
        &self,
        names: &[CertifiedName],
        now: DateTime<Utc>,
        life: TimeDelta,
    ) -> Result<Material, AuthorityError> {
        let both = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let (chain, key) = self.issue(names, &both, now, life)?;
        Ok(Material::read(&format!("{chain}{}", self.certificate), &key, now)?)
    }

    fn issue(
        &self,
        names: &[CertifiedName],
        usages: &[ExtendedKeyUsagePurpose],
        now: DateTime<Utc>,
        life: TimeDelta,
    ) -> Result<(String, SecretString), AuthorityError> {
        if self.not_after <= now {
            return Err(AuthorityError::Ended(self.not_after));
        }
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        let of = |name: &CertifiedName| Ia5String::try_from(name.as_str()).map(SanType::DnsName);
        params.subject_alt_names = names.iter().map(of).collect::<Result<_, _>>()?;
        let first = names.iter().map(CertifiedName::as_str).find(|name| name.len() <= MAX_COMMON_NAME);
        params.distinguished_name = called(first.unwrap_or("Corpus"));
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages.to_vec();
        params.use_authority_key_identifier_extension = true;
        params.not_before = time(now - EARLIER)?;
        params.not_after = time((now + life).min(self.not_after))?;
        let chain = params.signed_by(&key, &self.issuer)?.pem();
        Ok((chain, key.serialize_pem().into()))
    }
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name.chars().take(MAX_COMMON_NAME).collect::<String>());
    called
}

fn time(at: DateTime<Utc>) -> Result<OffsetDateTime, AuthorityError> {
    OffsetDateTime::from_unix_timestamp(at.timestamp()).map_err(|_| AuthorityError::Time(at))
}
