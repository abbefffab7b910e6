//! What the controller does for git: it tells the git server who may push and fetch where, and finds
//! the deployments that nobody told it of.

mod backend;
mod began;
mod discover;
mod kept;
mod previews;
mod target;

#[cfg(test)]
pub(crate) mod tests;

pub use target::GitTarget;
pub(crate) use target::{needed_role, permit_git};
