//! The pages of Corpus.
//!
//! Every page is rendered on the server and complete without JavaScript: it reads from the
//! controller directly, and its forms are plain HTML. Only the [`islands`] get into the wasm:
//! they make times tick, values copy, lists refresh and jobs run live.

pub mod age;
pub mod islands;
pub mod live;

#[cfg(feature = "ssr")]
mod components;
#[cfg(feature = "ssr")]
mod form;
#[cfg(feature = "ssr")]
pub mod layout;
#[cfg(feature = "ssr")]
pub mod pages;
#[cfg(feature = "ssr")]
pub mod place;
#[cfg(feature = "ssr")]
mod shell;

#[cfg(feature = "ssr")]
pub use form::{Failure, FormState, Realms, Revealed, status_of};
#[cfg(feature = "ssr")]
pub use pages::login::is_here;
#[cfg(feature = "ssr")]
pub use shell::{App, document, shell};
