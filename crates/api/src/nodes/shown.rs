//! A node as it is shown: a line of a list, and the whole.
//!
//! Who is no operator is told what concerns their own projects: the slots that are free and those of their
//! own guests, and nothing of what differs, which names guests and routes of everybody.

use chrono::{DateTime, Utc};
use corpus_domain::{
    Backing, Bytes, DnsName, DriftKind, Driver, Environment, GuestId, GuestName, GuestNetwork, ImageName, JobId,
    NodeAddress, NodeId, NodeName, NodeState, Overcommit, Reachability, Room, Safeguard, UnixUser,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::Reply;

/// A node in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeLine {
    /// Its id.
    pub id: NodeId,
    /// What people call it, if it was given a name.
    pub name: Option<NodeName>,
    /// Where it answers SSH.
    pub address: NodeAddress,
    /// What it is good for.
    pub state: NodeState,
    /// Whether it answers.
    pub reachability: Reachability,
    /// Since when.
    pub reachability_since: DateTime<Utc>,
    /// Where its guests' names point to.
    pub public_ip: Option<String>,
    /// The environments that it takes guests of.
    pub environments: Vec<Environment>,
    /// The drivers that can be used there.
    pub drivers: Vec<Driver>,
    /// Slots in use: for who is no operator, by guests of their own projects.
    pub guests: u32,
    /// Slots: those in use, and how many more guests of size `small` fit.
    pub slots: u32,
    /// What was used of it at the last reading.
    pub used: Option<NodeUse>,
    /// When that was.
    pub reading_at: Option<DateTime<Utc>>,
    /// How much of it was not as it should be at the last check.
    pub drift: u32,
    /// Since when the first of that is so.
    pub drift_since: Option<DateTime<Utc>>,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
    /// Whether a job is on it that is not to be known of.
    pub busy: bool,
}

impl NodeLine {
    /// What it is called: its name, else its address.
    pub fn title(&self) -> String {
        self.name.as_ref().map_or_else(|| self.address.to_string(), ToString::to_string)
    }

    /// How many more guests of size `small` fit; none unless it is ready.
    pub fn free_slots(&self) -> u32 {
        if self.state == NodeState::Ready { self.slots.saturating_sub(self.guests) } else { 0 }
    }

    /// Whether a new guest can go there now.
    pub fn takes_guests(&self) -> bool {
        self.free_slots() > 0 && self.reachability == Reachability::Reachable
    }

    /// Whether any job is on it.
    pub const fn is_changing(&self) -> bool {
        self.job.is_some() || self.busy
    }
}

crate::page!(
    /// A page of nodes.
    NodePage, NodeLine
);

/// What is used of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeUse {
    /// Its memory.
    pub memory_total: Bytes,
    /// What is used of it.
    pub memory_used: Bytes,
    /// The file system that guests live on.
    pub storage_total: Bytes,
    /// What of it is not free to guests.
    pub storage_used: Bytes,
    /// What of the rest is promised to the disks of guests, which may still grow into it.
    #[serde(default)]
    pub storage_promised: Bytes,
}
impl NodeUse {
    /// The storage that new guests can have.
    pub const fn storage_free(&self) -> Bytes {
        Bytes(self.storage_total.0.saturating_sub(self.storage_used.0).saturating_sub(self.storage_promised.0))
    }

    /// How much of the storage new guests can't have, in per cent.
    pub fn storage_taken(&self) -> u8 {
        Bytes(self.storage_total.0.saturating_sub(self.storage_free().0)).percent_of(self.storage_total)
    }
}

/// A node with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// What lists show of it.
    pub line: NodeLine,
    /// Its own DNS name, if it has one.
    pub dns_name: Option<DnsName>,
    /// Its SSH port.
    pub ssh_port: u16,
    /// The account that Corpus uses.
    pub ssh_user: UnixUser,
    /// The fingerprint of the host key that was confirmed, `SHA256:…`.
    pub fingerprint: String,
    /// What it is reached through, if it does not answer from here; for operators.
    pub gateway: Option<NodeGateway>,
    /// Why it is in its state, for a failed one.
    pub state_reason: Option<String>,
    /// What was wrong at the last reading.
    pub reachability_reason: Option<String>,
    /// The guests' network.
    pub network: GuestNetwork,
    /// The bridge.
    pub bridge: String,
    /// What it has, once it told.
    pub capacity: Option<Room>,
    /// What its guests were promised: of storage, in the file system that they share.
    pub promised: Room,
    /// Pools in which guests on some backings lie instead.
    pub pools: Vec<NodePool>,
    /// How much more than it has may be promised.
    pub overcommit: Overcommit,
    /// What it is.
    pub facts: Option<NodeFacts>,
    /// When that was read.
    pub facts_at: Option<DateTime<Utc>>,
    /// How it was at the last reading.
    pub reading: Option<NodeReading>,
    /// The versions of images that it has, by the last reading.
    pub images: Vec<ImageName>,
    /// What was not as it should be at the last check.
    pub drift: Vec<Drift>,
    /// When that check was.
    pub checked_at: Option<DateTime<Utc>>,
}
impl Reply for Node {}

/// A pool of a node that guests on one backing lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodePool {
    /// What its guests lie on.
    pub backing: Backing,
    /// What their sizes come to at most.
    pub room: Bytes,
    /// What they were promised.
    pub promised: Bytes,
}

/// The host that a node is reached through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeGateway {
    /// Where it answers SSH.
    pub address: NodeAddress,
    /// Its SSH port.
    pub port: u16,
    /// The account that Corpus uses there.
    pub user: UnixUser,
    /// The fingerprint of its host key that was confirmed, `SHA256:…`.
    pub fingerprint: String,
    /// Whether it is the gateway that shows another host key.
    pub shows_other_key: bool,
}

/// How a node was at a reading, beside what is used of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeReading {
    /// Load average over one minute.
    pub load: f32,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// By how many seconds its clock was ahead of Corpus' own, or behind (negative); none within a minute.
    pub clock_ahead_s: Option<i64>,
}

/// What a host is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeFacts {
    /// Its own host name.
    pub hostname: String,
    /// Its system, by name and version.
    pub os: String,
    /// Its kernel's release.
    pub kernel: String,
    /// Its architecture, as `uname -m` says it.
    pub architecture: String,
    /// The model of its processors.
    pub processor: String,
    /// Logical processors online.
    pub processors: u32,
    /// Its memory.
    pub memory: Bytes,
    /// The size of the file system that guests live on.
    pub storage: Bytes,
    /// Addresses of its interfaces, without loopback and link-local ones.
    pub addresses: Vec<String>,
    /// Each driver, and whether it can be used.
    pub drivers: Vec<DriverFact>,
    /// What holds unprivileged guests.
    pub confinement: Vec<SafeguardFact>,
    /// The limits that guests can't be held to there, and why; empty when all are.
    pub not_held: Vec<String>,
}

/// A driver on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DriverFact {
    /// Which.
    pub driver: Driver,
    /// Its version, if it is installed.
    pub version: Option<String>,
    /// Why it can't be used or installed, if so.
    pub obstacle: Option<String>,
}

/// Something that keeps root in a guest from its node and from other guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SafeguardFact {
    /// Which.
    pub safeguard: Safeguard,
    /// Whether guests that are started now have it.
    pub in_force: bool,
    /// How it holds, or why it does not.
    pub detail: String,
}

/// Something of a node that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drift {
    /// What it concerns.
    pub kind: DriftKind,
    /// The guest it concerns, if one of Corpus.
    pub guest: Option<GuestId>,
    /// The name of that guest.
    pub guest_name: Option<GuestName>,
    /// What was found, for a person.
    pub text: String,
    /// When it was first found.
    pub since: DateTime<Utc>,
}
