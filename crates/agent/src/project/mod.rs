//! Projects on a guest: `git push` deploys, proves it, or puts everything back.
//!
//! The guest decides. An order is written down ([`order`]) and run by a process of its own
//! ([`run`]), which needs neither the controller nor whoever pushed, only its journal; everybody
//! else watches that ([`follow`]). A deployment ends live, with proofs, or with code, pillar and
//! permissions as they were. A runner that is killed, and a guest that is rebooted, in the
//! middle of it, is the same case: the next runner finds a journal without an end and rolls back.

pub mod absent;
pub mod account;
pub mod archive;
pub mod back;
pub mod checks;
pub mod cli;
pub mod configuration;
pub mod dialect;
pub mod dumps;
pub mod editable;
pub mod ending;
pub mod ensure;
pub mod follow;
pub mod followers;
pub mod git;
mod identity;
pub mod installers;
pub mod journal;
pub mod layout;
pub mod leaving;
pub mod leftovers;
pub mod mapping;
pub mod order;
pub mod output;
pub mod permissions;
pub mod phases;
pub mod process;
pub mod prove;
pub mod queue;
pub mod recipe;
pub mod redact;
pub mod release;
pub mod render;
pub mod rendered;
pub mod requests;
pub mod restore;
pub mod rotation;
pub mod run;
pub mod salt;
pub mod saved;
pub mod steps;
pub mod tasks;
mod warned;
pub mod yaml;

pub use follow::follow;
pub use layout::Layout;
pub use order::order;
