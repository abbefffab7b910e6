//! The pages of Corpus.
//!
//! Every page is rendered on the server and complete without JavaScript: it reads from the
//! controller directly, and its forms are plain HTML. Only the [`islands`] get into the wasm:
//! they make times tick, values copy, lists refresh and jobs run live, and find everything by its name. What
//! they ask they [`ask`](mod@ask) as operations.

pub mod age;
pub mod ask;
pub mod islands;
pub mod kept;
pub mod looks;

#[cfg(feature = "ssr")]
pub mod asked;
#[cfg(feature = "ssr")]
mod caller;
#[cfg(feature = "ssr")]
mod commands;
#[cfg(feature = "ssr")]
mod components;
#[cfg(feature = "ssr")]
pub mod docs;
#[cfg(feature = "ssr")]
mod form;
#[cfg(feature = "ssr")]
pub mod help;
#[cfg(feature = "ssr")]
pub mod layout;
#[cfg(feature = "ssr")]
pub mod pages;
#[cfg(feature = "ssr")]
pub mod route;
#[cfg(feature = "ssr")]
mod shell;

#[cfg(feature = "ssr")]
mod to;

#[cfg(feature = "ssr")]
pub use caller::{Allowed, Answer, Answers, Boxed, Caller, Untyped};
#[cfg(feature = "ssr")]
pub use form::{Answered, Failure, FormState, Realms, status_of};
#[cfg(feature = "ssr")]
pub use pages::login::{ENDED, SENT, is_here};
#[cfg(feature = "ssr")]
pub use shell::{App, document, shell};
