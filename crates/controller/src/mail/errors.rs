//! Why a letter was not sent, as an operator needs to know it.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use lettre::transport::smtp::Error as SmtpError;
use thiserror::Error;

/// A letter can't be sent.
#[derive(Debug, Error)]
pub enum MailError {
    /// The relay's URL is of no use. It may hold a password, so it is not shown.
    #[error("mail.relay is no smtp:// or smtps:// URL that can be used, with no query but tls=required")]
    Relay,
    /// A password would be readable on the way.
    #[error("mail: a password would go to {host} unencrypted: use smtps://, or set mail.starttls")]
    PasswordInTheOpen {
        /// Where to.
        host: String,
    },
    /// The file of authorities is of no use.
    #[error("mail.ca_file {path} can't be used: {message}", path = .path.display())]
    Authorities {
        /// Which file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// TLS failed, but not for the certificate.
    #[error("TLS with the relay failed: {0}")]
    Tls(String),
    /// An address is none.
    #[error("{address:?} is no mail address")]
    Address {
        /// Which.
        address: String,
        /// Why not.
        #[source]
        source: lettre::address::AddressError,
    },
    /// The letter can't be put together.
    #[error("the letter could not be put together")]
    Message(#[from] lettre::error::Error),
    /// The login was refused.
    #[error("the relay refused the login: {0}")]
    Login(String),
    /// There is no way to log in.
    #[error("the relay offers no login that Corpus knows (PLAIN or LOGIN)")]
    NoLogin,
    /// The certificate is not accepted.
    #[error("the relay's certificate is not accepted: {0}")]
    Certificate(String),
    /// It does not encrypt.
    #[error("the relay offers no STARTTLS, without which no letter is sent")]
    NoStartTls,
    /// It does not answer.
    #[error("the relay does not answer: {0}")]
    Unreachable(String),
    /// It did not take this letter.
    #[error("the relay did not take it: {0}")]
    Refused(String),
}

impl MailError {
    /// Whether it would be the same with any letter.
    pub const fn is_of_relay(&self) -> bool {
        !matches!(self, Self::Address { .. } | Self::Message(_) | Self::Refused(_))
    }
}

/// Codes with which a login is refused, or wanted (RFC 4954).
const OF_LOGINS: [u16; 6] = [432, 454, 530, 534, 535, 538];

impl From<SmtpError> for MailError {
    fn from(error: SmtpError) -> Self {
        if let Some(code) = error.status() {
            let text = error.to_string();
            return if OF_LOGINS.contains(&code.into()) { Self::Login(text) } else { Self::Refused(text) };
        }
        if let Some(error) = of_tls(&error) {
            return match error {
                rustls::Error::InvalidCertificate(why) => Self::Certificate(why.to_string()),
                other => Self::Tls(other.to_string()),
            };
        }
        let text = error.to_string();
        match error.is_client() {
            true if text.contains("STARTTLS") => Self::NoStartTls,
            true if text.contains("authentication mechanism") => Self::NoLogin,
            _ => Self::Unreachable(text),
        }
    }
}

/// What TLS found, wherever in the chain it is.
fn of_tls(error: &SmtpError) -> Option<&rustls::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = inner.and_then(|inner| inner.downcast_ref()).or_else(|| error.downcast_ref());
        if found.is_some() {
            return found;
        }
        source = error.source();
    }
    None
}
