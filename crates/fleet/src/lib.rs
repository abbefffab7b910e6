//! Everything between the controller and a compute node, over SSH.
//!
//! The problem: a host must be reached, recognised, entered, given our agent and asked for
//! things, by many callers at once, over lines that may be cut at any moment. What this
//! module guarantees:
//! - Nothing is sent to a host whose key is not the pinned one: no user name, no password.
//! - What runs on a host as a command line is one of the constants of `command`, filled with
//!   hashes and paths that were made here. What a person typed never gets into one.
//! - One connection and one agent process a node, shared by all callers ([`Pool`]). A caller
//!   that goes away cancels what it asked for on the host.
//! - Every error says what failed, at which host, and whether trying again makes sense
//!   ([`NodeError::is_transient`]). A cut line fails its calls at once instead of hanging them.
//! - What a host says is input of whoever has it: bounded and cleaned before anything is made of it,
//!   and read no faster than it is taken.
//! - No secret is kept, logged or shown: a one-time password lives in one [`Credential`].
//!
//! Endpoints and keys come in as values: this module knows neither the database nor who may
//! do what.

mod agent;
mod authorize;
mod backoff;
mod carry;
mod command;
mod connect;
mod connection;
mod credential;
mod endpoint;
mod error;
mod gateway;
mod git;
mod host_key;
mod hysteresis;
mod input;
mod install;
mod key;
mod lines;
mod login;
mod pace;
mod pool;
mod privilege;
mod sha256;
mod source;
mod supervisor;
mod tree;
mod upload;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use agent::{Agent, Call};
pub use authorize::{authorize, authorize_forwarding, forwarding_line, revoke};
pub use carry::{Carried, carry};
pub use connection::{Connection, connect, connect_by};
pub use credential::Credential;
pub use endpoint::{Endpoint, GuestEndpoint, HostId, NodeEndpoint, host};
pub use error::NodeError;
pub use gateway::{GATEWAY, Gateway, Way};
pub use git::{GitLine, GitProgram, GitRequest, serve_git};
pub use host_key::{HostKey, InvalidHostKey, SeenHostKey, probe_host_key, probe_host_key_by};
pub use hysteresis::{Hysteresis, Sign};
pub use install::{AgentBinary, Installed, install_agent, remove_agent};
pub use key::{ControlKey, InvalidControlKey};
pub use login::{Login, LoginCheck, check_login};
pub use pool::{Line, Pool, StillLinked};
pub use privilege::{Privilege, privilege};
pub use sha256::Sha256;
pub use supervisor::{Health, Observation, Supervisor};
pub use tree::{TreeInput, TreeOutput, TreeWhat, TreeWhich, TreeWords};
pub use upload::{UploadName, Uploaded};
