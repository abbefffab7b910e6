//! The real git client against this server, with a real sshd and git repository as the guest.

mod backend;
mod hostile;
mod losses;
mod pushing;
mod refusals;
mod rights;
mod throughput;
mod world;
