//! The git server: members push and fetch over SSH, and nothing else.
//!
//! `ssh://git@HOST:PORT/PROJECT/ENVIRONMENT` (and `…/pillar`) leads to the repositories on the
//! environment's guest. This server tells who comes, whether they may, and moves bytes; what is
//! pushed is taken, deployed and proved by the guest alone. What it guarantees:
//! - Only a public key of a member who is not disabled opens it, as the user `git`. What is asked
//!   for is decided by the roles at that moment, and again as long as it goes on: a key that is
//!   removed, a member who is disabled, a role that is taken and a project that is destroyed end
//!   what they opened within [`CHECK_EVERY`] and a bit, with a line that says so. What a guest
//!   was ordered to do until then goes on there.
//! - A client can ask for `git-receive-pack` and `git-upload-pack` on one path, nothing else:
//!   no shell, no terminal, no environment, no forwarding. No text of a client gets to a shell.
//! - What a member may not see does not exist: the answer is the same as for a name nobody took.
//! - A member and an address have a limited number of connections, pushes and fetches.
//! - Who has not shown a key costs little and not for long; an address that keeps failing is not
//!   listened to for a while.
//! - Neither side can pile up memory here: bytes are moved as fast as the slower side takes them.
//! - A guest or client that goes away ends the other side, and the pusher is told what that means.

mod answer;
mod discover;
mod door;
mod grant;
mod host_key;
mod keeper;
mod lobby;
mod pipe;
mod recheck;
mod seats;
mod serve;
mod visit;
mod words;

#[cfg(test)]
pub(crate) mod tests;

pub use door::GitServer;
pub(crate) use host_key::ensure as ensure_host_key;
pub use serve::Service;
pub use words::{Repository, Wanted};

use std::time::Duration;

/// How often it is asked whether the members of all open connections still may.
pub const CHECK_EVERY: Duration = Duration::from_secs(10);

/// What a client may take; see the fields of [`Limits::default`] for the reasons.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// From the TCP connection to a key that is let in.
    pub(crate) entry: Duration,
    /// Without an open channel.
    pub(crate) idle: Duration,
    /// How often keys and roles are looked up again.
    pub(crate) check: Duration,
    /// From the request to the guest's program.
    pub(crate) guest: Duration,
    /// Neither side takes what the other has sent.
    pub(crate) stalled: Duration,
    /// Neither side sends anything.
    pub(crate) silent: Duration,
    /// Channels at once on a connection.
    pub(crate) channels: usize,
    /// Keys that a client may offer on a connection.
    pub(crate) offers: u32,
    /// What may wait to be let in.
    pub(crate) lobby: lobby::Room,
    /// What members and addresses may have at once.
    pub(crate) seating: seats::Seating,
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
            silent: Duration::from_mins(10),
            channels: 4,
            // OpenSSH's own server takes 6.
            offers: 12,
            lobby: lobby::Room::default(),
            seating: seats::Seating::default(),
        }
    }
}
