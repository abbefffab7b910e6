//! Forms: what a browser sent becomes typed values and one call of the controller.
//!
//! A refused form is never lost: the page comes back with every value (secrets left out),
//! each error beside its field. A form that went through answers 303, so that a reload does
//! not send it again.

pub mod deployments;
mod form;
pub mod login;
pub mod nodes;
mod read;
pub mod theme;

pub use form::{Form, MemberForm, see_other};
