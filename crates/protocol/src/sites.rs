//! What the node's own proxy answers for a name.

use std::net::Ipv4Addr;

use corpus_domain::{CheckPath, DnsName, GuestName};
use serde::{Deserialize, Serialize};

/// A name to ask the proxy for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedSite {
    /// The name.
    pub name: DnsName,
    /// The guest that it leads to: what its sites make others wait is limited.
    pub guest: GuestName,
    /// Where the guest itself is asked, before anybody is sent there; the proxy is when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Ipv4Addr>,
    /// What is asked for; `/` when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<CheckPath>,
}

/// What the site of a name answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The name.
    pub name: DnsName,
    /// The status of HTTP; none when nothing usable came.
    pub status: Option<u16>,
    /// Why there is none, for people; 200 characters at most.
    pub problem: Option<String>,
}
