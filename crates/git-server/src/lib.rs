//! The git server: members push and fetch over SSH, and nothing else.
//!
//! `ssh://git@HOST:PORT/PROJECT/ENVIRONMENT` (and `…/pillar`) leads to the repositories on the
//! environment's guest. This server tells who comes, asks its [`Backend`] whether they may, and moves
//! bytes; what is pushed is taken, deployed and proved by the guest alone. What it guarantees:
//! - Only a public key of a member who is not disabled opens it, as the user `git`. What is asked
//!   for is decided by the backend at that moment, and again as long as it goes on: a key that is
//!   removed, a member who is disabled, a role that is taken and a project that is destroyed end
//!   what they opened within [`RECHECK_INTERVAL`] and a bit, with a line that says so. What a guest
//!   was ordered to do until then goes on there.
//! - A client can ask for `git-receive-pack` and `git-upload-pack` on one path, nothing else:
//!   no shell, no terminal, no environment, no forwarding. No text of a client gets to a shell.
//! - What a push wants changed is judged by the backend before a byte of it goes to the guest.
//! - What a member may not see does not exist: the answer is the same as for a name nobody took.
//! - A member and an address have a limited number of connections, pushes and fetches.
//! - Who has not shown a key costs little and not for long; an address that keeps failing is not
//!   listened to for a while.
//! - What a guest writes to the terminal of who pushes or fetches is text and nothing else.
//! - Neither side can pile up memory here: bytes are moved as fast as the slower side takes them.
//! - A guest or client that goes away ends the other side, and the pusher is told what that means.
//!
//! It knows no database and no roles: who may do what is the backend's to say.

mod access;
mod admission;
mod backend;
mod changes;
mod command;
mod connection;
mod exchange;
mod exec;
mod grant;
mod limits;
mod proxy;
mod quota;
mod recheck;
mod server;
mod session;
mod sideband;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use access::{Access, RepositoryPath};
pub use admission::AdmissionLimits;
pub use backend::{Backend, BackendError, Member, Permitted, Refusal, Standing, Transfer};
pub use changes::RefChange;
pub use limits::{Limits, RECHECK_INTERVAL};
pub use quota::QuotaLimits;
pub use server::GitServer;
