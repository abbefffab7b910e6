//! Projects, environments and deployments, as their operations leave them in the database; no
//! job runs here.

mod access;
mod claims;
mod deploying;
mod git;
mod history;
mod members;
mod names;
mod requests;
mod standing;
mod world;
