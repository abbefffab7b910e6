//! How the relay is reached: TLS from the start, or STARTTLS that is required, or neither; and the login.
//!
//! Whether a connection is encrypted is decided by the configuration, never by what the relay offers: who stands between
//! could take the offer away. A password goes over TLS, or to this machine.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use lettre::Tokio1Executor;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::{AsyncSmtpTransport, AsyncSmtpTransportBuilder};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::errors::MailError;

/// A port of its own for STARTTLS, unless the URL says one.
const SUBMISSION: u16 = 587;

/// The relay, as it is configured.
#[derive(Debug, Clone)]
pub struct Relay {
    /// `smtps://HOST`, or `smtp://HOST`; it may hold a login.
    pub url: SecretString,
    /// Whether an `smtp://` connection is upgraded by STARTTLS, or not used.
    pub starttls: bool,
    /// The login, if the URL holds none.
    pub login: Option<(String, SecretString)>,
    /// The authorities that vouch for its certificate; none: those of the system.
    pub ca_file: Option<PathBuf>,
}

impl Relay {
    /// The relay of a URL alone.
    pub fn of(url: &str) -> Self {
        Self { url: SecretString::from(url), starttls: false, login: None, ca_file: None }
    }

    /// Says what is wrong with it, but for the file of authorities.
    pub fn check(&self) -> Result<(), MailError> {
        self.parts().map(drop)
    }

    fn parts(&self) -> Result<Parts, MailError> {
        let mut url = Url::parse(self.url.expose_secret()).map_err(|_| MailError::Relay)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(MailError::Relay)?.to_owned();
        let asked: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let by_url = match asked.as_slice() {
            [] => false,
            [(name, value)] if name == "tls" && value == "required" => true,
            _ => return Err(MailError::Relay),
        };
        let kind = match (url.scheme(), self.starttls || by_url) {
            ("smtps", _) => Kind::Tls,
            ("smtp", true) => Kind::StartTls,
            ("smtp", false) => Kind::Plain,
            _ => return Err(MailError::Relay),
        };
        let has_login = self.login.is_some() || url.password().is_some();
        if has_login && matches!(kind, Kind::Plain) && !is_this_machine(&host) {
            return Err(MailError::PasswordInTheOpen { host });
        }
        url.set_query(None);
        if matches!(kind, Kind::StartTls) && url.port().is_none() {
            url.set_port(Some(SUBMISSION)).map_err(|()| MailError::Relay)?;
        }
        Ok(Parts { url, host, kind })
    }

    pub(super) fn transport(&self) -> Result<AsyncSmtpTransportBuilder, MailError> {
        let Parts { url, host, kind } = self.parts()?;
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str()).map_err(|_| MailError::Relay)?;
        let builder = match kind {
            Kind::Plain => builder.tls(Tls::None),
            Kind::Tls => builder.tls(Tls::Wrapper(self.tls(host)?)),
            Kind::StartTls => builder.tls(Tls::Required(self.tls(host)?)),
        };
        Ok(match &self.login {
            Some((name, password)) => {
                builder.credentials(Credentials::new(name.clone(), password.expose_secret().to_owned()))
            }
            None => builder,
        })
    }

    fn tls(&self, host: String) -> Result<TlsParameters, MailError> {
        let mut tls = TlsParameters::builder(host);
        if let Some(path) = &self.ca_file {
            tls = tls.certificate_store(CertificateStore::None).add_root_certificate(authorities(path)?);
        }
        tls.build().map_err(|error| MailError::Tls(error.to_string()))
    }
}

struct Parts {
    url: Url,
    host: String,
    kind: Kind,
}

enum Kind {
    Plain,
    Tls,
    StartTls,
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    bare == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// The certificates of a file; one without any would trust nobody, and say so at each letter.
fn authorities(path: &Path) -> Result<Certificate, MailError> {
    let unusable = |message: String| MailError::Authorities { path: path.to_owned(), message };
    let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
        return Err(unusable("there is no certificate in PEM form in it".to_owned()));
    }
    Certificate::from_pem(&pem).map_err(|error| unusable(error.to_string()))
}
