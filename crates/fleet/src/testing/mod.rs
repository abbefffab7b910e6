//! An OpenSSH server of a test's own, for the tests here and of who uses this crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "tests may fail loudly, and start programs"
)]

pub mod sshd;
