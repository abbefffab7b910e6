//! What the controller does for git: it tells the git server who may push and fetch where, and finds
//! the deployments that nobody told it of.

mod backend;
mod discover;

#[cfg(test)]
pub(crate) mod tests;
