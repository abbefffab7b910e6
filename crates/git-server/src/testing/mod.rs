//! A guest with repositories, and the git client, for the tests here and of who uses this crate.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "tests may fail loudly, and start programs"
)]

pub mod client;
pub mod guest;
