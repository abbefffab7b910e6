//! A guest that stands still for a while: its processes are frozen, and what they wrote is on disk.
//!
//! An agent may be killed meanwhile, and a guest must not stay frozen for that. So before it is frozen, a unit of systemd
//! begins to wait for a lock that we hold, and sees to it that the guest goes on as soon as it is let go of, by us or by
//! our end.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::GuestName;
use rustix::fs::{FlockOperation, flock};

use super::{state, tools};
use crate::failure::{At, Failure};
use crate::guest_root::GuestRoot;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::{Cancel, Task};

/// The word with which the unit starts the agent.
pub const WORD: &str = "lxc-thaw";
/// How long we see to it ourselves.
const OURS: Duration = Duration::from_secs(30);
/// How long the unit does: a process that waits for a disk can neither be frozen nor thawed.
const OF_UNIT: Duration = Duration::from_hours(1);
const PAUSE: Duration = Duration::from_millis(100);

/// Freezes the guest, if it runs, for as long as `work` takes.
pub fn hold(task: &Task<'_>, name: &GuestName, work: &mut dyn FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let Some(init) = state::init(task.host, name) else { return work() };
    tools::ensure(task.host)?;
    // Nobody else of the host may hold it.
    let path = task.host.lxc_guest(name).join("still");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).at("open", &path)?;
    flock(&file, FlockOperation::LockExclusive).at("lock", &path)?;
    let unit = Argv::new("systemd-run").args(["--quiet", "--collect", "--no-block", "flock", "--"]).arg(&path);
    unit.arg(tools::agent(task.host)).args([WORD, name.as_str()]).run(task)?;
    let done = lxc("lxc-freeze", name).run(task).and_then(|_| {
        GuestRoot::of_process(init)?.sync()?;
        work()
    });
    let thawed = thaw(task.host, name, OURS);
    drop(file);
    done.and(thawed)
}

/// What the unit does.
pub fn go_on(host: &Host, name: &str) -> io::Result<()> {
    let name: GuestName = name.parse().map_err(io::Error::other)?;
    thaw(host, &name, OF_UNIT).map_err(|failure| io::Error::other(failure.in_full()))
}

/// The guest goes on, also when the request was cancelled. LXC thaws nothing but what it has frozen to the end: where
/// freezing or thawing was cut, it has to freeze once more first.
fn thaw(host: &Host, name: &GuestName, limit: Duration) -> Result<(), Failure> {
    let task = Task { host, cancel: &Cancel::default(), events: &|_| {} };
    let until = Instant::now() + limit;
    loop {
        let said = lxc("lxc-info", name).args(["-s", "-H"]).quiet().run(&task)?.stdout;
        let done = match said.trim() {
            "FROZEN" => lxc("lxc-unfreeze", name).quiet().run(&task),
            "FREEZING" | "THAWED" => lxc("lxc-freeze", name).quiet().run(&task),
            _ => return Ok(()),
        };
        if Instant::now() >= until {
            return done.and(Err(Failure::TimedOut { program: "lxc-unfreeze", limit, tail: Vec::new() }));
        }
        if done.is_err() {
            sleep(PAUSE);
        }
    }
}

fn lxc(program: &'static str, name: &GuestName) -> Argv {
    Argv::new(program).args(["-n", name.as_str()])
}
