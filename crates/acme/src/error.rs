//! What can go wrong with a directory, and what can be done about it.

use std::path::PathBuf;
use std::time::Duration;

use instant_acme::{Error, Problem};
use thiserror::Error;

use crate::ProofKind;
use crate::http::HttpFailure;

/// How much of the directory's own text is kept.
const TEXT_LIMIT: usize = 400;

/// Why there is no certificate. No message holds a key.
#[derive(Debug, Error)]
pub enum AcmeError {
    /// Nothing answered.
    #[error("the directory {directory} can't be reached; it is tried again")]
    Unreachable {
        /// Its host.
        directory: String,
        /// Why not.
        #[source]
        source: reqwest::Error,
    },
    /// It did not answer in time.
    #[error("the directory {directory} did not answer in time; it is tried again")]
    Slow {
        /// Its host.
        directory: String,
    },
    /// It answered with a failure of its own.
    #[error("the directory failed with status {status}: {text}; it is tried again")]
    Failing {
        /// HTTP status.
        status: u16,
        /// What it said.
        text: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// Its answer is no directory's.
    #[error(
        "the answer of the directory was not understood: see that `certificates.directory` of the configuration is an ACME directory's address"
    )]
    NotUnderstood(#[source] Option<Error>),
    /// More was asked for than it gives in a time.
    #[error("the directory gives no more certificates for now: {text}")]
    RateLimited {
        /// What it said.
        text: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// It looked, and did not find what proves that the name is ours.
    #[error("the directory could not see that {name} leads here: {saw}. {advice}")]
    ValidationFailed {
        /// The name.
        name: String,
        /// What it saw.
        saw: String,
        /// What to do.
        advice: &'static str,
    },
    /// It does not give certificates for this name.
    #[error("the directory gives no certificate for this name: {text}")]
    NameRefused {
        /// What it said.
        text: String,
    },
    /// The order has ended without a certificate.
    #[error("the directory ended the order: {text}; another one is made")]
    OrderInvalid {
        /// What it said.
        text: String,
    },
    /// It does not let us have an account, or not this one.
    #[error("the directory refused our account: {text}. See [certificates] in the configuration")]
    AccountRefused {
        /// What it said.
        text: String,
    },
    /// The account that we have kept is not known there any more.
    #[error("the directory does not know our account any more; another one is made")]
    AccountUnknown,
    /// The way to prove it is not among those that it takes for this name.
    #[error("the directory takes no proof by {kind} for {name}: set `certificates.challenge` to another")]
    ProofNotOffered {
        /// The name.
        name: String,
        /// The way.
        kind: ProofKind,
    },
    /// It refused the request for a reason of its own.
    #[error("the directory refused: {text}")]
    Refused {
        /// What it said.
        text: String,
    },
    /// It is still at it.
    #[error("the directory has not {what} within {} s; it is tried again", limit.as_secs())]
    NotYet {
        /// What it was waited for.
        what: &'static str,
        /// For how long.
        limit: Duration,
    },
    /// The file with the authorities that the directory's own certificate is of.
    #[error("the certificates of `certificates.ca_file` ({path}) can't be read", path = path.display())]
    RootUnreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The key of the external account.
    #[error("`certificates.eab_key` in the configuration is not base64url")]
    ExternalKeyInvalid,
    /// What was kept of the account.
    #[error("what is kept of our account at the directory can't be read; another one is made")]
    CredentialsInvalid(#[source] serde_json::Error),
    /// The HTTP client could not be made.
    #[error("the client for the directory could not be made")]
    Client(#[source] reqwest::Error),
    /// Something of ours: a key, or a request to sign.
    #[error("the key or the request for a certificate could not be made")]
    Key(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl AcmeError {
    /// Whether the same may succeed later, without anybody changing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Slow { .. }
                | Self::Failing { .. }
                | Self::RateLimited { .. }
                | Self::OrderInvalid { .. }
                | Self::AccountUnknown
                | Self::CredentialsInvalid(_)
                | Self::NotYet { .. }
        )
    }

    /// How long the directory wants to be left alone.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Failing { retry_after, .. } | Self::RateLimited { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the kept account is of no use any more.
    pub const fn is_of_lost_account(&self) -> bool {
        matches!(self, Self::AccountUnknown | Self::CredentialsInvalid(_))
    }
}

impl From<Error> for AcmeError {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => of_problem(&problem),
            Error::Other(cause) => match cause.downcast::<HttpFailure>() {
                Ok(failure) => (*failure).into(),
                Err(cause) => Self::NotUnderstood(Some(Error::Other(cause))),
            },
            Error::Crypto | Error::KeyRejected => Self::Key(Box::new(error)),
            other => Self::NotUnderstood(Some(other)),
        }
    }
}

impl From<HttpFailure> for AcmeError {
    fn from(failure: HttpFailure) -> Self {
        match failure {
            HttpFailure::Unreachable { host, source } => Self::Unreachable { directory: host, source },
            HttpFailure::Slow { host } => Self::Slow { directory: host },
            HttpFailure::Failing { status, text, retry_after } => {
                Self::Failing { status, text: bounded(&text), retry_after }
            }
            HttpFailure::Limited { text, retry_after } => Self::RateLimited { text: bounded(&text), retry_after },
            HttpFailure::TooLong | HttpFailure::Invalid(_) => Self::NotUnderstood(None),
        }
    }
}

/// The last part of a problem's type: `rateLimited`.
fn kind_of(problem: &Problem) -> &str {
    problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next()).unwrap_or_default()
}

fn of_problem(problem: &Problem) -> AcmeError {
    let text = text_of(problem);
    match kind_of(problem) {
        "rateLimited" => AcmeError::RateLimited { text, retry_after: None },
        "accountDoesNotExist" => AcmeError::AccountUnknown,
        "unauthorized"
        | "externalAccountRequired"
        | "userActionRequired"
        | "invalidContact"
        | "unsupportedContact"
        | "badSignatureAlgorithm"
        | "badPublicKey" => AcmeError::AccountRefused { text },
        "rejectedIdentifier" | "unsupportedIdentifier" | "caa" => AcmeError::NameRefused { text },
        "badNonce" | "serverInternal" => {
            AcmeError::Failing { status: problem.status.unwrap_or(500), text, retry_after: None }
        }
        "orderNotReady" => AcmeError::OrderInvalid { text },
        _ => AcmeError::Refused { text },
    }
}

/// Why a name was not validated, and what to do about it.
pub(crate) fn not_validated(name: String, kind: ProofKind, problem: &Problem) -> AcmeError {
    let advice = match (kind_of(problem), kind) {
        // That is not about the name.
        ("rateLimited" | "badNonce" | "serverInternal", _) => return of_problem(problem),
        ("caa", _) => "A CAA record of the name or above it lets other authorities only: change it",
        ("dns", ProofKind::Http01) => "See that the world resolves the name to its node's address",
        ("connection", ProofKind::Http01) => {
            "See that the name leads to its node and that port 80 of the node is open from outside"
        }
        (_, ProofKind::Http01) => "See that the name leads to its node and to no other host",
        (_, ProofKind::Dns01) => "See that the zone is delegated to the DNS server that Corpus writes to",
    };
    AcmeError::ValidationFailed { name, saw: text_of(problem), advice }
}

/// What the directory said, its parts included.
pub(crate) fn text_of(problem: &Problem) -> String {
    let own = problem.detail.iter().map(String::as_str);
    let parts = problem.subproblems.iter().filter_map(|part| part.detail.as_deref());
    let said = own.chain(parts).collect::<Vec<_>>().join("; ");
    let said =
        if said.is_empty() { problem.r#type.clone().unwrap_or_else(|| "no reason given".to_owned()) } else { said };
    bounded(&said)
}

/// One line of bounded length.
fn bounded(text: &str) -> String {
    let line: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(TEXT_LIMIT).collect();
    line.trim().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: &str, detail: &str) -> Problem {
        serde_json::from_value(
            serde_json::json!({ "type": format!("urn:ietf:params:acme:error:{kind}"), "detail": detail }),
        )
        .unwrap()
    }

    #[test]
    fn problems_say_whether_waiting_helps() {
        assert!(of_problem(&problem("rateLimited", "too many")).is_transient());
        assert!(of_problem(&problem("serverInternal", "oops")).is_transient());
        assert!(of_problem(&problem("accountDoesNotExist", "who?")).is_of_lost_account());
        assert!(!of_problem(&problem("rejectedIdentifier", "no")).is_transient());
        assert!(!of_problem(&problem("externalAccountRequired", "no")).is_transient());
    }

    #[test]
    fn text_of_the_directory_is_one_bounded_line() {
        let said = text_of(&problem("unauthorized", &format!("got \"\u{1b}[2J\n{}\"", "x".repeat(5000))));
        assert!(said.len() <= TEXT_LIMIT && !said.contains(['\n', '\u{1b}']), "{said}");
    }

    #[test]
    fn what_to_do_follows_what_was_seen() {
        let seen = |kind, proof| not_validated("a.example.org".to_owned(), proof, &problem(kind, "it")).to_string();
        assert!(seen("connection", ProofKind::Http01).contains("port 80"));
        assert!(seen("unauthorized", ProofKind::Dns01).contains("delegated"));
        assert!(seen("caa", ProofKind::Http01).contains("CAA"));
        for kind in ["badNonce", "serverInternal", "rateLimited"] {
            let error = not_validated("a.example.org".to_owned(), ProofKind::Http01, &problem(kind, "it"));
            assert!(error.is_transient() && !error.to_string().contains("leads"), "{error}");
        }
    }
}
