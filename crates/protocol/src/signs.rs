//! Signs of intrusion: what the node's own edge has seen, never what a guest says.

use std::net::Ipv4Addr;

use corpus_domain::{SourceAddress, SshPort};
use serde::{Deserialize, Serialize};

/// As many pairs of an address and a guest are told at once, those that were refused most.
pub const MAX_SSH_SIGNS: usize = 500;
/// As many addresses are kept out at once.
pub const MAX_BLOCKED: usize = 1_000;

/// What the edge of a node has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignsReading {
    /// Up to when SSH sessions are counted, in seconds since 1970 by the node's clock: what to go on from.
    pub until: i64,
    /// The SSH sessions that ended since then, the addresses that were refused most first.
    pub ssh: Vec<SshSign>,
    /// Packets that were kept from guests since the node's rules were last replaced.
    pub dropped: Vec<GuestDrops>,
    /// TLS handshakes that failed since the node's proxy began, or was last reloaded.
    pub tls_errors: u64,
}

/// SSH sessions from one address to one guest that are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshSign {
    /// From where.
    pub from: SourceAddress,
    /// The guest's port of the node.
    pub port: SshPort,
    /// How many look as if they were refused.
    pub refused: u32,
    /// How many were more than a refusal.
    pub accepted: u32,
}

/// Packets that were kept from one guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestDrops {
    /// From which guest.
    pub to: Ipv4Addr,
    /// How many.
    pub packets: u64,
}
