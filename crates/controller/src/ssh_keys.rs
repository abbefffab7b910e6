//! SSH keys: judging what members paste, and making what guests need.
//!
//! A member's key ends up in `authorized_keys` of guests, so it is parsed, judged and written
//! anew: what is stored is `algorithm base64 comment` on one line, never the text that was
//! pasted. A private key that is pasted by mistake is recognised and forgotten: it is in no
//! error, no log and no answer.

mod generate;
mod member;
mod proof;
#[cfg(test)]
pub(crate) mod proof_tests;
#[cfg(test)]
mod tests;

pub use generate::{GenerateError, generate_host_key, generate_password, unix_hash};
pub use member::{KeyAlgorithm, KeyRefused, MemberKey, is_private};
pub use proof::{NAMESPACE, ProofRefused, text as proof_text, verify as verify_proof};
