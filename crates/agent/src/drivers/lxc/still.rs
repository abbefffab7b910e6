//! A guest that stands still for a while: its processes are frozen, and what they wrote is on disk.
//!
//! An agent may be killed meanwhile, and a guest must not stay frozen for that. So before it is frozen, a unit of systemd
//! begins to wait for a lock that we hold, and thaws the guest as soon as it is let go of, by us or by our end.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use corpus_domain::GuestName;
use rustix::fs::{FlockOperation, flock};

use super::state;
use crate::failure::{At, Failure};
use crate::guest_root::GuestRoot;
use crate::runner::Argv;
use crate::task::Task;

/// Freezes the guest, if it runs, for as long as `work` takes.
pub fn hold(task: &Task<'_>, name: &GuestName, work: &mut dyn FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let Some(init) = state::init(task.host, name) else { return work() };
    // Nobody else of the host may hold it.
    let path = task.host.lxc_guest(name).join("still");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).at("open", &path)?;
    flock(&file, FlockOperation::LockExclusive).at("lock", &path)?;
    let thaw = Argv::new("systemd-run").args(["--quiet", "--collect", "--no-block", "flock", "--"]).arg(&path);
    thaw.args(["lxc-unfreeze", "-n", name.as_str()]).run(task)?;
    let done = Argv::new("lxc-freeze").args(["-n", name.as_str()]).run(task).and_then(|_| {
        GuestRoot::of_process(init)?.sync()?;
        work()
    });
    drop(file);
    // The unit does the same at this moment; whoever comes second finds nothing to do.
    Argv::new("lxc-unfreeze").args(["-n", name.as_str()]).quiet().end(task)?;
    done
}
