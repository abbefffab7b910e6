//! What a host is, and how it is now.

use std::net::IpAddr;

use corpus_domain::{Backing, Bytes, Driver, GuestName, GuestState, ImageName, Safeguard};
use serde::{Deserialize, Serialize};

use crate::Millis;

/// What a host is; gathered at link time and after each reconnection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Its own host name.
    pub hostname: String,
    /// `PRETTY_NAME` of os-release(5).
    pub os: String,
    /// Kernel release as `uname -r` prints it.
    pub kernel: String,
    /// Machine architecture as `uname -m` prints it.
    pub architecture: String,
    /// Its processors.
    pub cpu: Cpu,
    /// `MemTotal` of /proc/meminfo.
    pub memory: Bytes,
    /// The file system that guests live on.
    pub storage: Storage,
    /// Addresses of its interfaces, without loopback and link-local ones.
    pub addresses: Vec<IpAddr>,
    /// Each driver, and whether it can be used.
    pub drivers: Vec<DriverFact>,
    /// Public SSH host keys, as in the `.pub` files.
    pub listeners: Vec<Listener>,
    /// What holds unprivileged guests; empty when an older agent gathered the facts.
    #[serde(default)]
    pub confinement: Vec<SafeguardFact>,
    /// The limits that guests can't be held to here, and why, each for a person; empty when all are.
    #[serde(default)]
    pub not_held: Vec<String>,
}

/// Something that keeps root in a guest from its node and from other guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SafeguardFact {
    /// Which.
    pub safeguard: Safeguard,
    /// Whether guests that are started now have it.
    pub in_force: bool,
    /// How it holds, or why it does not.
    pub detail: String,
}

/// The processors of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// `model name` of /proc/cpuinfo.
    pub model: String,
    /// Logical processors online.
    pub count: u32,
}

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Its size.
    pub total: Bytes,
    /// What of it is not free to guests.
    pub used: Bytes,
    /// What of the rest is promised: the disks of guests may still grow into it. None as an older agent tells it.
    #[serde(default)]
    pub promised: Bytes,
}

impl Storage {
    /// What a new guest can be given.
    pub const fn free(&self) -> Bytes {
        Bytes(self.total.0.saturating_sub(self.used.0).saturating_sub(self.promised.0))
    }
}

/// A driver on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverFact {
    /// Which.
    pub driver: Driver,
    /// Its version if it is installed.
    pub version: Option<String>,
    /// Why it can't be used or installed, if so.
    pub obstacle: Option<String>,
    /// What its guests can lie on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backings: Vec<BackingFact>,
}

/// A backing on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingFact {
    /// Which.
    pub backing: Backing,
    /// Whether a guest that is made now has the storage of its size and no more, and can be given more.
    pub holds_size: bool,
    /// Why it can't be used here, if so.
    pub obstacle: Option<String>,
    /// The sizes of all guests on it, and of their snapshots, come to this at most, where they lie in a pool of their own;
    /// none where that is the file system that guests live on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Bytes>,
}

/// A TCP port that a process listens on, as far as it is of interest to Corpus (80, 443).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// The port.
    pub port: u16,
    /// Whether the listener is ours.
    pub ours: bool,
}

/// How a host is now; gathered without starting a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Load average over one minute (/proc/loadavg).
    pub load: f32,
    /// Seconds since boot.
    pub uptime_s: u64,
    /// `MemTotal`.
    pub memory_total: Bytes,
    /// `MemTotal - MemAvailable`.
    pub memory_used: Bytes,
    /// The file system that guests live on.
    pub storage: Storage,
    /// The guests of ours that are on the node.
    pub guests: Vec<GuestReading>,
    /// Its images, by the names that guests have them by.
    #[serde(default)]
    pub images: Vec<ImageName>,
    /// The members of the node's pools, as its proxy sees them; none when there are none, or it does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberReading>,
    /// What the host's clock said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ms: Option<Millis>,
}

/// How the proxy sees a member of a pool now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberReading {
    /// The guest.
    pub guest: GuestName,
    /// Whether it is given requests.
    pub takes: bool,
    /// Why it is not given any, or what its last check saw: 200 characters at most.
    pub seen: String,
    /// Requests under way.
    pub requests: u32,
}

/// How a guest is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestReading {
    /// Which.
    pub name: GuestName,
    /// Running or stopped.
    pub state: GuestState,
    /// Seconds since its init started, when running.
    pub uptime_s: Option<u64>,
    /// Memory its control group holds, when running.
    pub memory_used: Option<Bytes>,
    /// Processor time that it took in the last moments, in thousandths of a processor, once two
    /// readings of this agent tell.
    #[serde(default)]
    pub cpu_millis: Option<u32>,
    /// Processes and threads in it, when running.
    #[serde(default)]
    pub processes: Option<u32>,
    /// What it has taken of its storage; none where it has no size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<GuestStorage>,
}

/// What a guest has taken of its storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestStorage {
    /// What is in it.
    pub used: Bytes,
    /// What it may come to.
    pub of: Bytes,
    /// What it takes of the node's: what was deleted in the guest may be part of that.
    pub taken: Bytes,
}
