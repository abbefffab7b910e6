//! The provisioning service: everything that Corpus decides and does.
//!
//! Pages, JSON API and command line call the same functions here. Each takes the acting
//! [`authz::Principal`], so nothing can be done around the authorization; each change writes
//! its audit row in the same transaction; what takes longer than a query is a job.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write rows by connections of their own"))]

pub mod authz;
mod controller;
pub mod dns;
mod drift;
mod error;
pub mod git;
mod groups;
pub mod jobs;
pub mod mail;
pub mod nodes;
mod ops;
mod project_settings;
pub mod project_views;
mod rules;
mod sagas;
pub mod seal;
pub mod ssh_keys;
pub mod store;
mod surroundings;
pub mod views;
mod watch;

pub use controller::{Controller, Parts, Settings};
pub use error::{Error, Result};
pub use groups::{GroupsError, ProjectGroups};
pub use ops::{
    DEPLOYMENTS_PAGE, GitAccess, GitService, GitTarget, JOBS_PAGE, KeyHolder, LinkNode, RequestGuest, may_decide,
};
pub use rules::Rules;
pub use store::users::SignIn;
pub use surroundings::Surroundings;
