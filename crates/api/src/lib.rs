//! The operations: what can be asked, by whom, with which answer. No I/O; compiles to wasm.
//!
//! [`each_operation!`] is the one list of them; pages, plain forms, JSON, islands and the command line are
//! doors made from it. [`Input`] reads an operation from whatever a door was given and names everything
//! that is wrong at once; [`wire()`] is the other way round; [`openapi::openapi`] describes it.

pub mod audit;
pub mod backings;
pub mod backup_files;
mod backup_repositories;
pub mod backups;
pub mod certificates;
pub mod claims;
pub mod controller_backups;
mod cursor;
pub mod deployments;
pub mod device_logins;
pub mod environments;
pub mod firewall;
pub mod first_steps;
pub mod guest_mail;
pub mod guests;
pub mod hooks;
pub mod images;
pub mod input;
pub mod intrusion;
pub mod jobs;
pub mod keys;
pub mod leaving;
mod list;
pub mod logins;
pub mod lxc_lines;
pub mod mail;
pub mod me;
pub mod moves;
pub mod names;
pub mod node_service;
pub mod nodes;
pub mod not_created;
pub mod notices;
pub mod openapi;
pub mod operation;
pub mod overview;
mod page;
pub mod previews;
pub mod principal;
pub mod problem;
pub mod profiles;
pub mod projects;
pub mod quotas;
pub mod requests;
pub mod robots;
pub mod search;
pub mod seen;
pub mod sizes;
pub mod snapshots;
pub mod stream;
pub mod strict;
mod text;
pub mod tokens;
pub mod traffic;
pub mod undoes;
mod version;
pub mod views;
pub mod webhooks;
mod wire;
pub mod words;
pub mod zones;

pub use cursor::Cursor;
pub use input::Input;
pub use list::{Listed, StreamVisitor, Visitor, walk, walk_streams};
pub use operation::{BodyFile, Kind, Meta, Method, Operation, Place, Plain, Read, Reply, Role, Scope, Write};
pub use principal::{Denied, Principal};
pub use problem::{Problem, Wrong};
pub use version::Version;
pub use wire::{Wire, wire};
