//! DNS zones and records: what Corpus asks of a DNS server, and how it knows that it is so.
//!
//! A member attaches a name to a guest; the name must then lead there for everybody. Writing
//! a record is one thing ([`DnsProvider`]), being answered is another ([`authority`]): only
//! the second counts as attached. What this module guarantees:
//! - Every `ensure_*` and `remove_*` says what must be true afterwards, so it can be repeated.
//! - Records and zones that Corpus made carry its mark. What has no mark is somebody else's:
//!   it is neither overwritten ([`DnsError::Foreign`]) nor removed ([`Removal::NotOurs`]).
//! - Each call has a time limit; what may succeed later [is transient](DnsError::is_transient).

pub mod authority;
mod error;
mod powerdns;

#[cfg(any(test, feature = "testing"))]
pub mod powerdns_server;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use async_trait::async_trait;
use corpus_domain::DnsName;

pub use error::DnsError;
pub use powerdns::{PowerDns, PowerDnsSettings};

/// A zone that a DNS server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Its name.
    pub name: DnsName,
    /// Whether Corpus made it.
    pub ours: bool,
}

/// An address record: A or AAAA, as the address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRecord {
    /// The zone it is written to.
    pub zone: DnsName,
    /// The zone's name itself, or one below it.
    pub name: DnsName,
    /// Where the name leads.
    pub address: IpAddr,
    /// How long others may keep the answer, in seconds.
    pub ttl_s: u32,
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
    async fn made_by_others(&self, zone: &DnsName, name: &DnsName) -> Result<Option<String>, DnsError>;

    /// The name leads to this address and no other. A record that is not ours is
    /// [`DnsError::Foreign`], unless it says the same already.
    async fn ensure_record(&self, record: &AddressRecord) -> Result<(), DnsError>;

    /// The name has no address record of ours.
    async fn remove_record(&self, zone: &DnsName, name: &DnsName) -> Result<Removal, DnsError>;
}
