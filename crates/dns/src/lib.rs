//! DNS zones and records: what Corpus asks of a DNS server, and how it knows that it is so.
//!
//! A member attaches a name to a guest; the name must then lead there for everybody. Writing
//! a record is one thing ([`DnsProvider`]), being answered is another ([`authority`]): only
//! the second counts as attached. Names of zones that others hold are asked for as everybody
//! does ([`world`]). Several servers can be configured ([`Providers`]). What this module guarantees:
//! - Every `ensure_*` and `remove_*` says what must be true afterwards, so it can be repeated.
//! - Records and zones that Corpus made carry its mark. What has no mark is somebody else's:
//!   it is neither overwritten ([`DnsError::Foreign`]) nor removed ([`Removal::NotOurs`]).
//! - Each call has a time limit; what may succeed later [is transient](DnsError::is_transient).

pub mod authority;
#[cfg(any(test, feature = "testing"))]
pub mod bind_server;
mod error;
mod powerdns;
#[cfg(any(test, feature = "testing"))]
pub mod powerdns_server;
mod providers;
mod record;
mod rfc2136;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_updates;
mod wire;
pub mod world;

use async_trait::async_trait;
use corpus_domain::DnsName;

pub use error::DnsError;
pub use powerdns::{PowerDns, PowerDnsSettings};
pub use providers::{Provider, Providers};
pub use record::{Challenge, Content, Owner, Record, is_reverse, reverse};
pub use rfc2136::{Rfc2136, Rfc2136Settings};

/// A zone that a DNS server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Its name.
    pub name: DnsName,
    /// Whether Corpus made it.
    pub ours: bool,
}

/// How a removal ended; all three are successes, since nothing of ours is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It was there and is gone.
    Removed,
    /// There was nothing.
    Absent,
    /// It is there, but Corpus did not make it: it was left.
    NotOurs,
}

/// A server that holds zones and can be told to change them.
#[async_trait]
pub trait DnsProvider: Send + Sync {
    /// The server answers, and accepts our key.
    async fn check(&self) -> Result<(), DnsError>;

    /// The zones that the server holds, ours and others.
    async fn zones(&self) -> Result<Vec<Zone>, DnsError>;

    /// The server holds the zone. One that existed before is used as it is and stays
    /// somebody else's.
    async fn ensure_zone(&self, zone: &DnsName) -> Result<(), DnsError>;

    /// The server does not hold the zone, if it was ours. A zone of ours in which others
    /// keep records is refused with [`DnsError::NotEmpty`].
    async fn remove_zone(&self, zone: &DnsName) -> Result<Removal, DnsError>;

    /// What others made that decides where the name leads: a record of the name itself, a wildcard
    /// that covers it, or that it is in a part of the zone that is held elsewhere. None when there
    /// is nothing of the kind.
    async fn made_by_others(&self, zone: &DnsName, owner: &Owner) -> Result<Option<String>, DnsError>;

    /// The name has what the record says, and nothing else that decides where it leads. A record that
    /// is not ours is [`DnsError::Foreign`], unless it says the same already.
    async fn ensure_record(&self, record: &Record) -> Result<(), DnsError>;

    /// The name has no record of ours that decides where it leads.
    async fn remove_record(&self, zone: &DnsName, owner: &Owner) -> Result<Removal, DnsError>;

    /// The challenge is among what stands there; what others wrote there stays.
    async fn ensure_challenge(&self, challenge: &Challenge) -> Result<(), DnsError>;

    /// The challenge is not among what stands there. It is known by its value, which nobody else could make.
    async fn remove_challenge(&self, challenge: &Challenge) -> Result<Removal, DnsError>;
}
