//! The only parts that run in the browser. Each makes a page that already works more alive.
//!
//! [`Clock`], [`Copying`] and [`Refresh`] work on the whole document, once a page, so that a
//! table of a thousand rows costs no more wasm calls than one of ten.

mod clock;
mod copying;
#[cfg(target_arch = "wasm32")]
mod dom;
mod instant;
mod live_job;
mod refresh;

pub use clock::Clock;
pub use copying::Copying;
pub use live_job::{LiveJob, LogLine};
pub use refresh::Refresh;
