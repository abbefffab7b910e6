//! Mail: of a platform that is ready, of a deployment that failed, of what works again, of a key that moved.
//!
//! A letter is enqueued in the transaction of the event that it is about, so that it is sent if
//! and only if the event happened, and once: its key names event and addressee. It is sent by
//! any server that has a relay, tried again with growing pauses, and given up after a day, which
//! the log says. A server that dies between the relay's word and its own note sends a letter
//! again; both bear one `Message-ID`.
//!
//! Nothing that a person wrote gets into a header but by the mail library, encoded; what gets
//! into a line is one line there. No letter holds a secret.

mod events;
mod letter;
mod mailer;
mod sending;

#[cfg(test)]
mod tests;

pub use events::{deployment_ended, platform_ready};
pub use letter::{DeploymentLetter, KeyLetter, Letter, Mail, PlatformLetter};
pub use mailer::{MailError, Mailer, is_address};
pub(crate) use sending::send_due;
