//! What makes guests, one file a technology.
//!
//! A driver says what must be true and makes it so; doing it again changes nothing. The suite
//! in `tests/lab.rs` holds each driver to that on a real node. A driver keeps no state of its
//! own: what it knows of its guests, it reads from the host.

pub mod lxc;

pub use self::lxc::{AGENT, PREPARE, ensure_tools, prepare, remove_tools};

use std::time::Duration;

use corpus_domain::{Bytes, Driver as Kind, GuestName, Limits, SizeProfile};
use corpus_protocol::{AuthorizedKeys, GuestPlan, GuestReading, GuestSetup};

use crate::failure::Failure;
use crate::guest_root::GuestRoot;
use crate::host::Host;
use crate::task::Task;

/// Makes guests of one technology. Each change tells whether there was anything to do.
pub trait Driver {
    /// The guest exists as planned; it is not started.
    fn ensure(&self, task: &Task<'_>, plan: &GuestPlan) -> Result<bool, Failure>;
    /// Files, host key and passwords in the guest are as given.
    fn set_up(&self, task: &Task<'_>, name: &GuestName, setup: &GuestSetup) -> Result<bool, Failure>;
    /// The keys that Corpus keeps in the guest are exactly these.
    fn ensure_keys(&self, task: &Task<'_>, name: &GuestName, keys: &AuthorizedKeys) -> Result<bool, Failure>;
    /// The guest's storage has the size of this profile.
    fn ensure_size(&self, task: &Task<'_>, name: &GuestName, size: SizeProfile) -> Result<bool, Failure>;
    /// The guest is held to these limits.
    fn ensure_limits(&self, task: &Task<'_>, name: &GuestName, limits: Limits) -> Result<bool, Failure>;
    /// The guest runs.
    fn ensure_running(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure>;
    /// The guest does not run; after `grace` it is killed.
    fn ensure_stopped(&self, task: &Task<'_>, name: &GuestName, grace: Duration) -> Result<bool, Failure>;
    /// Nothing of the guest is left.
    fn ensure_absent(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure>;
    /// The guests of ours, without starting a process.
    fn readings(&self, host: &Host) -> Vec<GuestReading>;
    /// What the disks of guests may still grow into.
    fn promised(&self, host: &Host) -> Bytes;
    /// The host's ends of the cables of guests that run.
    fn cables(&self, host: &Host) -> Vec<String>;
    /// The names of containers that are not ours.
    fn foreign(&self, host: &Host) -> Vec<String>;
    /// The limits that guests can't be held to on this host, and why.
    fn not_held(&self, host: &Host) -> Vec<String>;
    /// The files that the processes of a running guest see; nothing when it does not run.
    fn running_root(&self, host: &Host, name: &GuestName) -> Result<Option<GuestRoot>, Failure>;
    /// Whether a guest of ours was made from this image.
    fn uses_image(&self, host: &Host, image: &corpus_domain::ImageName) -> bool;
}

pub use self::lxc::interface;

/// The driver of a technology.
pub fn of(kind: Kind) -> Result<&'static dyn Driver, Failure> {
    match kind {
        Kind::Lxc => Ok(&lxc::Lxc),
        Kind::Libvirt | Kind::Docker => {
            Err(Failure::Invalid(format!("this agent makes no guests with {kind}; use lxc")))
        }
    }
}

/// Every driver of this agent.
pub fn all() -> [&'static dyn Driver; 1] {
    [&lxc::Lxc]
}

/// What the disks of guests may still grow into, of every driver.
pub fn promised(host: &Host) -> Bytes {
    Bytes(all().iter().map(|driver| driver.promised(host).0).fold(0, u64::saturating_add))
}

/// The host's ends of the cables of guests that run, of every driver.
pub fn cables(host: &Host) -> Vec<String> {
    all().iter().flat_map(|driver| driver.cables(host)).collect()
}

/// The names of containers that are not ours, of every driver.
pub fn foreign(host: &Host) -> Vec<String> {
    all().iter().flat_map(|driver| driver.foreign(host)).collect()
}

/// The guests of ours, of every driver.
pub fn readings(host: &Host) -> Vec<GuestReading> {
    all().iter().flat_map(|driver| driver.readings(host)).collect()
}
