//! The store: one file per aggregate, every query checked when it is compiled.
//!
//! Functions take a connection, so that a change, its audit row and its job are one
//! transaction of the caller's. What comes out is typed: a word in a column that the
//! domain does not know is a decoding error, never a guess.

pub mod acme_accounts;
pub mod archives_shown;
pub mod audit;
pub mod backings;
pub mod backup_proofs;
pub mod backup_repositories;
pub mod backup_schedules;
pub mod backups;
pub mod badges;
pub mod balance;
pub mod baselines;
pub mod certificate_authority;
pub mod certificate_orders;
pub mod certificate_renewals;
pub mod certificates;
pub mod chores;
pub mod claims;
pub mod control_key;
pub mod controller_backups;
pub mod counts;
pub mod delivery;
pub mod deployment_log;
pub mod deployments;
pub mod deployments_shown;
pub mod device_logins;
pub mod drift;
pub mod environment_backups;
pub mod environments;
pub mod environments_shown;
pub mod evidence;
pub mod far;
pub mod firewall;
pub mod first_steps;
pub mod followers;
pub mod git_host_key;
pub mod guest_mail;
pub mod guest_states;
pub mod guest_storage;
pub mod guest_users;
pub mod guests;
pub mod hook_runs;
pub mod http_challenges;
pub mod images;
pub mod infrastructure;
pub mod intrusion;
pub mod jobs;
pub mod kept_forms;
pub mod key_claims;
pub mod keys;
pub mod leases;
pub mod leaving;
pub mod links;
pub mod logins;
pub mod lxc_lines;
pub mod made_images;
pub mod mail;
pub mod mail_lasting;
pub mod mail_letters;
pub mod move_times;
pub mod moves;
pub mod name_switches;
pub mod names;
pub mod node_dns_names;
pub mod node_gateways;
pub mod nodes;
pub mod not_created;
pub mod notices;
pub mod observer;
pub mod plan;
pub mod pointers;
pub mod previews;
pub mod profiles;
pub mod project_end;
pub mod projects;
pub mod projects_shown;
pub mod proposals;
pub mod quotas;
pub mod reports;
pub mod request_rules;
pub mod requests;
pub mod robots;
pub mod room;
pub mod salt_masters;
pub mod search;
pub mod snapshot_schedules;
pub mod snapshots;
pub mod spread;
pub mod surroundings;
pub mod test_cases;
pub mod tokens;
pub mod traffic;
pub mod undoes;
pub mod updates;
pub mod users;
pub mod views;
pub mod webhook_deliveries;
pub mod webhooks;
pub mod zones;

use std::str::FromStr;

use corpus_domain::ProjectId;

pub use corpus_database::{Conn, Db, Transaction, as_server, as_shipped, beside};

/// Whose things a list shows; `None` means all. A robot sees those of its environments only.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Of which projects.
    pub projects: Option<&'a [ProjectId]>,
    /// Of which environments.
    pub environments: Option<&'a [String]>,
}

/// Turns a stored word into its domain type.
pub(crate) fn word<T>(text: &str) -> Result<T, sqlx::Error>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The same for a column that may be null.
pub(crate) fn word_opt<T>(text: Option<&str>) -> Result<Option<T>, sqlx::Error>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.map(word).transpose()
}

/// A stored integer as the unsigned number it stands for.
pub(crate) fn number<T: TryFrom<i64>>(value: impl Into<i64>) -> Result<T, sqlx::Error>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    T::try_from(value.into()).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// A stored JSON value as its type.
pub(crate) fn json_opt<T: serde::de::DeserializeOwned>(
    value: Option<serde_json::Value>,
) -> Result<Option<T>, sqlx::Error> {
    value.map(serde_json::from_value).transpose().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The same for a column that is never null.
pub(crate) fn json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T, sqlx::Error> {
    serde_json::from_value(value).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The fingerprint of a stored public key.
pub(crate) fn fingerprint(public_key: &str) -> Result<String, sqlx::Error> {
    word::<crate::nodes::HostKey>(public_key).map(|key| key.seen().fingerprint)
}
