//! What pages and the JSON API show: plain values, read in one go, already filtered by what
//! the principal may see. Every observed state carries the time of its observation.

use std::net::Ipv4Addr;

use chrono::{DateTime, Utc};
use corpus_domain::{
    Backing, Bytes, DnsName, DnsNameId, DriftKind, Driver, Environment, GuestId, GuestName, GuestNetwork, GuestState,
    IdRange, ImageName, JobId, KeyClaimId, Limits, MacAddress, Mode, NameState, NodeAddress, NodeId, NodeState,
    Overcommit, ProjectId, ProjectName, ProjectRole, Reachability, Reason, Room, SizeProfile, SshKeyId, SshPort,
    UnixUser, UserName, ZoneId,
};
use corpus_protocol::{Difference, Facts, Reading, SafeguardFact};
use serde::{Deserialize, Serialize};

use crate::nodes::{InvalidHostKey, NodeEndpoint};

/// A point in time, UTC.
pub type Time = DateTime<Utc>;

/// A compute node as last known.
#[derive(Debug, Clone, Serialize)]
pub struct NodeView {
    /// Its id.
    pub id: NodeId,
    /// Where it answers SSH; also its name on pages.
    pub address: NodeAddress,
    /// Its SSH port.
    pub ssh_port: u16,
    /// The account that the controller uses.
    pub ssh_user: UnixUser,
    /// The pinned host key, `algorithm base64`.
    pub host_key: String,
    /// Its fingerprint as `ssh-keygen -l` prints it, `SHA256:…`.
    pub fingerprint: String,
    /// Where its guests' names point to.
    pub public_ip: Option<String>,
    /// The environments it takes guests of.
    pub environments: Vec<Environment>,
    /// What it is good for.
    pub state: NodeState,
    /// Why, for a failed one.
    pub state_reason: Option<String>,
    /// Whether it answers.
    pub reachability: Reachability,
    /// Since when.
    pub reachability_since: Time,
    /// What was wrong at the last reading.
    pub reachability_reason: Option<String>,
    /// The guests' network.
    pub network: GuestNetwork,
    /// The bridge.
    pub bridge: String,
    /// Room for guests: those that are there, and how many more of size `small` fit.
    pub slots: u32,
    /// Slots in use.
    pub guests: u32,
    /// What it has, once it told.
    pub capacity: Option<Room>,
    /// What its guests were promised.
    pub promised: Room,
    /// How much more than it has may be promised.
    pub overcommit: Overcommit,
    /// What it is.
    pub facts: Option<Facts>,
    /// When that was read.
    pub facts_at: Option<Time>,
    /// How it was at the last reading.
    pub reading: Option<Reading>,
    /// When that was read.
    pub reading_at: Option<Time>,
    /// What was not as it should be at the last check.
    pub drift: Vec<DriftView>,
    /// When that check was.
    pub checked_at: Option<Time>,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
    /// Whether a job is on it that is not to be known of, of another project or of the node.
    pub busy: bool,
}

/// Something of a node that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftView {
    /// What it concerns.
    pub kind: DriftKind,
    /// The guest it concerns, if one.
    pub guest: Option<GuestName>,
    /// What was found, for a person.
    pub text: String,
    /// When it was first found.
    pub since: Time,
}

impl DriftView {
    /// Whether this is the same finding.
    pub fn is(&self, found: &Difference) -> bool {
        (self.kind, &self.guest, &self.text) == (found.kind, &found.guest, &found.text)
    }
}

impl NodeView {
    /// Where it answers, and by what it is recognised.
    pub fn endpoint(&self) -> Result<NodeEndpoint, InvalidHostKey> {
        Ok(NodeEndpoint {
            id: self.id,
            address: self.address.clone(),
            port: self.ssh_port,
            user: self.ssh_user.clone(),
            pinned_host_key: self.host_key.parse()?,
        })
    }

    /// What may be promised still; none when it has not told yet what it has.
    pub fn free(&self) -> Option<Room> {
        Some(self.capacity?.overcommitted(self.overcommit).without(self.promised))
    }

    /// How many more guests of size `small` fit; none unless it is ready.
    pub fn free_slots(&self) -> u32 {
        if self.state == NodeState::Ready { self.slots.saturating_sub(self.guests) } else { 0 }
    }

    /// Whether a new guest can go there now.
    pub fn takes_guests(&self) -> bool {
        self.free_slots() > 0 && self.reachability == Reachability::Reachable
    }
}

/// A guest as last known.
#[derive(Debug, Clone, Serialize)]
pub struct GuestView {
    /// Its id.
    pub id: GuestId,
    /// Its name.
    pub name: GuestName,
    /// The node it is on.
    pub node_id: NodeId,
    /// Where that node answers.
    pub node_address: NodeAddress,
    /// Whether the node answers.
    pub node_reachability: Reachability,
    /// Its project.
    pub project_id: ProjectId,
    /// Its project's name.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// What made it.
    pub driver: Driver,
    /// What it is a clone of.
    pub image: ImageName,
    /// What its users are on the node; none before they are allocated, and for a privileged guest.
    pub ids: Option<IdRange>,
    /// Why it is privileged, if it is: then its root is root on the node.
    pub privileged: Option<Reason>,
    /// What holds unprivileged guests on its node.
    pub confinement: Vec<SafeguardFact>,
    /// Where its root file system lives.
    pub backing: Backing,
    /// How much storage it may fill.
    pub size: SizeProfile,
    /// What it may take of its node.
    pub limits: Limits,
    /// How its configuration is managed.
    pub mode: Mode,
    /// Its address, once allocated.
    pub ip: Option<Ipv4Addr>,
    /// Its MAC, once allocated.
    pub mac: Option<MacAddress>,
    /// The node's port that leads to its SSH, once allocated.
    pub ssh_port: Option<SshPort>,
    /// The network it is in.
    pub network: GuestNetwork,
    /// The bridge it is on.
    pub bridge: String,
    /// Whether the node starts it at boot.
    pub autostart: bool,
    /// Whether a password is sealed for it.
    pub has_password: bool,
    /// The fingerprint of its own SSH host key.
    pub host_fingerprint: Option<String>,
    /// The fingerprint of another key that it shows now: nothing is sent to it.
    pub other_host_key: Option<String>,
    /// Its state.
    pub state: GuestState,
    /// Why, for a failed one.
    pub state_reason: Option<String>,
    /// Since when.
    pub state_since: Time,
    /// Seconds it runs, by the last reading.
    pub uptime_s: Option<u64>,
    /// Memory it holds, by the last reading.
    pub memory_used: Option<Bytes>,
    /// Processor time it takes, in thousandths of a processor, by the last readings.
    pub cpu_used: Option<u32>,
    /// Processes and threads it has, by the last reading.
    pub processes_used: Option<u32>,
    /// The limits that its node can't hold guests to, and why.
    pub not_held: Vec<String>,
    /// When that reading was made.
    pub observed_at: Option<Time>,
    /// When it was requested.
    pub created_at: Time,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
    /// What of it was not as it should be at the last check of its node; not read for lists.
    pub drift: Vec<DriftView>,
    /// Its DNS names.
    pub names: Vec<NameView>,
}

impl GuestView {
    /// The command that enters it, once its port is allocated.
    pub fn ssh_command(&self) -> Option<String> {
        self.ssh_port.map(|port| format!("ssh -p {port} sysadmin@{}", self.node_address))
    }

    /// Whether its node can promise it the storage of this size; the error says what there is.
    pub fn storage_free(&self, node: &NodeView, size: SizeProfile) -> Result<(), String> {
        let more = Bytes(size.storage().0.saturating_sub(self.size.storage().0));
        let Some(free) = node.free().filter(|free| free.storage < more) else { return Ok(()) };
        let (free, more) = (free.storage.gb(), more.gb());
        Err(format!("{} has {free} of storage free, and {more} more are needed", node.address))
    }
}

/// A DNS name attached to a guest.
#[derive(Debug, Clone, Serialize)]
pub struct NameView {
    /// Its id.
    pub id: DnsNameId,
    /// The name.
    pub name: DnsName,
    /// The zone that holds it.
    pub zone: DnsName,
    /// The guest it leads to.
    pub guest_id: GuestId,
    /// That guest's name.
    pub guest: GuestName,
    /// Its state.
    pub state: NameState,
    /// Why, for a failed one.
    pub state_reason: Option<String>,
    /// When the authoritative server last answered it.
    pub answered_at: Option<Time>,
    /// The address it points to.
    pub target: Option<String>,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
}

/// A DNS zone.
#[derive(Debug, Clone, Serialize)]
pub struct ZoneView {
    /// Its id.
    pub id: ZoneId,
    /// Its name.
    pub name: DnsName,
    /// How many names are attached in it, of those that the principal may see.
    pub names: u32,
    /// Which projects may take names in it.
    pub access: ZoneAccess,
    /// When it was made.
    pub created_at: Time,
}

/// Which projects may take names in a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneAccess {
    /// All of them.
    All,
    /// These; as a member sees it, those of them that are the member's.
    Only(Vec<ProjectName>),
}

/// A member's SSH key.
#[derive(Debug, Clone, Serialize)]
pub struct KeyView {
    /// Its id.
    pub id: SshKeyId,
    /// Its algorithm, `ssh-ed25519`.
    pub algorithm: String,
    /// Its size.
    pub bits: u32,
    /// `SHA256:…`
    pub fingerprint: String,
    /// Its comment.
    pub comment: String,
    /// When it was added.
    pub created_at: Time,
}

/// What a member must sign to claim a key that another account holds.
#[derive(Debug, Clone, Serialize)]
pub struct KeyClaimView {
    /// Its id.
    pub id: KeyClaimId,
    /// The key's, `SHA256:…`
    pub fingerprint: String,
    /// The text to be signed, one line.
    pub text: String,
    /// Until when.
    pub expires_at: Time,
}

/// What became of a key that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAdded {
    /// It is the member's.
    Added(SshKeyId),
    /// Another account holds it: the member may prove to have it.
    Claim(KeyClaimId),
}

/// A row of the audit.
#[derive(Debug, Clone, Serialize)]
pub struct AuditView {
    /// When.
    pub at: Time,
    /// Who, by login name.
    pub actor: String,
    /// What was done, `guest.destroy`.
    pub action: String,
    /// To what, by name.
    pub subject: String,
    /// More, as JSON, never a secret.
    pub detail: serde_json::Value,
}

/// Logins that were refused within an hour, of one login from one network for one reason.
#[derive(Debug, Clone, Serialize)]
pub struct RefusedLoginsView {
    /// The login; empty for whatever is no login of an account here.
    pub login: String,
    /// The network; empty for several together.
    pub network: String,
    /// Why.
    pub reason: String,
    /// The first of them.
    pub first_at: Time,
    /// The last of them.
    pub last_at: Time,
    /// How many.
    pub count: i64,
}

/// A project that the principal may see, and as what.
#[derive(Debug, Clone, Serialize)]
pub struct ProjectView {
    /// Its id.
    pub id: ProjectId,
    /// Its name.
    pub name: ProjectName,
    /// The principal's role; `None` for ops who is no member.
    pub role: Option<ProjectRole>,
}

/// The numbers beside the navigation and on the overview.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Counts {
    /// Guests that the principal may see.
    pub guests: u32,
    /// Of them, running.
    pub guests_running: u32,
    /// Of them, failed.
    pub guests_failed: u32,
    /// Of them, stopped.
    pub guests_stopped: u32,
    /// Linked nodes.
    pub nodes: u32,
    /// Slots of all nodes.
    pub slots: u32,
    /// Free slots of ready nodes.
    pub slots_free: u32,
    /// DNS names that the principal may see.
    pub names: u32,
    /// Of them, attached.
    pub names_attached: u32,
    /// Projects that the principal may see.
    pub projects: u32,
    /// Deployments that the principal may see and that run or wait.
    pub deployments_running: u32,
    /// Jobs not over that the principal may see.
    pub jobs: u32,
    /// Stuck jobs that the principal may see.
    pub jobs_stuck: u32,
}

/// Who someone is, for the top bar.
#[derive(Debug, Clone, Serialize)]
pub struct Person {
    /// The login name.
    pub login: UserName,
    /// The name for people.
    pub display_name: String,
}
