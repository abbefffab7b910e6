//! An operator's hook, on its way to the host where it runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::project::SaltBundle;

/// A hook to run, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookOrder {
    /// What it is called, for people.
    pub name: String,
    /// The script, or the `.sls` when there is a bundle of Salt.
    pub content: String,
    /// What it gets on its standard input; for a `.sls`: what `cfg` is.
    pub facts: Value,
    /// How long it may take, in seconds; then it is ended with all that it started.
    pub limit_s: u32,
    /// Given for a `.sls`: the bundle that was copied to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<SaltBundle>,
}
