//! The relay that letters are given to.

use std::time::Duration;

use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::transport::smtp::AsyncSmtpTransport;
use lettre::{Address, AsyncTransport, Message, Tokio1Executor};
use url::Url;
use uuid::Uuid;

use super::errors::MailError;
use super::relay::Relay;
use super::words::Mail;

/// How long the relay may take for one letter's step.
const STEP: Duration = Duration::from_secs(20);
/// How long it may take for a letter. A letter that was taken on is nobody else's for longer than that.
const WHOLE: Duration = Duration::from_mins(1);

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
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Address,
    pages: Url,
}

impl Mailer {
    /// A mailer to a relay, from this address; letters link to the pages at `pages`.
    pub fn new(relay: &Relay, from: &str, pages: &Url) -> Result<Self, MailError> {
        let transport = relay.transport()?.timeout(Some(STEP)).build();
        Ok(Self { transport, from: address(from)?, pages: pages.clone() })
    }

    /// Where the pages are.
    pub(super) const fn pages(&self) -> &Url {
        &self.pages
    }

    /// Sends a letter; its id makes the `Message-ID`, so that a letter sent twice is known as one.
    pub async fn send(&self, id: Uuid, to: &str, mail: &Mail) -> Result<(), MailError> {
        let message = self.message(id, to, mail)?;
        match tokio::time::timeout(WHOLE, self.transport.send(message)).await {
            Ok(sent) => Ok(sent.map(drop)?),
            Err(_) => Err(MailError::Unreachable(format!("it took longer than {} s", WHOLE.as_secs()))),
        }
    }

    pub(super) fn message(&self, id: Uuid, to: &str, mail: &Mail) -> Result<Message, MailError> {
        let message = Message::builder()
            .message_id(Some(format!("<{id}@{}>", self.from.domain())))
            .from(lettre::message::Mailbox::new(Some("Corpus".to_owned()), self.from.clone()))
            .to(address(to)?.into())
            .subject(mail.subject.clone())
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone())?;
        Ok(message)
    }
}

fn address(text: &str) -> Result<Address, MailError> {
    text.parse().map_err(|source| MailError::Address { address: text.chars().take(100).collect(), source })
}
