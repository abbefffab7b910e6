//! The relay that letters are given to.

use std::error::Error as _;
use std::time::Duration;

use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::transport::smtp::AsyncSmtpTransport;
use lettre::{Address, AsyncTransport, Message, Tokio1Executor};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use url::Url;
use uuid::Uuid;

use super::letter::Letter;

/// How long the relay may take for one letter's step.
const LIMIT: Duration = Duration::from_secs(20);

/// A letter can't be sent.
#[derive(Debug, Error)]
pub enum MailError {
    /// The relay's URL is of no use. It may hold a password, so it is not shown.
    #[error("mail.relay is no smtp:// or smtps:// URL that can be used")]
    Relay,
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
    /// The relay did not take it.
    #[error("the relay did not take it: {}", cause(.0))]
    Smtp(#[from] lettre::transport::smtp::Error),
}

fn cause(error: &lettre::transport::smtp::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// Whether the text is a mail address.
pub fn is_address(text: &str) -> bool {
    text.parse::<Address>().is_ok()
}

/// Tells other machines not to answer (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Gives letters to the relay.
pub struct Mailer {
    relay: AsyncSmtpTransport<Tokio1Executor>,
    from: Address,
    pages: Url,
}

impl Mailer {
    /// A mailer to a relay (`smtp://HOST`, `smtps://USER:PASSWORD@HOST`), from this address;
    /// letters link to the pages at `pages`.
    pub fn new(relay: &SecretString, from: &str, pages: &Url) -> Result<Self, MailError> {
        let relay = AsyncSmtpTransport::<Tokio1Executor>::from_url(relay.expose_secret());
        let relay = relay.map_err(|_| MailError::Relay)?.timeout(Some(LIMIT)).build();
        Ok(Self { relay, from: address(from)?, pages: pages.clone() })
    }

    /// Sends a letter; its id makes the `Message-ID`, so that a letter sent twice is known as one.
    pub async fn send(&self, id: Uuid, to: &str, letter: &Letter) -> Result<(), MailError> {
        let message = self.message(id, to, letter)?;
        self.relay.send(message).await?;
        Ok(())
    }

    pub(super) fn message(&self, id: Uuid, to: &str, letter: &Letter) -> Result<Message, MailError> {
        let mail = letter.mail(&self.pages);
        let message = Message::builder()
            .message_id(Some(format!("<{id}@{}>", self.from.domain())))
            .from(lettre::message::Mailbox::new(Some("Corpus".to_owned()), self.from.clone()))
            .to(address(to)?.into())
            .subject(mail.subject)
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text)?;
        Ok(message)
    }
}

fn address(text: &str) -> Result<Address, MailError> {
    text.parse().map_err(|source| MailError::Address { address: text.chars().take(100).collect(), source })
}
