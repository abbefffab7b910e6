//! What the operator decides about signs of intrusion: how many are too many, and what is done then.

use std::time::Duration;

use corpus_api::intrusion::IntrusionRules;
use ipnet::IpNet;

/// When an address is blocked, and operators are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntrusionSettings {
    /// So many refused SSH sessions of one address are too many; 0: none are.
    pub failures: u32,
    /// Within so many minutes.
    pub window_minutes: u32,
    /// For so many minutes it is blocked then; 0: it is not.
    pub block_minutes: u32,
    /// Of these no address is ever blocked.
    pub never_block: Vec<IpNet>,
    /// More dropped packets of one node in an hour are told; 0: they are not.
    pub dropped_packets: u64,
    /// More failed TLS handshakes of one node in an hour are told; 0: they are not.
    pub tls_errors: u64,
}

impl Default for IntrusionSettings {
    fn default() -> Self {
        Self {
            failures: 20,
            window_minutes: 10,
            block_minutes: 60,
            never_block: Vec::new(),
            dropped_packets: 100_000,
            tls_errors: 10_000,
        }
    }
}

impl IntrusionSettings {
    /// How long a refused session counts.
    pub fn window(&self) -> Duration {
        Duration::from_secs(u64::from(self.window_minutes) * 60)
    }

    /// As they are shown.
    pub fn rules(&self) -> IntrusionRules {
        IntrusionRules {
            failures: self.failures,
            window_minutes: self.window_minutes,
            block_minutes: self.block_minutes,
            dropped_packets: self.dropped_packets,
            tls_errors: self.tls_errors,
        }
    }
}
