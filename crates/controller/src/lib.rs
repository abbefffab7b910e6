//! The provisioning service: everything that Corpus decides and does.
//!
//! Every door asks the operations of `corpus_api` here, through the gate, which judges who may and keeps the
//! audit; what takes longer than a query is a job.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write rows by connections of their own"))]

mod access_followers;
mod acme;
mod background;
mod certificates;
mod changed;
mod controller;
mod drift;
mod events;
mod git;
mod groups;
mod guest_backups;
mod handlers;
mod hooks;
mod images;
mod intrusion;
mod job_errors;
mod junit;
mod kept_forms;
mod looked_at;
pub mod mail;
pub mod own_backups;
mod people;
mod project_settings;
mod quotas;
mod readiness;
mod rules;
mod sagas;
pub mod seal;
mod server_keys;
mod services;
mod spread;
pub mod ssh_keys;
pub mod store;
mod surroundings;
mod uploads;
mod webhooks;

#[cfg(test)]
mod layers;
#[cfg(test)]
mod tests;

use {corpus_dns as dns, corpus_fleet as nodes, corpus_jobs as jobs};

pub use acme::AcmeSettings;
pub use certificates::{CertificateSettings, Issuer};
pub use controller::{Controller, Parts};
pub use corpus_gate::{Ask, Error, Handle, HandleStream, Key, Result, sentence};
pub use corpus_protocol::AddressDetail;
pub use git::GitTarget;
pub use groups::{GroupsError, ProjectGroups};
pub use guest_backups::Content as BackupContent;
pub use handlers::device_logins::{Standing, Waiting};
pub use images::ImageNames;
pub use intrusion::IntrusionSettings;
pub use own_backups::OwnBackups;
pub use project_settings::tells_secret;
pub use rules::Rules;
pub use services::Settings;
pub use store::kept_forms::KeptForm;
pub use store::keys::KeyHolder;
pub use store::users::SignIn;
pub use surroundings::{GuestMailSettings, Surroundings};
pub use uploads::HeldArchive;
