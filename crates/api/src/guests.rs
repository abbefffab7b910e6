//! Guests: what is asked about those that are there. [`change`] is what is done to them.

mod change;
mod mode;
mod preview;
mod secret;
mod settings;
#[cfg(test)]
mod tests;

pub use change::{
    ConfirmGuestHostKey, DestroyGuest, EnlargeGuest, GuestHostKeyConfirmed, GuestMoving, GuestRequested, MoveGuest,
    RequestGuest, RestartGuest, SetGuestLimits, ShrinkGuest, StartGuest, StopGuest, WantedNames,
};
pub use mode::{ApplyGuestStates, GetGuestStates, GuestStates, StatesRun, SwitchGuestMode};
pub use preview::{GuestPreview, PreviewGuest, PreviewedNode};
pub use secret::{GuestPasswordRevealed, RevealGuestPassword};
pub use settings::{GetGuestSettings, GuestConf, GuestSettings, SetGuestSettings};

use std::net::Ipv4Addr;

use chrono::{DateTime, Utc};
use corpus_domain::{
    Backing, Bytes, CpuLimit, DriftKind, Driver, Environment, EnvironmentState, GuestId, GuestName, GuestNetwork,
    GuestProfileName, GuestState, IdRange, ImageName, IoWeight, JobId, Limits, LxcLineName, MacAddress, MemoryLimit,
    Mode, NodeAddress, NodeId, NodeName, ProcessLimit, ProjectName, Reachability, Reason, Safeguard, SizeProfile,
    SshPort,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::moves::LastMove;
use crate::names::NameLine;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};
use crate::words::{Limit, SearchText};
use crate::{Cursor, Version};

/// Lists guests.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListGuests {
    /// Only of this project.
    pub project: Option<ProjectName>,
    /// Only of this environment.
    pub environment: Option<Environment>,
    /// Only in this state.
    pub state: Option<GuestState>,
    /// Only on this node.
    pub node: Option<NodeId>,
    /// Only those whose name has this in it.
    pub q: Option<SearchText>,
    /// By name unless said.
    pub sort: Option<GuestOrder>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListGuests {
    type Kind = Read;
    type Output = GuestPage;
    const META: Meta<Read> = get("list_guests", "/guests").needs(Role::Member).robots();
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// The order of a list of guests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuestOrder {
    /// By name.
    #[default]
    Name,
    /// The newest first.
    Newest,
}

/// Shows a guest with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetGuest {
    /// Which.
    pub guest: GuestId,
}
impl Operation for GetGuest {
    type Kind = Read;
    type Output = Guest;
    const META: Meta<Read> = get("get_guest", "/guests/{guest}").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Shows what a guest may take of its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetGuestLimits {
    /// Of which guest.
    pub guest: GuestId,
}
impl Operation for GetGuestLimits {
    type Kind = Read;
    type Output = GuestLimits;
    const META: Meta<Read> = get("get_guest_limits", "/guests/{guest}/limits").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// A guest in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestLine {
    /// Its id.
    pub id: GuestId,
    /// Its name.
    pub name: GuestName,
    /// What it is doing.
    pub state: GuestState,
    /// Since when.
    pub state_since: DateTime<Utc>,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The node it is on.
    pub node: NodeId,
    /// What people call that node, if it was given a name.
    pub node_name: Option<NodeName>,
    /// Where that node answers.
    pub node_address: NodeAddress,
    /// Whether that node answers.
    pub node_reachability: Reachability,
    /// How much storage it may fill.
    pub size: SizeProfile,
    /// How much memory it may take.
    pub memory: MemoryLimit,
    /// Its address, once allocated.
    #[schema(value_type = Option<String>, format = "ipv4")]
    pub ip: Option<Ipv4Addr>,
    /// The node's port that leads to its SSH, once allocated.
    pub ssh_port: Option<SshPort>,
    /// Why it is privileged, if it is: then its root is root on the node.
    pub privileged: Option<Reason>,
    /// Memory it holds, by the last reading of its node.
    pub memory_used: Option<Bytes>,
    /// Processor time it takes, in thousandths of a processor, by the last readings.
    pub cpu_used: Option<u32>,
    /// When that reading was made.
    pub observed_at: Option<DateTime<Utc>>,
    /// How many DNS names lead to it.
    pub names: u32,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
}

impl GuestLine {
    /// What its node is called: its name, else its address.
    pub fn node_title(&self) -> String {
        self.node_name.as_ref().map_or_else(|| self.node_address.to_string(), ToString::to_string)
    }
}

crate::page!(
    /// A page of guests.
    GuestPage, GuestLine
);

/// Packages of a guest that are older than in an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingUpdates {
    /// How many.
    pub count: u32,
    /// The first 50 of them, by name.
    pub packages: Vec<String>,
    /// In which version of an image they are newer.
    pub image: ImageName,
    /// When its node found so.
    pub at: DateTime<Utc>,
}

/// A guest with all that is known of it.
#[allow(clippy::struct_excessive_bools, reason = "facts of a guest that have nothing to do with each other")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Guest {
    /// What lists show of it.
    pub line: GuestLine,
    /// Why it is in its state, for a failed one.
    pub state_reason: Option<String>,
    /// What made it.
    pub driver: Driver,
    /// The version of an image that it is a clone of.
    pub image: ImageName,
    /// When that was made; none: its node made it.
    pub image_made_at: Option<DateTime<Utc>>,
    /// Whether new guests are made from a newer version. What is installed in a guest is its own affair from its first day.
    pub image_is_old: bool,
    /// Which of its packages are older than in the newest version of its image; none: it was not told yet.
    pub updates: Option<MissingUpdates>,
    /// The profile that said what its request did not.
    pub profile: Option<GuestProfileName>,
    /// Where its root file system lives.
    pub backing: Backing,
    /// What it may take of its node.
    pub limits: Limits,
    /// What is in its storage, by the last reading; none where that has no size, or was not read.
    pub storage: Option<StorageUse>,
    /// Which limits these are, to change them.
    pub limits_version: Version,
    /// The limits that its node can't hold guests to, and why.
    pub not_held: Vec<String>,
    /// Processes and threads it has, by the last reading.
    pub processes_used: Option<u32>,
    /// Seconds it runs, by the last reading.
    pub uptime_s: Option<u64>,
    /// How its configuration is managed.
    pub mode: Mode,
    /// Its MAC, once allocated.
    pub mac: Option<MacAddress>,
    /// The network it is in.
    pub network: GuestNetwork,
    /// The bridge it is on.
    pub bridge: String,
    /// What its users are on the node; none before they are allocated, and for a privileged guest.
    pub ids: Option<IdRange>,
    /// What holds unprivileged guests on its node.
    pub confinement: Vec<GuestSafeguard>,
    /// Whether the node starts it at boot.
    pub autostart: bool,
    /// The lines that its configuration has beside those of Corpus, by name.
    pub conf: Vec<LxcLineName>,
    /// Which settings these are, whether it starts at boot and its lines, to change them.
    pub settings_version: Version,
    /// Whether a password is sealed for it.
    pub has_password: bool,
    /// The command that enters it, once its port is allocated.
    pub ssh_command: Option<String>,
    /// The fingerprint of its own SSH host key.
    pub host_fingerprint: Option<String>,
    /// The fingerprint of another key that it shows now: nothing is sent to it.
    pub other_host_key: Option<String>,
    /// When it was requested.
    pub created_at: DateTime<Utc>,
    /// What stands on it, when it is deployed to.
    pub deployed_to: Option<GuestEnvironment>,
    /// What of it was not as it should be at the last check of its node.
    pub drift: Vec<GuestDifference>,
    /// The DNS names that lead to it, the first 200 by name.
    pub names: Vec<NameLine>,
    /// What its last move to another node was like, if it was moved while it ran in the last 90 days.
    pub last_move: Option<LastMove>,
    /// Whether who asks may start, stop and restart it.
    pub may_operate: bool,
    /// Whether who asks may change and destroy it, attach names to it, and see its password.
    pub may_change: bool,
    /// Whether who asks may move it to another node: one that is privileged only operators.
    pub may_move: bool,
}
impl Reply for Guest {}

/// What is in the storage of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StorageUse {
    /// How much, in bytes.
    pub used: Bytes,
    /// How much it may come to.
    pub of: Bytes,
    /// How much of the node's storage it takes.
    pub taken: Bytes,
    /// When it will be full if it goes on as in the last 30 days, where that is within a year and four days are known.
    pub full_at: Option<DateTime<Utc>>,
}

/// The environment that stands on a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestEnvironment {
    /// Whether it can be deployed to.
    pub state: EnvironmentState,
    /// Whether the guest is the one that is pushed to.
    pub is_leader: bool,
}

/// What keeps root in a guest from its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestSafeguard {
    /// Which.
    pub safeguard: Safeguard,
    /// Whether unprivileged guests have it on this node.
    pub in_force: bool,
    /// What was found.
    pub detail: String,
}

/// Something of a guest that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestDifference {
    /// What it concerns.
    pub kind: DriftKind,
    /// What was found.
    pub text: String,
    /// When it was first found.
    pub since: DateTime<Utc>,
}

/// What a guest may take of its node, beside storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestLimits {
    /// Memory.
    pub memory: MemoryLimit,
    /// Processor time.
    pub cpu: CpuLimit,
    /// Processes and threads.
    pub processes: ProcessLimit,
    /// Share of the disk's time.
    pub io_weight: IoWeight,
    /// Which limits these are, to change them.
    pub version: Version,
}
impl From<Limits> for GuestLimits {
    fn from(limits: Limits) -> Self {
        let Limits { memory, cpu, processes, io_weight } = limits;
        Self { memory, cpu, processes, io_weight, version: Version::of(&limits) }
    }
}
impl Reply for GuestLimits {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}
