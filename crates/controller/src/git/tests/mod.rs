//! The git server with the real controller behind it, and a real sshd as the guest.

mod lies;
mod previews;
mod rights;
mod robots;
mod whole;

pub(crate) use whole::serve;
