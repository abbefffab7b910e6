//! Forms: what a browser sent becomes typed values and one call of the controller.
//!
//! A refused form is never lost: the page comes back with every value (secrets left out),
//! each error beside its field. A form that went through answers 303, so that a reload does
//! not send it again.

pub mod deployments;
pub mod dns;
pub mod guests;
pub mod jobs;
pub mod keys;
pub mod login;
pub mod mail;
pub mod nodes;
pub mod projects;
mod read;
mod sent;
pub mod theme;

pub use sent::{Posted, Sent};
