//! Webhooks: what happens in a project is sent to addresses of its choice.
//!
//! A delivery is enqueued in the transaction of the event that it tells of (`events`, `store::webhooks`), so that it is sent
//! if and only if the event happened. Any server sends it ([`sending`]), tries it again with growing pauses, and gives it
//! up after [`MAX_ATTEMPTS`](sending::MAX_ATTEMPTS). A server that dies between the answer and its own note sends it
//! again: both bear one `Corpus-Delivery`.
//!
//! Who adds a webhook chooses where this server connects to. So an address is resolved here, each of its addresses is
//! judged ([`destination`]), and the connection goes to one that was judged; no redirect is followed, no proxy asked,
//! and what comes back is bounded.

pub(crate) mod destination;
mod sending;
mod signature;

#[cfg(test)]
mod tests;

pub(crate) use sending::{Sender, body};
pub(crate) use signature::new_secret;
