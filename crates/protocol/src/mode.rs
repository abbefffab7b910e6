//! How a guest's configuration is managed: by Salt without a master, by one of its own, or by the controller's.
//!
//! A minion trusts whoever has its master's key, and a master gives a guest's secrets to whoever has its minion's key. So no
//! key is accepted because it came first: a guest makes its own and tells the public half over the line whose host key is
//! pinned, and is told its master's the same way, both before anything of Salt runs there.

use corpus_domain::{Environment, GuestId, GuestName, NodeId, ProjectName, UnixUser};
use serde::{Deserialize, Serialize};

use crate::project::{SaltBundle, SaltState};

/// The longest public key of Salt, in bytes: of RSA with 8,192 bits it has less than 1,500.
pub const MAX_SALT_KEY: usize = 4_096;
/// As many states of one run are told.
pub const MAX_STATES: usize = 200;

/// The longest a run of all states may take, in seconds.
pub const STATES_LIMIT_S: u32 = 3_600;

/// How a guest is managed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModePlan {
    /// Which guest. What another one's files brought along is removed.
    pub id: GuestId,
    /// The guest. Where another name is, as in a copy of its files, nothing of it starts.
    pub guest: GuestName,
    /// Salt, as it was copied to the guest.
    pub salt: SaltBundle,
    /// Whose guest it is: in its grains.
    pub project: ProjectName,
    /// Its environment: in its grains.
    pub environment: Environment,
    /// The node that it is on: in its grains.
    pub node: String,
    /// What it follows.
    pub follows: Follows,
}

/// What a guest takes its states from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Follows {
    /// What lies in it, when it is told to: nothing of Salt goes on running.
    Nobody,
    /// A master of its own, which only it reaches, and which has what lies in it.
    Itself,
    /// A master elsewhere.
    Master(MasterPlace),
}

/// Where a master is, and how it is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MasterPlace {
    /// A host name or an address.
    pub address: String,
    /// Where it publishes.
    pub publish_port: u16,
    /// Where it answers.
    pub request_port: u16,
    /// Its public key, as PEM.
    pub key: String,
}

/// What operators want of every node, beside what makes it one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselinePlan {
    /// Which node it is: in its grains.
    pub node: NodeId,
    /// Where it answers: in its grains.
    pub address: String,
    /// Salt, as it was copied to the node.
    pub salt: SaltBundle,
    /// Packages of its distribution that are installed.
    pub packages: Vec<String>,
    /// Who may do all that root may.
    pub operators: Vec<Operator>,
    /// Whether a password opens it by SSH.
    pub password_login: bool,
    /// What it has the time from; none: what it has it from now.
    pub time_servers: Vec<String>,
    /// Who gets root's mail; none: who gets it now.
    pub root_mail: Option<String>,
}

/// An account of an operator on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// What it is called.
    pub name: UnixUser,
    /// The keys that open it: lines of `authorized_keys(5)`.
    pub keys: Vec<String>,
}

/// What a run of all states came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatesRun {
    /// In the order in which they ran: those that failed, those that changed something, then others, [`MAX_STATES`] at most.
    pub states: Vec<SaltState>,
    /// How many ran.
    pub ran: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How many changed something, or would.
    pub changed: u64,
}
