//! The git server: members push and fetch over SSH, and nothing else.
//!
//! `ssh://git@HOST:PORT/PROJECT/ENVIRONMENT` (and `…/pillar`) leads to the repositories on the
//! environment's guest. This server tells who comes, whether they may, and moves bytes; what is
//! pushed is taken, deployed and proved by the guest alone. What it guarantees:
//! - Only a public key of a member who is not disabled opens it, as the user `git`. A key that is
//!   removed, or whose member is disabled, loses its open connections within [`CHECK_EVERY`] and a bit.
//! - A client can ask for `git-receive-pack` and `git-upload-pack` on one path, nothing else:
//!   no shell, no terminal, no environment, no forwarding. No text of a client gets to a shell.
//! - What a member may not see does not exist: the answer is the same as for a name nobody took.
//! - Who has not shown a key costs little and not for long; an address that keeps failing is not
//!   listened to for a while.
//! - What a guest writes to the terminal of who pushes or fetches is text and nothing else.
//! - Neither side can pile up memory here: bytes are moved as fast as the slower side takes them.
//! - A guest or client that goes away ends the other side, and the pusher is told what that means.

mod answer;
mod discover;
mod door;
mod host_key;
mod keeper;
mod lobby;
mod pipe;
mod serve;
mod sideband;
mod visit;
mod words;

#[cfg(test)]
pub(crate) mod tests;

pub use door::GitServer;
pub(crate) use host_key::ensure as ensure_host_key;
pub use serve::Service;
pub use words::{Repository, Wanted};

use std::time::Duration;

/// How often it is asked whether a connection's key still is a member's.
pub const CHECK_EVERY: Duration = Duration::from_secs(20);

/// What a client may take; see the fields of [`Limits::default`] for the reasons.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// From the TCP connection to a key that is let in.
    pub(crate) entry: Duration,
    /// Without an open channel.
    pub(crate) idle: Duration,
    /// How often the member's key is looked up again.
    pub(crate) check: Duration,
    /// From the request to the guest's program.
    pub(crate) guest: Duration,
    /// Neither side takes what the other has sent.
    pub(crate) stalled: Duration,
    /// Channels at once on a connection.
    pub(crate) channels: usize,
    /// Keys that a client may offer on a connection.
    pub(crate) offers: u32,
    /// What may wait to be let in.
    pub(crate) lobby: lobby::Room,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A person types a passphrase or touches a security key meanwhile.
            entry: Duration::from_mins(1),
            idle: Duration::from_mins(1),
            check: CHECK_EVERY,
            guest: Duration::from_millis(4_500),
            stalled: Duration::from_mins(5),
            channels: 4,
            // OpenSSH's own server takes 6.
            offers: 12,
            lobby: lobby::Room::default(),
        }
    }
}
