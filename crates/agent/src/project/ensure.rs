//! `EnsureProject`: everything that a project needs on its guest is there, and nothing is deployed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use corpus_protocol::ProjectPlan;

use crate::failure::{At, Failure};
use crate::files;
use crate::project::configuration::Configuration;
use crate::project::layout::Layout;
use crate::project::{account, git, identity, order, salt, saved};
use crate::runner::Argv;
use crate::task::Task;

const AT_BOOT: &str = "/etc/systemd/system/corpus-projects.service";
const WANTED: &str = "/etc/systemd/system/multi-user.target.wants/corpus-projects.service";

/// What runs a deployment. What it started goes with it when it is killed, and then it is
/// started again; a process of it that the kernel kills for memory does not end it.
const UNIT: &str = "\
[Unit]
Description=Corpus deployment %I
Documentation=man:systemd.unit(5)
After=network.target
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=exec
ExecStart=/usr/local/bin/corpus-agent project run %i
Restart=on-failure
RestartForceExitStatus=SIGTERM SIGINT SIGHUP
RestartSec=500ms
TimeoutStopSec=5
OOMPolicy=continue
";

/// What looks after deployments that the guest's end interrupted.
const UNIT_AT_BOOT: &str = "\
[Unit]
Description=Corpus deployments that were interrupted
After=network.target

[Service]
Type=oneshot
ExecStart=/usr/local/bin/corpus-agent project resume

[Install]
WantedBy=multi-user.target
";

/// The project is here as planned; tells whether anything was changed.
pub fn ensure(layout: &Layout, plan: &ProjectPlan, task: &Task<'_>) -> Result<bool, Failure> {
    let first = !layout.plan().exists();
    let mut changed = layout_of(layout, task)?;
    changed |= agent(layout, task)?;
    changed |= git::install(layout, task)?;
    if let Some(bundle) = &plan.salt {
        changed |= salt::ensure(bundle, task)?;
    }
    if saved::read::<ProjectPlan>(&layout.plan()).ok().flatten().as_ref() != Some(plan) {
        saved::write(&layout.plan(), plan)?;
        changed = true;
    }
    if first {
        // Recipes of others may rely on it as soon as the project is there.
        saved::write(&layout.configuration(), Configuration::load(layout, plan)?.values())?;
    }
    Ok(changed)
}

/// What the sync phase brings up to date: all but the agent, which runs, and the plan.
pub fn layout(layout: &Layout, plan: &ProjectPlan, task: &Task<'_>) -> Result<bool, Failure> {
    let mut changed = layout_of(layout, task)?;
    changed |= git::install(layout, task)?;
    if let Some(bundle) = &plan.salt {
        changed |= salt::ensure(bundle, task)?;
    }
    Ok(changed)
}

fn layout_of(layout: &Layout, task: &Task<'_>) -> Result<bool, Failure> {
    let mut changed = account::ensure(task, layout.project(), &layout.home())?;
    let (user, group) = account::ids(&account::name(layout.project()))?;
    changed |= folder(&layout.home(), 0, group, 0o755, true)?;
    changed |= identity::ensure(layout, (user, group), task)?;
    // What these belong to, once they are there, is the project's own matter.
    changed |= folder(&layout.tree(), user, group, 0o755, false)?;
    changed |= folder(&layout.data(), user, group, 0o755, false)?;
    changed |= folder(&layout.pillar(), 0, group, 0o750, true)?;
    for secret in [layout.archives(), layout.deployments()] {
        changed |= folder(&secret, 0, 0, 0o700, true)?;
    }
    Ok(changed)
}

fn folder(path: &Path, user: u32, group: u32, mode: u32, always: bool) -> Result<bool, Failure> {
    let is_new = !path.is_dir();
    if is_new {
        fs::create_dir_all(path).at("make", path)?;
    }
    let about = fs::symlink_metadata(path).at("look at", path)?;
    if !about.is_dir() {
        return Err(Failure::Invalid(format!("{} is no folder", path.display())));
    }
    let as_planned = (about.uid(), about.gid(), about.mode() & 0o7777) == (user, group, mode);
    if as_planned || !(is_new || always) {
        return Ok(false);
    }
    chown(path, Some(user), Some(group)).at("change the owner of", path)?;
    fs::set_permissions(path, Permissions::from_mode(mode)).at("change the mode of", path)?;
    Ok(true)
}

/// This very binary is where units and hooks look for it, and the units are known to systemd.
fn agent(layout: &Layout, task: &Task<'_>) -> Result<bool, Failure> {
    if !layout.is_standard() {
        return Ok(false);
    }
    let own = Path::new("/proc/self/exe");
    let installed = Path::new(order::AGENT);
    let mut changed = false;
    let bytes = fs::read(own).at("read", own)?;
    if fs::read(installed).ok().as_ref() != Some(&bytes) {
        let beside = installed.with_extension("new");
        fs::write(&beside, &bytes).at("write", &beside)?;
        fs::set_permissions(&beside, Permissions::from_mode(0o755)).at("change the mode of", &beside)?;
        fs::rename(&beside, installed).at("write", installed)?;
        changed = true;
    }
    let mut units = files::ensure(Path::new(order::UNIT), UNIT, 0o644)?;
    units |= files::ensure(Path::new(AT_BOOT), UNIT_AT_BOOT, 0o644)?;
    if !Path::new(WANTED).exists() {
        fs::create_dir_all(Path::new(WANTED).parent().unwrap_or(Path::new("/"))).at("make", WANTED)?;
        let _ = files::remove(Path::new(WANTED))?;
        symlink(AT_BOOT, WANTED).at("make", WANTED)?;
        units = true;
    }
    if units && Path::new(order::SYSTEMD).exists() {
        Argv::new("systemctl").arg("daemon-reload").run(task)?;
    }
    Ok(changed || units)
}

/// The units are gone: no project is left.
pub fn remove_units(task: &Task<'_>) -> Result<(), Failure> {
    for unit in [WANTED, AT_BOOT, order::UNIT] {
        files::remove(Path::new(unit))?;
    }
    if Path::new(order::SYSTEMD).exists() {
        Argv::new("systemctl").arg("daemon-reload").run(task)?;
    }
    Ok(())
}
