//! Projects, environments and deployments, as their operations leave them in the database; no
//! job runs here.

mod access;
mod claims;
mod deploying;
mod git;
mod history;
mod lists;
mod members;
mod names;
mod overview;
mod own;
mod requests;
mod standing;
mod tokens;
pub(crate) mod world;
