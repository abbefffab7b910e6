//! The server as its clients meet it: the real one, on a database and a port of its own.
//!
//! One program for all of them, since each that has the whole server in it takes long to build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, and start what they test with"
)]

mod api;
mod audit;
mod connections;
mod contract;
#[allow(dead_code, reason = "what measures needs more of it")]
mod crowd;
mod directory;
mod ending;
mod finding;
mod front_door;
mod http;
mod kept_forms;
mod one_connection;
mod own_backup;
mod reports;
mod strangers;
mod support;
mod tokens;
mod uploads;
