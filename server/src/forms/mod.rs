//! Forms: what a browser sent becomes typed values and one call of the controller.
//!
//! A form is never lost. One that is refused is kept ([`kept`]), and its page shows it with every value
//! (secrets left out), each error beside its field; one that comes when the session has ended goes through
//! the login page ([`ended`]). All of them answer 303 in the end, so that a reload sends nothing again and
//! Back leads to a page.

pub mod deployments;
pub mod ended;
mod form;
pub mod guests;
pub mod kept;
pub mod login;
pub mod names;
pub mod nodes;
mod read;
mod secrets;
pub mod theme;

pub use form::{Form, MemberForm, see_other};
