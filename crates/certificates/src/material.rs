//! A chain and its key. What a person sends is read as strictly as a browser and the proxy will: what passes here is
//! served.

use std::fmt::Write as _;

use chrono::{DateTime, TimeDelta, Utc};
use corpus_domain::{CertifiedName, DnsName, plain_line};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate, X509Name};

use crate::MaterialError;
use crate::pem::{as_pkcs8, block};

/// As much is served: a node takes 64 KiB, the key with them.
const MAX_CHAIN_BYTES: usize = 60 << 10;
const MAX_CHAIN: usize = 10;
/// Nodes take as many.
const MAX_NAMES: usize = 100;
/// What is shown of an issuer.
const MAX_ISSUER: usize = 200;
/// Clocks differ: so much before it begins a certificate is taken.
const SKEW: TimeDelta = TimeDelta::minutes(5);

/// A chain and its key, read and checked.
#[derive(Debug, Clone)]
pub struct Material {
    /// PEM, the leaf first.
    pub chain: String,
    /// PEM, PKCS #8.
    pub key: SecretString,
    /// What it is for.
    pub names: Vec<CertifiedName>,
    /// Who signed it.
    pub issuer: String,
    /// Its number there, in hexadecimal.
    pub serial: String,
    /// From when on it is valid.
    pub not_before: DateTime<Utc>,
    /// Until when.
    pub not_after: DateTime<Utc>,
}

impl Material {
    /// Reads PEM: refuses what is no chain (leaf first), whose key is another's, or that is not valid now.
    pub fn read(chain: &str, key: &SecretString, now: DateTime<Utc>) -> Result<Self, MaterialError> {
        if chain.len() > MAX_CHAIN_BYTES {
            return Err(MaterialError::TooLarge);
        }
        let ders = ders(chain)?;
        let certificates = parsed(&ders)?;
        let [leaf, issuers @ ..] = certificates.as_slice() else { return Err(MaterialError::NoCertificate) };
        if leaf.is_ca() {
            return Err(MaterialError::LeafNotFirst);
        }
        for ((before, issuer), number) in certificates.iter().zip(issuers).zip(2..) {
            if before.issuer().as_raw() != issuer.subject().as_raw() {
                return Err(MaterialError::Order(number));
            }
        }
        let (not_before, not_after) = validity(leaf)?;
        if not_after <= now {
            return Err(MaterialError::Expired(not_after));
        }
        if not_before > now + SKEW {
            return Err(MaterialError::NotYet(not_before));
        }
        let for_servers = leaf.extended_key_usage().map_err(|_| MaterialError::Unreadable(1))?;
        if for_servers.is_some_and(|usage| !usage.value.server_auth && !usage.value.any) {
            return Err(MaterialError::NotForServers);
        }
        let names = names(leaf)?;
        let (issuer, serial) = (shown(leaf.issuer()), leaf.raw_serial_as_string());
        let key = key_of(leaf, &ders, key)?;
        let chain = ders.iter().map(|der| block("CERTIFICATE", der)).collect();
        Ok(Self { chain, key, names, issuer, serial, not_before, not_after })
    }

    /// What a node serves: chain, then key.
    pub fn pem(&self) -> SecretString {
        format!("{}{}", self.chain, self.key.expose_secret()).into()
    }

    /// SHA-256 of that, in hexadecimal.
    pub fn digest(&self) -> String {
        hex(self.pem().expose_secret().as_bytes())
    }

    /// Whether browsers take it for a name. A wildcard is covered by the same one only.
    pub fn covers(&self, name: &CertifiedName) -> bool {
        let plain = name.as_str().parse::<DnsName>().ok();
        self.names.iter().any(|one| one == name || plain.as_ref().is_some_and(|plain| one.covers(plain)))
    }

    /// When the next one is due: at two thirds of its life, and up to a twentieth of it later by `spread`, 0 to 1.
    pub fn renew_at(&self, spread: f64) -> DateTime<Utc> {
        let life = self.not_after - self.not_before;
        let later = (life / 20).to_std().unwrap_or_default().mul_f64(spread.clamp(0.0, 1.0));
        self.not_before + life / 3 * 2 + TimeDelta::from_std(later).unwrap_or_default()
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn ders(chain: &str) -> Result<Vec<CertificateDer<'static>>, MaterialError> {
    let mut ders = Vec::new();
    for (der, number) in CertificateDer::pem_slice_iter(chain.as_bytes()).zip(1..) {
        ders.push(der.map_err(|_| MaterialError::Unreadable(number))?);
    }
    if ders.len() > MAX_CHAIN {
        return Err(MaterialError::TooLarge);
    }
    Ok(ders)
}

fn parsed<'a>(ders: &'a [CertificateDer<'static>]) -> Result<Vec<X509Certificate<'a>>, MaterialError> {
    let read = |(der, number): (&'a CertificateDer<'static>, usize)| match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        _ => Err(MaterialError::Unreadable(number)),
    };
    ders.iter().zip(1..).map(read).collect()
}

fn validity(leaf: &X509Certificate<'_>) -> Result<(DateTime<Utc>, DateTime<Utc>), MaterialError> {
    let at = |seconds| DateTime::from_timestamp(seconds, 0).ok_or(MaterialError::Unreadable(1));
    let validity = leaf.validity();
    let (begins, ends) = (at(validity.not_before.timestamp())?, at(validity.not_after.timestamp())?);
    if begins < ends { Ok((begins, ends)) } else { Err(MaterialError::Unreadable(1)) }
}

fn names(leaf: &X509Certificate<'_>) -> Result<Vec<CertifiedName>, MaterialError> {
    let found = leaf.subject_alternative_name().map_err(|_| MaterialError::Unreadable(1))?;
    let mut names = Vec::new();
    for general in found.iter().flat_map(|extension| &extension.value.general_names) {
        // Addresses and whatever no guest's name can be are left out: nothing is served for them.
        if let GeneralName::DNSName(name) = general
            && let Ok(name) = name.parse::<CertifiedName>()
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    match names.len() {
        0 => Err(MaterialError::NoNames),
        1..=MAX_NAMES => Ok(names),
        _ => Err(MaterialError::TooManyNames),
    }
}

/// Its common name; else all of it.
fn shown(name: &X509Name<'_>) -> String {
    let common = name.iter_common_name().find_map(|one| one.as_str().ok().map(str::to_owned));
    let whole = common.filter(|common| !common.trim().is_empty()).unwrap_or_else(|| name.to_string());
    let clean = plain_line(whole.trim(), MAX_ISSUER);
    if clean.is_empty() { "an issuer without a name".to_owned() } else { clean }
}

/// The key as PKCS #8, which is the certificate's.
fn key_of(
    leaf: &X509Certificate<'_>,
    ders: &[CertificateDer<'static>],
    key: &SecretString,
) -> Result<SecretString, MaterialError> {
    let text = key.expose_secret();
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(MaterialError::EncryptedKey);
    }
    let given = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| MaterialError::NoKey)?;
    let public_key_info = leaf.public_key().raw;
    let pkcs8 = match &given {
        PrivateKeyDer::Pkcs8(key) => Some(key.secret_pkcs8_der().to_vec()),
        PrivateKeyDer::Pkcs1(key) => as_pkcs8(key.secret_pkcs1_der(), public_key_info),
        PrivateKeyDer::Sec1(key) => as_pkcs8(key.secret_sec1_der(), public_key_info),
        _ => None,
    };
    let provider = rustls::crypto::ring::default_provider();
    // As it was given: in another kind's form it can't be read, and that says less.
    match CertifiedKey::from_der(ders.to_vec(), given, &provider) {
        Ok(_) => {}
        Err(TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch)) => return Err(MaterialError::OtherKey),
        Err(_) => return Err(MaterialError::KeyUnreadable),
    }
    pkcs8.map(|der| block("PRIVATE KEY", &der).into()).ok_or(MaterialError::KeyUnreadable)
}
