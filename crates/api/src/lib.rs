//! The operations: what can be asked, by whom, with which answer. No I/O; compiles to wasm.
//!
//! [`each_operation!`] is the one list of them; pages, plain forms, JSON, islands and the command line are
//! doors made from it. [`Input`] reads an operation from whatever a door was given and names everything
//! that is wrong at once; [`wire()`] is the other way round; [`openapi::openapi`] describes it.

pub mod audit;
mod cursor;
pub mod deployments;
pub mod device_logins;
pub mod environments;
pub mod guests;
pub mod input;
pub mod jobs;
pub mod keys;
mod list;
pub mod logins;
pub mod me;
pub mod names;
pub mod nodes;
pub mod openapi;
pub mod operation;
pub mod overview;
mod page;
pub mod principal;
pub mod problem;
pub mod projects;
pub mod search;
pub mod stream;
pub mod strict;
mod text;
pub mod tokens;
mod version;
mod wire;
pub mod words;
pub mod zones;

pub use cursor::Cursor;
pub use input::Input;
pub use list::{Listed, StreamVisitor, Visitor, walk, walk_streams};
pub use operation::{Kind, Meta, Method, Operation, Place, Plain, Read, Reply, Role, Scope, Write};
pub use principal::{Denied, Principal};
pub use problem::{Problem, Wrong};
pub use version::Version;
pub use wire::{Wire, wire};
