//! The operations: each takes the acting principal, asks for the permit, makes one change
//! with its audit row (and its job) in one transaction, and answers typed.

mod deployments;
mod environments;
mod git;
mod logins;
mod people;
#[cfg(test)]
pub(crate) mod tests;

pub use git::GitTarget;
pub(crate) use git::{needed_role, permit_git};

pub(crate) use crate::job_errors::jobs_error;
pub(crate) use deployments::{followers_run, runs};
pub(crate) use environments::is_ready;
#[cfg(test)]
pub(crate) use tests::world as project_world;
