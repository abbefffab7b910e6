//! What makes guests, one file a technology.
//!
//! A driver says what must be true and makes it so; doing it again changes nothing. The suite
//! in `tests/lab.rs` holds each driver to that on a real node. A driver keeps no state of its
//! own: what it knows of its guests, it reads from the host.

pub mod lxc;

pub use self::lxc::{AGENT, PREPARE, ensure_tools, prepare, remove_tools};

use std::time::Duration;

use corpus_domain::{Bytes, Driver as Kind, GuestId, GuestName, Limits, LxcLine, SizeProfile};
use corpus_protocol::{AuthorizedKeys, GuestPlan, GuestReading, GuestSetup};

use crate::backings::{Backing, Store};
use crate::failure::Failure;
use crate::guest_root::GuestRoot;
use crate::host::Host;
use crate::task::Task;

/// Makes guests of one technology. Each change tells whether there was anything to do.
pub trait Driver: Sync {
    /// Which it is.
    fn kind(&self) -> Kind;
    /// The packages that a host needs for it.
    fn packages(&self) -> &'static [&'static str];
    /// The host's own packages do what they are for and nothing else; these were just installed.
    fn settle(&self, task: &Task<'_>, installed: &[&str]) -> Result<bool, Failure>;
    /// Whether it has made this guest. What has its name and is not ours is an error.
    fn has(&self, host: &Host, name: &GuestName) -> Result<bool, Failure>;
    /// The guest exists as planned; it is not started.
    fn ensure(&self, task: &Task<'_>, plan: &GuestPlan) -> Result<bool, Failure>;
    /// Files, host key and passwords in the guest are as given.
    fn set_up(&self, task: &Task<'_>, name: &GuestName, setup: &GuestSetup) -> Result<bool, Failure>;
    /// The keys that Corpus keeps in the guest are exactly these.
    fn ensure_keys(&self, task: &Task<'_>, name: &GuestName, keys: &AuthorizedKeys) -> Result<bool, Failure>;
    /// The guest's storage has the size of this profile, or no more than that.
    fn ensure_size(&self, task: &Task<'_>, name: &GuestName, size: SizeProfile, shrink: bool) -> Result<bool, Failure>;
    /// Where the guest's files are, and on what.
    fn kept(&self, host: &Host, name: &GuestName) -> Result<Kept, Failure>;
    /// Whether the guest runs.
    fn runs(&self, host: &Host, name: &GuestName) -> bool;
    /// Does something while nothing in the guest moves; whatever becomes of us, the guest goes on after it.
    fn while_still(
        &self,
        task: &Task<'_>,
        name: &GuestName,
        work: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure>;
    /// The guest is held to these limits.
    fn ensure_limits(&self, task: &Task<'_>, name: &GuestName, limits: Limits) -> Result<bool, Failure>;
    /// The node starts the guest at boot or not, and its configuration has these lines beside the driver's own.
    fn ensure_settings(
        &self,
        task: &Task<'_>,
        name: &GuestName,
        autostart: bool,
        lines: &[LxcLine],
    ) -> Result<bool, Failure>;
    /// The guest runs.
    fn ensure_running(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure>;
    /// The guest does not run; after `grace` it is killed.
    fn ensure_stopped(&self, task: &Task<'_>, name: &GuestName, grace: Duration) -> Result<bool, Failure>;
    /// The node does not start the guest at boot.
    fn ensure_not_at_boot(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure>;
    /// Which guest of its name it is, as far as its record says.
    fn id(&self, host: &Host, name: &GuestName) -> Result<Option<GuestId>, Failure>;
    /// Nothing of the guest is left.
    fn ensure_absent(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure>;
    /// Nothing is left of what was begun to be made under this name.
    fn ensure_none_begun(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure>;
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

/// Where the files of a guest are.
pub struct Kept {
    /// On what.
    pub backing: &'static dyn Backing,
    /// Where.
    pub store: Store,
    /// How large its storage is to be.
    pub size: SizeProfile,
}

pub use self::lxc::interface;

/// The driver of a technology.
pub fn of(kind: Kind) -> Result<&'static dyn Driver, Failure> {
    all().into_iter().find(|driver| driver.kind() == kind).ok_or_else(|| {
        let known: Vec<String> = all().iter().map(|driver| driver.kind().to_string()).collect();
        Failure::Invalid(format!("this agent makes no guests with {kind}; use one of: {}", known.join(", ")))
    })
}

/// The driver that has made the guest, as its own record says; none where there is no such guest.
pub fn that_made(host: &Host, name: &GuestName) -> Result<Option<&'static dyn Driver>, Failure> {
    let mut found = None;
    for driver in all() {
        if driver.has(host, name)? {
            found = Some(driver);
        }
    }
    Ok(found)
}

/// Whether the guest is another of this name than the one that is meant: one that the controller does not know, since it
/// was brought back from a backup.
pub fn is_another(host: &Host, name: &GuestName, id: Option<GuestId>) -> Result<bool, Failure> {
    let Some(driver) = that_made(host, name)? else { return Ok(false) };
    Ok(driver.id(host, name)?.zip(id).is_some_and(|(made, meant)| made != meant))
}

/// What another guest of its name has is not for this one.
pub fn require_meant(host: &Host, name: &GuestName, id: Option<GuestId>) -> Result<(), Failure> {
    if is_another(host, name, id)? {
        return Err(Failure::Invalid(format!(
            "another guest {name} is on the node, which this controller does not know; it stays untouched"
        )));
    }
    Ok(())
}

/// The guest exists as planned. One that another driver has made stays that one's.
pub fn ensure(task: &Task<'_>, plan: &GuestPlan) -> Result<bool, Failure> {
    let driver = of(plan.driver)?;
    require_meant(task.host, &plan.name, plan.id)?;
    match that_made(task.host, &plan.name)? {
        Some(other) if other.kind() != plan.driver => Err(Failure::Invalid(format!(
            "{} was made by {}; destroy it before it is made by {}",
            plan.name,
            other.kind(),
            plan.driver
        ))),
        _ => driver.ensure(task, plan),
    }
}

/// The guest does not run; one that is not there does not.
pub fn ensure_stopped(task: &Task<'_>, name: &GuestName, grace: Duration) -> Result<bool, Failure> {
    that_made(task.host, name)?.map_or(Ok(false), |driver| driver.ensure_stopped(task, name, grace))
}

/// How long a guest that is not to be here may take to shut down.
const RESTS: Duration = Duration::from_secs(20);

/// The guest does not run here, now and after a boot: it goes on elsewhere.
pub fn ensure_resting(task: &Task<'_>, name: &GuestName, id: GuestId) -> Result<bool, Failure> {
    let Some(driver) = that_made(task.host, name)? else { return Ok(false) };
    if driver.id(task.host, name)? != Some(id) {
        return Ok(false);
    }
    // First: a node that is lost again in between starts it no more.
    let is_other = driver.ensure_not_at_boot(task, name)?;
    Ok(driver.ensure_stopped(task, name, RESTS)? || is_other)
}

/// Nothing of the guest is left, whoever was about to make it; another one of its name stays as it is.
pub fn ensure_absent(task: &Task<'_>, name: &GuestName, id: Option<GuestId>) -> Result<bool, Failure> {
    let stays = is_another(task.host, name, id)?;
    all().iter().try_fold(false, |changed, driver| {
        let removed = if stays { driver.ensure_none_begun(task, name) } else { driver.ensure_absent(task, name) };
        Ok(removed? || changed)
    })
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
