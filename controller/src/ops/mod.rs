//! The operations: each takes the acting principal, asks for the permit, makes one change
//! with its audit row (and its job) in one transaction, and answers typed.

mod deployments;
mod dns;
mod environments;
mod git;
mod guest_request;
mod guests;
mod jobs;
mod key_claims;
mod keys;
mod logins;
mod mail;
mod name_rules;
mod nodes;
mod overview;
mod people;
mod prod_entry;
mod project_reads;
mod projects;

pub use deployments::DEPLOYMENTS_PAGE;
pub use git::{GitAccess, GitService, GitTarget, KeyHolder};
pub use guest_request::RequestGuest;
pub use nodes::LinkNode;

pub(crate) use jobs::jobs_error;
pub use jobs::{JOBS_PAGE, may_decide};
pub(crate) use name_rules::made_by_others;
