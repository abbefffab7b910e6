//! Certificates of DNS names, and what a name tells who comes by HTTP.
//!
//! A name has a certificate of the configured issuer, or one that somebody brought. A key comes in and is shown nowhere.

mod key;

use chrono::{DateTime, Utc};
use corpus_domain::{
    CertificateId, CertificateSource, CertificateState, CertifiedName, DnsName, DnsNameId, JobId, ProjectName,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::words::{CertificateChain, HstsSeconds, Limit};
use crate::{Cursor, Version};

pub use key::PrivateKeyText;

/// Shows the certificate of a name, how far it is, and what is told to who comes by HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetCertificate {
    /// Of which name.
    pub name: DnsNameId,
}
impl Operation for GetCertificate {
    type Kind = Read;
    type Output = NameCertificate;
    const META: Meta<Read> = get("get_certificate", "/names/{name}/certificate").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Brings a certificate of one's own for a name, with its key, in place of the configured issuer's. It is not renewed:
/// another one must be brought before it ends.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct UploadCertificate {
    /// Of which name.
    pub name: DnsNameId,
    /// The certificate of the name first, then its issuer, then that one's issuer, as PEM.
    pub chain: CertificateChain,
    /// The key that the certificate was asked for with, as PEM, without a passphrase.
    pub private_key: PrivateKeyText,
}
impl Operation for UploadCertificate {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = put("upload_certificate", "/names/{name}/certificate").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Takes away the certificate that was brought for a name: it has one of the configured issuer again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveCertificate {
    /// Of which name.
    pub name: DnsNameId,
}
impl Operation for RemoveCertificate {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        delete("remove_certificate", "/names/{name}/certificate").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Has the configured issuer make a new certificate of a name now, without waiting until one is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RenewCertificate {
    /// Of which name.
    pub name: DnsNameId,
}
impl Operation for RenewCertificate {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        post("renew_certificate", "/names/{name}/certificate/renew").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Shows what a name tells who comes by HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetNameHttps {
    /// Which name.
    pub name: DnsNameId,
}
impl Operation for GetNameHttps {
    type Kind = Read;
    type Output = NameHttps;
    const META: Meta<Read> = get("get_name_https", "/names/{name}/https").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Sets what a name tells who comes by HTTP. It holds while a certificate is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetNameHttps {
    /// Which name.
    pub name: DnsNameId,
    /// The settings that are to be changed.
    pub version: Version,
    /// Whether who comes by HTTP is sent to HTTPS.
    #[serde(default)]
    pub redirect: bool,
    /// For how many seconds browsers ask for this name by HTTPS only, once they were there (HSTS); none: they are not
    /// told.
    #[serde(default)]
    pub hsts_s: Option<HstsSeconds>,
}
impl Operation for SetNameHttps {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        put("set_name_https", "/names/{name}/https").needs(Role::Maintainer).robots().if_match("version");
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Lists the certificates that are served, the one that ends first first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListCertificates {
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListCertificates {
    type Kind = Read;
    type Output = CertificatePage;
    const META: Meta<Read> = get("list_certificates", "/certificates");
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Shows the root of the authority that signs certificates of names where no directory does: who trusts it trusts all
/// that it signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetCertificateAuthority {}
impl Operation for GetCertificateAuthority {
    type Kind = Read;
    type Output = CertificateAuthority;
    const META: Meta<Read> = get("get_certificate_authority", "/certificate-authority").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// The certificate of a name, and its HTTPS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameCertificate {
    /// Of which name.
    pub name: DnsNameId,
    /// How far it is.
    pub state: CertificateState,
    /// The one that is served.
    pub served: Option<ServedByNode>,
    /// What went wrong when another one was last to be got, and what can be done about it.
    pub problem: Option<String>,
    /// When that is tried again by itself.
    pub next_try_at: Option<DateTime<Utc>>,
    /// The job that is on it, or that failed.
    pub job: Option<JobId>,
    /// Whether who comes by HTTP is sent to HTTPS.
    pub https_redirect: bool,
    /// For how many seconds browsers ask by HTTPS only (HSTS).
    pub hsts_s: Option<u32>,
    /// The version of these two.
    pub version: Version,
}
impl NameCertificate {
    /// With its version.
    pub fn new(
        name: DnsNameId,
        state: CertificateState,
        served: Option<ServedByNode>,
        problem: Option<String>,
        next_try_at: Option<DateTime<Utc>>,
        job: Option<JobId>,
        https: HttpsSettings,
    ) -> Self {
        let HttpsSettings { redirect, hsts_s } = https;
        let version = https.version();
        Self { name, state, served, problem, next_try_at, job, https_redirect: redirect, hsts_s, version }
    }

    /// What is told to who comes by HTTP.
    pub const fn https(&self) -> HttpsSettings {
        HttpsSettings { redirect: self.https_redirect, hsts_s: self.hsts_s }
    }
}
impl Reply for NameCertificate {}

/// What a name tells who comes by HTTP, while a certificate is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameHttps {
    /// Whether they are sent to HTTPS.
    pub redirect: bool,
    /// For how many seconds browsers ask by HTTPS only (HSTS).
    pub hsts_s: Option<u32>,
    /// The version of this.
    pub version: Version,
}
impl Reply for NameHttps {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// What is told to who comes by HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpsSettings {
    /// Whether they are sent to HTTPS.
    pub redirect: bool,
    /// For how many seconds browsers ask by HTTPS only.
    pub hsts_s: Option<u32>,
}
impl HttpsSettings {
    /// Their version.
    pub fn version(&self) -> Version {
        Version::of(self)
    }
}

/// A certificate that a node serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServedByNode {
    /// Who signed it.
    pub source: CertificateSource,
    /// What it is for.
    pub names: Vec<CertifiedName>,
    /// Who signed it, as it says itself.
    pub issuer: String,
    /// Its number there, in hexadecimal.
    pub serial: String,
    /// From when on it is valid.
    pub not_before: DateTime<Utc>,
    /// Until when.
    pub not_after: DateTime<Utc>,
    /// When the next one is due; never for one that was brought.
    pub renew_at: Option<DateTime<Utc>>,
}

/// A certificate in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CertificateLine {
    /// Its id.
    pub id: CertificateId,
    /// Of which name.
    pub name: DnsNameId,
    /// That name.
    pub dns_name: DnsName,
    /// Whether it is all names below that one that have none of their own, instead.
    pub wildcard: bool,
    /// The project of its guest.
    pub project: ProjectName,
    /// Who signed it.
    pub source: CertificateSource,
    /// Who signed it, as it says itself.
    pub issuer: String,
    /// From when on it is valid.
    pub not_before: DateTime<Utc>,
    /// Until when.
    pub not_after: DateTime<Utc>,
    /// When the next one is due; never for one that was brought.
    pub renew_at: Option<DateTime<Utc>>,
    /// What went wrong when another one was last to be got.
    pub problem: Option<String>,
}
impl CertificateLine {
    /// As people write the name: `*.NAME` of a wildcard.
    pub fn shown(&self) -> String {
        if self.wildcard { format!("*.{}", self.dns_name) } else { self.dns_name.to_string() }
    }
}

crate::page!(
    /// A page of certificates.
    CertificatePage, CertificateLine
);

/// The authority that signs certificates of names where no directory does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CertificateAuthority {
    /// Its root, as PEM: what browsers and programs are to trust.
    pub certificate: String,
    /// SHA-256 of the root, to compare.
    pub fingerprint: String,
    /// Until when it is valid.
    pub not_after: DateTime<Utc>,
}
impl Reply for CertificateAuthority {}

/// How near the end of a certificate is, for who looks after them. One that lives for long is renewed weeks before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    /// Far away.
    Far,
    /// It should have been renewed: 40 days before, or at the last third of a short life.
    Soon,
    /// Nobody renewed it: 7 days before, or at the last tenth of a short life.
    Close,
    /// It is over.
    Over,
}
impl Nearness {
    /// Of a certificate with this life.
    pub fn of(not_before: DateTime<Utc>, not_after: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let (life, left) = (not_after - not_before, not_after - now);
        if left <= chrono::TimeDelta::zero() {
            Self::Over
        } else if left <= (life / 10).min(chrono::TimeDelta::days(7)) {
            Self::Close
        } else if left < (life / 3).min(chrono::TimeDelta::days(40)) {
            Self::Soon
        } else {
            Self::Far
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn the_end_of_a_short_life_is_near_later() {
        let now = Utc::now();
        let of = |life: i64, left: i64| {
            let ends = now + TimeDelta::hours(left);
            Nearness::of(ends - TimeDelta::hours(life), ends, now)
        };
        let year = 365 * 24;
        assert_eq!(of(year, 41 * 24), Nearness::Far);
        assert_eq!(of(year, 39 * 24), Nearness::Soon);
        assert_eq!(of(year, 7 * 24), Nearness::Close);
        assert_eq!(of(year, 0), Nearness::Over);
        let six_days = 6 * 24;
        assert_eq!(of(six_days, 50), Nearness::Far);
        assert_eq!(of(six_days, 40), Nearness::Soon);
        assert_eq!(of(six_days, 14), Nearness::Close);
    }

    #[test]
    fn a_key_is_not_shown() {
        let key: PrivateKeyText = "-----BEGIN PRIVATE KEY-----\nabc\n".parse().unwrap();
        assert!(!format!("{key:?}").contains("abc"));
        let refused = "abc\0".parse::<PrivateKeyText>().unwrap_err();
        assert!(!refused.to_string().contains("abc"), "{refused}");
        assert!(crate::input::is_secret::<UploadCertificate>("private_key"));
        assert!(!crate::input::is_secret::<UploadCertificate>("chain"));
    }
}
