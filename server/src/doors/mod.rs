//! The doors: each is made from the list of operations, and adds none.
//!
//! [`json`] is the API, which [`admit`] stands before, [`form`] takes plain HTML forms, [`events`] is what can
//! be followed, [`answers`] is how pages ask, and [`mod@ask`] how their islands do. What they have in common
//! is `corpus_api`: where an operation lives, how it is read and who may. [`oauth`] is how programs come to a
//! token, [`export`] how a list is answered as a file, and [`mod@fetch`] a file of a backup; [`upload`] takes the archive
//! of an image.

pub mod admit;
pub mod answers;
pub mod ask;
pub mod events;
pub mod export;
pub mod fetch;
pub mod form;
pub mod json;
pub mod oauth;
pub mod proof;
pub mod upload;

/// Where the API begins.
pub const PREFIX: &str = "/api/v1";
