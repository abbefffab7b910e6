//! What the operator decides about the surroundings of nodes and guests: what they must be kept from,
//! and where they may go all the same.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use corpus_domain::EgressRule;
use ipnet::IpNet;

use crate::dns::Providers;

/// What nodes are told from: what the operator decided, and who answers for our zones.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// What the operator decided.
    pub decided: &'a Surroundings,
    /// The DNS servers.
    pub dns: &'a Providers,
}

/// What is around all nodes.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The hosts of what Corpus is made of: its own, the database's, the directory's, …
    pub hosts: BTreeSet<String>,
    /// Where guests may go although it is closed to them otherwise.
    pub allowed: Vec<EgressRule>,
    /// Where webhooks may lead although it is closed to them otherwise.
    pub webhooks: Vec<IpNet>,
    /// How mail of guests is taken; none: it is not.
    pub mail: Option<GuestMailSettings>,
}

/// How nodes take mail from guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestMailSettings {
    /// Where it goes, as nodes reach it.
    pub relay: SocketAddr,
    /// Messages of one guest in an hour.
    pub messages_per_hour: u32,
    /// The size of a message, in bytes.
    pub max_message_bytes: u64,
}
