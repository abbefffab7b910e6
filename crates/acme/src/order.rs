//! An order for one certificate: what proves the names, when they are proven, and the chain.

use std::fmt;
use std::time::Duration;

use corpus_domain::CertifiedName;
use instant_acme::{AuthorizationStatus, ChallengeStatus, ChallengeType, OrderStatus};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use crate::AcmeError;
use crate::error::{not_validated, text_of};
use crate::http::Http;

/// The first pause between two looks at an order; they grow.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest one, also when the directory asks for more: the whole wait is bounded.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How it is proven that a name is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofKind {
    /// An answer at `http://NAME/.well-known/acme-challenge/TOKEN`.
    Http01,
    /// A TXT record at `_acme-challenge.NAME`; the one way for wildcards.
    Dns01,
}

impl ProofKind {
    /// The protocol's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::Dns01 => "dns-01",
        }
    }

    const fn wire(self) -> ChallengeType {
        match self {
            Self::Http01 => ChallengeType::Http01,
            Self::Dns01 => ChallengeType::Dns01,
        }
    }
}

impl fmt::Display for ProofKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What must be there for the directory to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The name, without `*.`.
    pub name: String,
    /// The last part of the path, for HTTP.
    pub token: String,
    /// What is answered there, for HTTP.
    pub answer: String,
    /// What the TXT record says, for DNS.
    pub txt: String,
}

/// A key for a certificate: ECDSA P-256, PKCS#8 PEM.
pub fn new_key() -> Result<SecretString, AcmeError> {
    let key = KeyPair::generate().map_err(|error| AcmeError::Key(Box::new(error)))?;
    Ok(SecretString::from(key.serialize_pem()))
}

/// An order at a directory.
pub struct Order {
    inner: instant_acme::Order,
    http: Http,
}

impl Order {
    pub(crate) const fn new(inner: instant_acme::Order, http: Http) -> Self {
        Self { inner, http }
    }

    /// Its address, to take it up again.
    pub fn url(&self) -> &str {
        self.inner.url()
    }

    /// Whether it waits for no proof any more.
    pub fn is_validated(&mut self) -> bool {
        matches!(self.inner.state().status, OrderStatus::Ready | OrderStatus::Processing | OrderStatus::Valid)
    }

    /// What must be there; nothing for names that the directory knows to be ours already.
    pub async fn proofs(&mut self, kind: ProofKind) -> Result<Vec<Proof>, AcmeError> {
        let mut proofs = Vec::new();
        let mut names = self.inner.authorizations();
        while let Some(next) = names.next().await {
            let mut name = next?;
            if name.status != AuthorizationStatus::Pending {
                continue;
            }
            let text = name.identifier().to_string();
            let Some(challenge) = name.challenge(kind.wire()) else {
                return Err(AcmeError::ProofNotOffered { name: text, kind });
            };
            let answer = challenge.key_authorization();
            proofs.push(Proof {
                name: text.trim_start_matches("*.").to_owned(),
                token: challenge.token.clone(),
                txt: answer.dns_value(),
                answer: answer.as_str().to_owned(),
            });
        }
        Ok(proofs)
    }

    /// Tells the directory that the proofs are there. Done again, it tells only what it does not know.
    pub async fn ready(&mut self, kind: ProofKind) -> Result<(), AcmeError> {
        let mut names = self.inner.authorizations();
        while let Some(next) = names.next().await {
            let mut name = next?;
            if name.status != AuthorizationStatus::Pending {
                continue;
            }
            let text = name.identifier().to_string();
            let Some(mut challenge) = name.challenge(kind.wire()) else {
                return Err(AcmeError::ProofNotOffered { name: text, kind });
            };
            if challenge.status == ChallengeStatus::Pending {
                challenge.set_ready().await.map_err(|error| match error {
                    instant_acme::Error::Api(problem) => not_validated(text, kind, &problem),
                    error => error.into(),
                })?;
            }
        }
        Ok(())
    }

    /// Waits until the directory has seen all proofs.
    pub async fn validated(&mut self, kind: ProofKind, limit: Duration) -> Result<(), AcmeError> {
        let mut looks = Looks::new(limit, "looked at the proofs");
        loop {
            match self.inner.refresh().await?.status {
                OrderStatus::Ready | OrderStatus::Processing | OrderStatus::Valid => return Ok(()),
                OrderStatus::Invalid => return Err(self.why_not(kind).await),
                OrderStatus::Pending => {}
            }
            // A name that failed ends the order, but not with every directory at once.
            if let Some(failed) = self.failed_name(kind).await? {
                return Err(failed);
            }
            looks.pause(self.asked_to_wait()).await?;
        }
    }

    /// The chain for this key, leaf first. An order that has ended well gives it again.
    pub async fn finalize(
        &mut self,
        names: &[CertifiedName],
        key: &SecretString,
        limit: Duration,
    ) -> Result<String, AcmeError> {
        let mut looks = Looks::new(limit, "made the certificate");
        loop {
            // It was read when the order was taken up, or after the last pause.
            match self.inner.state().status {
                OrderStatus::Ready => {
                    self.inner.finalize_csr(&request(names, key)?).await?;
                    if self.inner.state().status == OrderStatus::Valid {
                        continue;
                    }
                }
                OrderStatus::Valid => {
                    let chain = self.inner.certificate().await?;
                    return chain.ok_or(AcmeError::NotYet { what: "given the certificate", limit });
                }
                OrderStatus::Processing => {}
                OrderStatus::Pending => {
                    return Err(AcmeError::OrderInvalid { text: "it wants its proofs again".to_owned() });
                }
                OrderStatus::Invalid => return Err(self.ended()),
            }
            looks.pause(self.asked_to_wait()).await?;
            self.inner.refresh().await?;
        }
    }

    /// How long the directory asked to wait until this order is looked at again.
    fn asked_to_wait(&mut self) -> Option<Duration> {
        let url = self.inner.url().to_owned();
        let state = self.inner.state();
        let names = state.authorizations.iter().map(|name| name.url.as_str());
        self.http.asked_to_wait([url.as_str(), state.finalize.as_str()].into_iter().chain(names))
    }

    async fn why_not(&mut self, kind: ProofKind) -> AcmeError {
        match self.failed_name(kind).await {
            Ok(Some(failed)) => failed,
            Ok(None) => self.ended(),
            Err(error) => error,
        }
    }

    fn ended(&mut self) -> AcmeError {
        let text = self.inner.state().error.as_ref().map_or_else(|| "no reason given".to_owned(), text_of);
        AcmeError::OrderInvalid { text }
    }

    /// The first name that the directory did not find to be ours.
    async fn failed_name(&mut self, kind: ProofKind) -> Result<Option<AcmeError>, AcmeError> {
        let mut names = self.inner.authorizations();
        while let Some(next) = names.next().await {
            let name = next?;
            let text = name.identifier().to_string();
            match name.status {
                AuthorizationStatus::Pending | AuthorizationStatus::Valid => {}
                AuthorizationStatus::Invalid => {
                    let seen = name.challenges.iter().find_map(|challenge| challenge.error.as_ref());
                    return Ok(Some(seen.map_or_else(
                        || AcmeError::OrderInvalid { text: format!("{text} was not validated") },
                        |problem| not_validated(text.clone(), kind, problem),
                    )));
                }
                AuthorizationStatus::Revoked | AuthorizationStatus::Expired | AuthorizationStatus::Deactivated => {
                    return Ok(Some(AcmeError::OrderInvalid { text: format!("it has forgotten the proof of {text}") }));
                }
            }
        }
        Ok(None)
    }
}

/// What is signed with the key, to be certified.
fn request(names: &[CertifiedName], key: &SecretString) -> Result<Vec<u8>, AcmeError> {
    let failed = |error: rcgen::Error| AcmeError::Key(Box::new(error));
    let key = KeyPair::from_pem(key.expose_secret()).map_err(failed)?;
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(&key).map_err(failed)?.der().to_vec())
}

/// Growing pauses until a limit.
struct Looks {
    what: &'static str,
    limit: Duration,
    until: Instant,
    pause: Duration,
}

impl Looks {
    fn new(limit: Duration, what: &'static str) -> Self {
        Self { what, limit, until: Instant::now() + limit, pause: FIRST_PAUSE }
    }

    async fn pause(&mut self, asked: Option<Duration>) -> Result<(), AcmeError> {
        if Instant::now() >= self.until {
            return Err(AcmeError::NotYet { what: self.what, limit: self.limit });
        }
        let pause = asked.unwrap_or(self.pause).min(LONGEST_PAUSE);
        tokio::time::sleep_until((Instant::now() + pause).min(self.until)).await;
        self.pause = self.pause * 3 / 2;
        Ok(())
    }
}
