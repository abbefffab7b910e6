//! The real git client against this server, with a real sshd and git repository as the guest.

mod guest;
mod losses;
mod pushing;
mod refusals;
mod rights;
mod throughput;
mod whole;
pub(crate) mod world;
