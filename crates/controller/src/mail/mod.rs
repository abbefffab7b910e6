//! Mail: what a member or an operator waits for, or must look at.
//!
//! Who is told what is decided in `events`. What happened is queued in the transaction in which it happened, so that
//! it is told if and only if it happened, and once: its key names event and addressee. What comes within a short time
//! for one member becomes one letter ([`bundle`]); what is urgent does not wait, what the member wants once a day
//! waits for that, and no member gets more than so many letters in an hour. When a letter is written it is asked
//! again who may see what, and wants it.
//!
//! A letter is sent by any server that has a relay, by one at a time, tried again with growing pauses, and given up
//! after a day, which the log says and the operators' notices. A server that dies between the relay's word and its
//! own note sends a letter again; both bear one `Message-ID`.
//!
//! Nothing that a person wrote gets into a header but by the mail library, encoded; what gets
//! into a line is one line there. No letter holds a secret.

mod bundle;
mod errors;
mod letter;
mod mailer;
mod relay;
mod sending;
mod words;

#[cfg(test)]
mod tests;

pub use bundle::{Group, LISTED};
pub use errors::MailError;
pub use letter::{
    AwayLetter, BackupLetter, BackupNeed, CertificateLetter, ClaimLetter, DeploymentLetter, GuestLetter, JobLetter,
    KeyLetter, Letter, NodeLetter, PlatformLetter, RequestLetter, TokenLetter,
};
pub use mailer::{Mailer, is_address};
pub use relay::Relay;
pub(crate) use sending::send_due;
pub use words::{Line, Mail};
