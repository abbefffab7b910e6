//! Certificates of a node's proxy, on their way to it, and what it answers while one is ordered.
//!
//! A plan says which certificates are served, by id and digest; their files, which hold private keys, come apart from it
//! and stay on the node. So a plan holds no secret, and a key is sent once.

use corpus_domain::{CertificateId, CertifiedName, DnsName};
use serde::{Deserialize, Serialize};

/// The most that a certificate with its chain and its key may be, in bytes.
pub const MAX_CERTIFICATE: usize = 64 << 10;
/// As many files come in one request: together, and written as JSON, they fit into [`crate::MAX_LINE`].
pub const CERTIFICATES_AT_ONCE: usize = 50;
/// As many certificates a node serves, and as many challenges it answers.
pub const MAX_CERTIFICATES: usize = 5000;
/// As many names a certificate is for.
pub const NAMES_OF_CERTIFICATE: usize = 100;

/// A certificate that the proxy serves. Its file comes by [`crate::Request::PutCertificates`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedCertificate {
    /// The name of its file.
    pub id: CertificateId,
    /// SHA-256 of its file, 64 hexadecimal digits.
    pub digest: String,
    /// The names for which it is shown.
    pub names: Vec<CertifiedName>,
}

/// The file of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateFile {
    /// Which.
    pub id: CertificateId,
    /// Blocks of PEM: the certificate, those that lead from it to an authority, and its private key as PKCS #8.
    pub pem: Secret,
}

/// What the proxy answers to a request for `http://NAME/.well-known/acme-challenge/TOKEN` (RFC 8555, 8.3), whatever else
/// that name leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpChallenge {
    /// The name that an authority asks about.
    pub name: DnsName,
    /// What it chose: base64url, 128 characters at most.
    pub token: String,
    /// The token, a dot, and the thumbprint of the account's key: 256 characters at most.
    pub answer: String,
}

/// A text that is not shown in logs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Ids as an object, since an answer is one.
pub(crate) mod ids {
    use super::{CertificateId, Deserialize, Serialize};
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Ids<T> {
        certificates: T,
    }

    pub fn serialize<S: Serializer>(ids: &[CertificateId], serializer: S) -> Result<S::Ok, S::Error> {
        Ids { certificates: ids }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CertificateId>, D::Error> {
        Ids::deserialize(deserializer).map(|ids| ids.certificates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, MAX_LINE, NodePlan, Request, ToAgent};

    fn id(number: u128) -> CertificateId {
        format!("00000000-0000-7000-8000-{number:012}").parse().unwrap()
    }

    #[test]
    fn what_is_said_is_heard() {
        let names = vec!["*.example.org".parse().unwrap(), "example.org".parse().unwrap()];
        let served = ServedCertificate { id: id(1), digest: "ab".repeat(32), names };
        let file = CertificateFile { id: id(1), pem: Secret("-----BEGIN".into()) };
        for request in [
            Request::MissingCertificates { certificates: vec![served.clone()] },
            Request::PutCertificates { certificates: vec![file] },
        ] {
            let text = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request, "{text}");
        }
        for ids in [vec![], vec![id(1), id(2)]] {
            let answer = Answer::MissingCertificates(ids);
            let text = serde_json::to_string(&answer).unwrap();
            assert!(text.starts_with(r#"{"type":"missing_certificates","certificates":["#), "{text}");
            assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
        }
        let name = "www.example.org".parse().unwrap();
        let challenge = HttpChallenge { name, token: "t-_1".into(), answer: "t-_1.x".into() };
        let text = serde_json::to_string(&(&served, &challenge)).unwrap();
        assert_eq!(serde_json::from_str::<(ServedCertificate, HttpChallenge)>(&text).unwrap(), (served, challenge));
    }

    #[test]
    fn a_plan_that_names_no_certificate_has_none() {
        let route = r#"{"name":"www.example.org","guest":"www.example.org","ip":"10.5.0.10"}"#;
        let text = format!(
            r#"{{"revision":1,"bridge":"b","network":"10.5.0.1/16","ssh_routes":[],"http_routes":[{route}],"firewall":[]}}"#
        );
        let plan: NodePlan = serde_json::from_str(&text).unwrap();
        assert!(plan.certificates.is_empty() && plan.challenges.is_empty());
        assert_eq!(plan.http_routes[0].https, crate::Https { redirect: false, hsts_s: None });
    }

    #[test]
    fn as_many_as_may_come_fit_into_a_line() {
        let pem = Secret(format!("{}\n", "x".repeat(64)).repeat(MAX_CERTIFICATE / 65));
        let file = |number| CertificateFile { id: id(number), pem: pem.clone() };
        let certificates: Vec<_> = (0..CERTIFICATES_AT_ONCE as u128).map(file).collect();
        let message = ToAgent::Request { id: u64::MAX, job: None, request: Request::PutCertificates { certificates } };
        assert!(serde_json::to_string(&message).unwrap().len() < MAX_LINE);
    }

    #[test]
    fn a_key_is_not_shown() {
        let file = CertificateFile { id: id(1), pem: Secret("very secret".into()) };
        let request = Request::PutCertificates { certificates: vec![file] };
        assert!(!format!("{request:?}").contains("very"));
    }
}
