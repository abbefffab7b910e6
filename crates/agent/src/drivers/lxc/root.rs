//! The root of a guest that is no plain folder, mounted before LXC starts it.
//!
//! LXC maps the ids of plain folders only, and knows nothing of how we keep a guest's files. So the guest's backing
//! mounts its root, with the guest's ids, and LXC gets the result as a folder. LXC calls us for that ([`WORD`]) whenever it starts the guest, also
//! when the node boots, from a process with mounts of its own: the node has no mount of ours, and
//! the kernel takes this one away with the guest's last process, however that ends.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use corpus_domain::GuestName;

use super::require;
use crate::backings;
use crate::failure::{At, Failure};
use crate::host::Host;
use crate::task::{Cancel, Task};

/// The word with which LXC starts the agent for this.
pub const WORD: &str = "lxc-root";

/// Where the guest's root is mounted.
pub fn place(folder: &Path) -> PathBuf {
    folder.join("root")
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
    let store = made.store(host, name);
    let place = place(&store.folder);
    require_own_mounts()?;
    // It is there already when the guest reboots itself.
    if is_mounted(&place)? {
        return Ok(());
    }
    fs::create_dir_all(&place).at("make", &place)?;
    let task = Task { host, cancel: &Cancel::default(), events: &|_| {} };
    backings::of(made.backing)?.mount(&task, &store)?.attach(&place)
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
