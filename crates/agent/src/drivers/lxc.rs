//! Guests that are LXC containers.
//!
//! A guest is a folder `/var/lib/lxc/<name>` whose `config` we rendered; what has no marker of
//! ours is never touched. The folder is made under a hidden name and renamed when it is whole,
//! and renamed away before it is removed, so a cut in between leaves no half guest.

mod config;
mod folder;
mod host;
mod limits;
mod root;
mod seccomp;
mod state;
mod still;
mod tables;
mod tools;
mod usage;
pub mod views;

pub use self::limits::{WORD as LIMITS, hold};
pub use self::root::{WORD as PREPARE, prepare};
pub use self::still::{WORD as THAW, go_on};
pub use self::tools::{AGENT, ensure as ensure_tools, remove as remove_tools};

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{Bytes, Driver as Kind, GuestId, GuestName, GuestState, ImageName, Limits, LxcLine, SizeProfile};
use corpus_protocol::{AuthorizedKeys, GuestPlan, GuestPort, GuestReading, GuestSetup};

use self::config::Made;
pub use self::config::interface;
use self::limits::Held;
use super::{Driver, Kept};
use crate::backings;
use crate::failure::Failure;
use crate::files;
use crate::guest_root::GuestRoot;
use crate::host::Host;
use crate::node;
use crate::runner::Argv;
use crate::setup;
use crate::task::Task;

/// The driver.
pub struct Lxc;

const START: Duration = Duration::from_secs(30);
/// What lxc-stop gets beyond the guest's own time to shut down.
const STOP: Duration = Duration::from_secs(20);
/// How long the kernel may take to let go of a killed guest.
const GONE: Duration = Duration::from_secs(5);

impl Driver for Lxc {
    fn kind(&self) -> Kind {
        Kind::Lxc
    }

    fn packages(&self) -> &'static [&'static str] {
        host::PACKAGES
    }

    fn settle(&self, task: &Task<'_>, installed: &[&str]) -> Result<bool, Failure> {
        host::settle(task, installed)
    }

    fn has(&self, host: &Host, name: &GuestName) -> Result<bool, Failure> {
        made(host, name).map(|made| made.is_some())
    }

    fn ensure(&self, task: &Task<'_>, plan: &GuestPlan) -> Result<bool, Failure> {
        let wanted = config::render(task.host, plan)?;
        if let Some(made) = made(task.host, &plan.name)? {
            made.require_same_origin(plan)?;
            let grown = backings::of(made.backing)?.resize(task, &made.store(task.host, &plan.name), plan.size)?;
            return Ok(files::ensure(&config_path(task.host, &plan.name), &wanted, 0o644)? || grown);
        }
        require_unused(task.host, plan)?;
        tools::ensure(task.host)?;
        folder::make(task, plan, &wanted).map(|()| true)
    }

    fn set_up(&self, task: &Task<'_>, name: &GuestName, setup: &GuestSetup) -> Result<bool, Failure> {
        let changed = setup::apply(&root(task, name)?, setup)?;
        if changed.host_key && state::init(task.host, name).is_some() {
            let argv = Argv::new("lxc-attach").args(["-n", name.as_str(), "--clear-env", "--"]);
            argv.args(["/bin/systemctl", "--no-block", "try-reload-or-restart", "ssh.service"]).run(task)?;
        }
        Ok(changed.anything)
    }

    fn ensure_keys(&self, task: &Task<'_>, name: &GuestName, keys: &AuthorizedKeys) -> Result<bool, Failure> {
        setup::keys(&root(task, name)?, keys)
    }

    fn ensure_size(&self, task: &Task<'_>, name: &GuestName, size: SizeProfile, shrink: bool) -> Result<bool, Failure> {
        let made = require(task.host, name)?;
        let backing = backings::of(made.backing)?;
        let store = made.store(task.host, name);
        if !backing.has_size(task.host, &store.folder) {
            return Err(Failure::Invalid(format!("{name} is on {}, which has no size of its own", made.backing)));
        }
        let changed = if shrink { backing.shrink(task, &store, size) } else { backing.resize(task, &store, size) }?;
        let path = config_path(task.host, name);
        let config = files::read(&path)?.unwrap_or_default();
        Ok(files::ensure(&path, &config::resized(&config, size), 0o644)? || changed)
    }

    fn kept(&self, host: &Host, name: &GuestName) -> Result<Kept, Failure> {
        let made = require(host, name)?;
        let size = files::read(&config_path(host, name))?.as_deref().and_then(config::size);
        let size = size.ok_or_else(|| Failure::Invalid(format!("the configuration of {name} tells no size")))?;
        Ok(Kept { backing: backings::of(made.backing)?, store: made.store(host, name), size })
    }

    fn runs(&self, host: &Host, name: &GuestName) -> bool {
        state::init(host, name).is_some()
    }

    fn while_still(
        &self,
        task: &Task<'_>,
        name: &GuestName,
        work: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        still::hold(task, name, work)
    }

    fn ensure_limits(&self, task: &Task<'_>, name: &GuestName, limits: Limits) -> Result<bool, Failure> {
        require(task.host, name)?;
        let held = Held::of(task.host);
        let path = config_path(task.host, name);
        let config = files::read(&path)?.unwrap_or_default();
        let applied = state::init(task.host, name).is_some() && held.apply(&config, name, limits)?;
        Ok(files::ensure(&path, &held.limited(&config, name, limits), 0o644)? || applied)
    }

    fn ensure_settings(
        &self,
        task: &Task<'_>,
        name: &GuestName,
        autostart: bool,
        lines: &[LxcLine],
    ) -> Result<bool, Failure> {
        require(task.host, name)?;
        let path = config_path(task.host, name);
        let config = files::read(&path)?.unwrap_or_default();
        files::ensure(&path, &config::with_settings(&config, autostart, lines)?, 0o644)
    }

    fn ensure_running(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure> {
        require(task.host, name)?;
        if state::init(task.host, name).is_some() {
            return Ok(false);
        }
        // What a killed agent may have left attached, and a killed guest its groups.
        backings::release(task, &task.host.lxc_guest(name))?;
        state::sweep(name);
        tools::ensure(task.host)?;
        as_the_host_is_now(task.host, name)?;
        if let Some((bridge, port)) = port(task.host, name)? {
            node::admit(task, &bridge, &port)?;
        }
        start(task, name)?;
        Ok(true)
    }

    fn ensure_stopped(&self, task: &Task<'_>, name: &GuestName, grace: Duration) -> Result<bool, Failure> {
        if made(task.host, name)?.is_none() || state::init(task.host, name).is_none() {
            return Ok(false);
        }
        stop(task, name, grace)?;
        Ok(true)
    }

    fn ensure_not_at_boot(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure> {
        require(task.host, name)?;
        let path = config_path(task.host, name);
        let config = files::read(&path)?.unwrap_or_default();
        files::ensure(&path, &config::not_at_boot(&config), 0o644)
    }

    fn id(&self, host: &Host, name: &GuestName) -> Result<Option<GuestId>, Failure> {
        made(host, name).map(|made| made.and_then(|made| made.id))
    }

    fn ensure_none_begun(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure> {
        folder::remove_begun(task, name)
    }

    fn ensure_absent(&self, task: &Task<'_>, name: &GuestName) -> Result<bool, Failure> {
        if made(task.host, name)?.is_some() && state::init(task.host, name).is_some() {
            stop(task, name, Duration::ZERO)?;
        }
        if let Some((bridge, port)) = port(task.host, name)? {
            node::retract(task, &bridge, &port)?;
        }
        let removed = folder::remove(task, name)?;
        state::sweep(name);
        Ok(removed)
    }

    fn promised(&self, host: &Host) -> Bytes {
        let promised = folder::all(host).map(|folder| backings::promised(host, &folder));
        Bytes(promised.fold(0, u64::saturating_add))
    }

    fn readings(&self, host: &Host) -> Vec<GuestReading> {
        let names = folder::names(host);
        usage::forget_others(&names);
        names.iter().filter(|name| matches!(made(host, name), Ok(Some(_)))).map(|name| reading(host, name)).collect()
    }

    fn cables(&self, host: &Host) -> Vec<String> {
        let entries = fs::read_dir(host.path("/sys/class/net")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| config::is_interface(name)).collect()
    }

    fn foreign(&self, host: &Host) -> Vec<String> {
        let not_ours = |name: &String| match name.parse() {
            Ok(name) => matches!(made(host, &name), Err(Failure::Invalid(_))),
            Err(_) => true,
        };
        folder::containers(host).into_iter().filter(not_ours).collect()
    }

    fn not_held(&self, host: &Host) -> Vec<String> {
        Held::of(host).missing()
    }

    fn running_root(&self, host: &Host, name: &GuestName) -> Result<Option<GuestRoot>, Failure> {
        match made(host, name)? {
            Some(made) => state::init(host, name).map(|init| of_process(init, &made)).transpose(),
            None => Ok(None),
        }
    }

    fn uses_image(&self, host: &Host, image: &ImageName) -> bool {
        folder::names(host).iter().any(|name| matches!(made(host, name), Ok(Some(made)) if made.uses(image)))
    }
}

fn config_path(host: &Host, name: &GuestName) -> std::path::PathBuf {
    host.lxc_guest(name).join("config")
}

/// What the guest was made from, if it exists; a container that is not ours is an error.
fn made(host: &Host, name: &GuestName) -> Result<Option<Made>, Failure> {
    if !host.lxc_guest(name).exists() {
        return Ok(None);
    }
    let made = files::read(&config_path(host, name))?.as_deref().and_then(Made::read);
    made.map(Some).ok_or_else(|| {
        Failure::Invalid(format!(
            "there is a container {name} on the node that Corpus did not make; it stays untouched"
        ))
    })
}

/// The guest's port, and the bridge it is on; nothing when there is no guest.
fn port(host: &Host, name: &GuestName) -> Result<Option<(String, GuestPort)>, Failure> {
    Ok(files::read(&config_path(host, name))?.as_deref().and_then(|config| config::port(config, name)))
}

/// Two guests of one address would take each other's packets, and with the same ids be one user to the node. A controller
/// that was brought back from a backup may choose what a guest has that it does not know.
fn require_unused(host: &Host, plan: &GuestPlan) -> Result<(), Failure> {
    for other in folder::names(host) {
        let Ok(Some(made)) = made(host, &other) else { continue };
        let what = if port(host, &other)?.is_some_and(|(_, port)| port.ip == plan.net.ip) {
            format!("the address {}", plan.net.ip)
        } else if let Some(ids) = made.ids.filter(|ids| plan.ids == Some(*ids)) {
            format!("the ids from {ids}")
        } else {
            continue;
        };
        return Err(Failure::Invalid(format!(
            "the guest {other} on the node has {what}, and this controller does not know it"
        )));
    }
    Ok(())
}

fn require(host: &Host, name: &GuestName) -> Result<Made, Failure> {
    made(host, name)?.ok_or_else(|| Failure::Missing(format!("there is no guest {name} on the node")))
}

/// The guest's files: those that its processes see if it runs. Where the kernel maps the ids of
/// what is mounted in the guest itself, root may make nothing there: its backing has them once more.
fn root(task: &Task<'_>, name: &GuestName) -> Result<GuestRoot, Failure> {
    let made = require(task.host, name)?;
    let backing = backings::of(made.backing)?;
    match state::init(task.host, name) {
        Some(init) if !(backing.keeps_ids() && made.ids.is_some()) => of_process(init, &made),
        _ => backing.open(task, &made.store(task.host, name)),
    }
}

fn of_process(init: i32, made: &Made) -> Result<GuestRoot, Failure> {
    Ok(GuestRoot::of_process(init)?.with_ids(made.ids))
}

/// While several guests start at once on cgroup v1, LXC now and then finds a group gone that it has made itself a moment
/// before (seen in one of some hundred starts; why is not known): the guest's, or that of what watches it. Nothing runs then, and
/// the next try works.
fn start(task: &Task<'_>, name: &GuestName) -> Result<(), Failure> {
    match start_once(task, name) {
        Err(Failure::Command { tail, .. }) if is_group_gone(&tail) => {
            task.note(format!("LXC lost a control group of {name} while it started it; once more"));
            start_once(task, name)
        }
        started => started,
    }
}

fn is_group_gone(said: &[String]) -> bool {
    let says = |words: &[&str]| said.iter().any(|line| words.iter().all(|word| line.contains(word)));
    let lost = |who: &str, what: &str| says(&[who, "No such file or directory"]) && says(&[what]);
    lost("cgfsng_setup_limits", "Failed to setup cgroup limits")
        || lost("cgfsng_monitor_enter", "Failed to enter monitor cgroup")
}

fn start_once(task: &Task<'_>, name: &GuestName) -> Result<(), Failure> {
    let log = root::log(&task.host.lxc_guest(name));
    files::remove(&log)?;
    match Argv::new("lxc-start").args(["-n", name.as_str(), "-d"]).limit(START).run(task) {
        Ok(_) => Ok(()),
        Err(Failure::Command { program, status, tail }) => {
            Err(Failure::Command { program, status, tail: last_lines(&log).unwrap_or(tail) })
        }
        Err(other) => Err(other),
    }
}

/// The end of LXC's own log says more than what it prints.
fn last_lines(log: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(log).ok()?;
    let lines: Vec<String> = text.lines().filter(|line| line.contains("ERROR")).map(str::to_owned).collect();
    let skip = lines.len().saturating_sub(10);
    (!lines.is_empty()).then(|| lines.into_iter().skip(skip).collect())
}

fn stop(task: &Task<'_>, name: &GuestName, grace: Duration) -> Result<(), Failure> {
    let argv = Argv::new("lxc-stop").args(["-n", name.as_str()]).limit(grace + STOP);
    let argv = if grace.is_zero() { argv.arg("-k") } else { argv.arg("-t").arg(grace.as_secs().to_string()) };
    argv.run(task)?;
    let end = Instant::now() + GONE;
    while state::init(task.host, name).is_some() {
        if Instant::now() > end {
            return Err(Failure::TimedOut { program: "lxc-stop", limit: GONE, tail: vec![] });
        }
        sleep(Duration::from_millis(5));
    }
    backings::release(task, &task.host.lxc_guest(name))
}

/// What the configuration says that may change with the node: groups and AppArmor; and a kernel with
/// other controllers or fewer processors than it was rendered for would not start the guest.
fn as_the_host_is_now(host: &Host, name: &GuestName) -> Result<(), Failure> {
    let path = config_path(host, name);
    let mut config = config::refreshed(host, name, &files::read(&path)?.unwrap_or_default());
    if let Some(limits) = limits::of_config(&config) {
        config = Held::of(host).limited(&config, name, limits);
    }
    files::ensure(&path, &config, 0o644).map(drop)
}

fn reading(host: &Host, name: &GuestName) -> GuestReading {
    let init = state::init(host, name);
    let usage = init.map(|_| usage::of(host, name)).unwrap_or_default();
    GuestReading {
        name: name.clone(),
        state: if init.is_some() { GuestState::Running } else { GuestState::Stopped },
        uptime_s: init.and_then(state::uptime),
        memory_used: usage.memory,
        cpu_millis: usage.cpu_millis,
        processes: usage.processes,
        storage: backings::usage(host, &host.lxc_guest(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_lxc_lost_is_told_from_a_limit_that_the_kernel_refuses() {
        let said = |why: &str| {
            let set = format!("ERROR    cgfsng - ../src/lxc/cgroups/cgfsng.c:cgfsng_setup_limits_legacy:3165 - {why}");
            let setup = r#"ERROR    start - ../src/lxc/start.c:lxc_spawn:1795 - Failed to setup cgroup limits for container "a""#;
            [format!("{set} - Failed to set \"blkio.bfq.weight\" to \"50\""), setup.to_owned()]
        };
        assert!(is_group_gone(&said("No such file or directory")));
        assert!(!is_group_gone(&said("Invalid argument")));
        let watcher = |why: &str| {
            let enter = format!("ERROR    cgfsng - ../src/lxc/cgroups/cgfsng.c:cgfsng_monitor_enter:1539 - {why}");
            let start = "ERROR    start - ../src/lxc/start.c:__lxc_start:2054 - Failed to enter monitor cgroup";
            [format!("{enter} - Failed to enter cgroup 22"), start.to_owned()]
        };
        assert!(is_group_gone(&watcher("No such file or directory")));
        assert!(!is_group_gone(&watcher("Permission denied")));
        assert!(!is_group_gone(&["lxc-start: a: No such file or directory".to_owned()]));
    }
}
