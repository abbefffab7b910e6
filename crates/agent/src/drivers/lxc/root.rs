//! The root of an unprivileged guest, mounted before LXC starts it.
//!
//! LXC maps the ids of plain folders only. So the image, which belongs to the node's root, is mounted
//! with the guest's ids, the overlay laid over it, or the guest's disk mounted with them, and LXC
//! gets the result as a folder. LXC calls us for that ([`WORD`]) whenever it starts the guest, also
//! when the node boots, from a process with mounts of its own: the node has no mount of ours, and
//! the kernel takes this one away with the guest's last process, however that ends.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use corpus_domain::{Backing, GuestName, IdRange};

use super::config::{Made, upper};
use super::{disk, require};
use crate::failure::{At, Failure};
use crate::guest_root::{Durable, GuestRoot};
use crate::host::Host;
use crate::task::{Cancel, Task};

/// The word with which LXC starts the agent for this.
pub const WORD: &str = "lxc-root";

/// Where the guest's root is mounted.
pub fn place(folder: &Path) -> PathBuf {
    folder.join("root")
}

/// What the overlay of a guest that runs works in.
pub fn work(folder: &Path) -> PathBuf {
    folder.join("olwork")
}

/// LXC's log of the guest.
pub fn log(folder: &Path) -> PathBuf {
    folder.join("lxc.log")
}

/// Mounts the guest's root. What goes wrong is told where LXC tells its own errors.
pub fn prepare(host: &Host, name: &str) -> io::Result<()> {
    let name: GuestName = name.parse().map_err(io::Error::other)?;
    let prepared = mount(host, &name);
    if let Err(failure) = &prepared {
        let text = failure.in_full();
        let mut log = OpenOptions::new().append(true).create(true).open(log(&host.lxc_guest(&name)))?;
        writeln!(log, "corpus-agent {name} ERROR {text}")?;
    }
    prepared.map_err(io::Error::other)
}

fn mount(host: &Host, name: &GuestName) -> Result<(), Failure> {
    let made = require(host, name)?;
    let folder = host.lxc_guest(name);
    let (Some(ids), place) = (made.ids, place(&folder)) else {
        return Err(Failure::Invalid(format!("{name} is privileged: LXC mounts its root itself")));
    };
    require_own_mounts()?;
    // It is there already when the guest reboots itself.
    if is_mounted(&place)? { Ok(()) } else { open(host, name, &made, ids)?.attach(&place) }
}

fn open(host: &Host, name: &GuestName, made: &Made, ids: IdRange) -> Result<GuestRoot, Failure> {
    let folder = host.lxc_guest(name);
    if made.backing == Backing::Loop {
        let task = Task { host, cancel: &Cancel::default(), events: &|_| {} };
        return disk::open_to_start(&task, &disk::file(&folder))?.shifted(ids);
    }
    let image = host.image(&made.image).join("rootfs");
    GuestRoot::overlay(&image, &upper(host, name), &work(&folder), Durable::Yes, Some(ids))
}

/// An LXC that does not know `lxc.monitor.unshare` would leave our mounts on the node.
fn require_own_mounts() -> Result<(), Failure> {
    let mounts = |process: &str| {
        let path = format!("/proc/{process}/ns/mnt");
        fs::read_link(&path).at("read", path)
    };
    if mounts("self")? == mounts("1")? {
        return Err(Failure::Invalid("LXC gave its monitor no mounts of its own; LXC 4.0 or later is needed".into()));
    }
    Ok(())
}

/// Whether something is mounted there, as this process sees it.
fn is_mounted(place: &Path) -> Result<bool, Failure> {
    let path = Path::new("/proc/self/mountinfo");
    let mounts = fs::read_to_string(path).at("read", path)?;
    Ok(mounts.lines().any(|line| line.split(' ').nth(4).map(Path::new) == Some(place)))
}
