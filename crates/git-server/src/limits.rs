//! What a client may take of the server, and for how long: one place for all numbers.

use std::time::Duration;

use crate::admission::AdmissionLimits;
use crate::quota::QuotaLimits;

/// How often it is asked whether the members of all open connections still may.
pub const RECHECK_INTERVAL: Duration = Duration::from_secs(10);

/// What a client may take; see [`Limits::default`] for the reasons.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the TCP connection to a key that is accepted.
    pub authentication: Duration,
    /// Without an open channel.
    pub idle: Duration,
    /// How often keys and roles are looked up again.
    pub recheck: Duration,
    /// From the request to the guest's program.
    pub guest_start: Duration,
    /// Neither side takes what the other has sent.
    pub stalled: Duration,
    /// Neither side sends anything.
    pub silent: Duration,
    /// Channels at once on a connection.
    pub channels: usize,
    /// Keys that a client may offer on a connection.
    pub offered_keys: u32,
    /// Connections that have shown no key yet.
    pub admission: AdmissionLimits,
    /// What members and addresses may have at once.
    pub quota: QuotaLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A person types a passphrase or touches a security key meanwhile.
            authentication: Duration::from_mins(1),
            idle: Duration::from_mins(1),
            recheck: RECHECK_INTERVAL,
            guest_start: Duration::from_millis(4_500),
            stalled: Duration::from_mins(5),
            silent: Duration::from_mins(10),
            channels: 4,
            // OpenSSH's own server takes 6.
            offered_keys: 12,
            admission: AdmissionLimits::default(),
            quota: QuotaLimits::default(),
        }
    }
}
