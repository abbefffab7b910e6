//! The only parts that run in the browser. Each makes a page that already works more alive.
//!
//! [`Clock`], [`Copying`], [`Refresh`] and [`InPlace`] work on the whole document, once a page, so that a
//! table of a thousand rows costs no more wasm calls than one of ten. [`Palette`], [`Picker`] and
//! [`RequestCheck`] ask operations while one types.

mod clock;
mod copying;
#[cfg(target_arch = "wasm32")]
mod dom;
mod in_place;
mod instant;
mod live_access;
mod live_job;
#[cfg(target_arch = "wasm32")]
mod notify;
mod palette;
mod picker;
mod refresh;
mod request_check;

pub use clock::Clock;
pub use copying::Copying;
pub use in_place::InPlace;
pub use live_access::LiveAccess;
pub use live_job::{LiveJob, LogLine};
pub use palette::{Command, Palette};
pub use picker::{Picker, PickerOf};
pub use refresh::Refresh;
pub use request_check::RequestCheck;
