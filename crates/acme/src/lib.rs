//! Certificates from a directory (ACME, RFC 8555): what is asked of it, and what its answers mean.
//!
//! A directory gives a certificate to whoever proves that the names lead to him. Here is the talk with it; what
//! proves it is served by others ([`Proof`] says what). What this module guarantees:
//! - Each call has a time limit, and no answer is read beyond [a bound](http::ANSWER_LIMIT).
//! - An order can be taken up again by its address ([`Account::resume`]) at any point, also when it has ended well:
//!   so a step that is repeated does not order twice. The key of the certificate is made before, by [`new_key`].
//! - Each failure says what can be done, and whether [waiting helps](AcmeError::is_transient).
//! - Text of the directory is bounded and has no control characters: it may quote what a guest answered.

mod account;
mod error;
mod http;
mod order;
#[cfg(any(test, feature = "testing"))]
pub mod pebble_server;
mod renewal;
#[cfg(any(test, feature = "testing"))]
pub mod renewal_server;
#[cfg(test)]
mod tests;

pub use account::{Account, Directory, DirectorySettings, ExternalAccount};
pub use error::AcmeError;
pub use order::{Order, Proof, ProofKind, new_key};
pub use renewal::{RenewalInfo, RenewalWindow};
