//! Gives the host back: nothing of ours is left but the agent's own file.

use std::fs;

use super::apply::applied;
use super::live::inactive_units;
use super::{UNITS, firewalld, mail, reserved, resolver, traffic, unit_path, units};
use crate::backings;
use crate::baseline;
use crate::drivers;
use crate::drivers::lxc::views;
use crate::failure::Failure;
use crate::files;
use crate::packages;
use crate::runner::Argv;
use crate::subids;
use crate::task::Task;

/// Units, bridge, firewall, proxy, images and records are gone. Refused while a guest exists.
pub fn remove(task: &Task<'_>) -> Result<bool, Failure> {
    let guests = drivers::readings(task.host);
    if let Some(first) = guests.first() {
        return Err(Failure::Invalid(format!(
            "{} guests are on the node, {} for one; destroy them first",
            guests.len(),
            first.name
        )));
    }
    let bridge = applied(task.host)?.map(|plan| plan.bridge);
    let mut changed = mail::remove(task)?;
    changed |= stop_those_without_a_file(task)?;
    let units: Vec<&str> = UNITS.into_iter().filter(|unit| unit_path(task.host, unit).exists()).collect();
    if !units.is_empty() {
        Argv::new("systemctl").args(["disable", "--now", "--quiet"]).args(units.iter().rev()).quiet().run(task)?;
    }
    changed |= !units.is_empty();
    for unit in units {
        changed |= files::remove(&unit_path(task.host, unit))?;
    }
    if changed {
        Argv::new("systemctl").arg("daemon-reload").run(task)?;
    }
    changed |= remove_leftovers(task, bridge.as_deref())?;
    changed |= files::remove_folder(&task.host.configuration())?;
    changed |= files::remove(&resolver::path(task.host))?;
    changed |= traffic::remove(task.host)?;
    changed |= firewalld::remove(task)?;
    changed |= reserved::remove(task.host)?;
    changed |= packages::forget_disks(task.host)?;
    changed |= views::remove(task)?;
    changed |= drivers::remove_tools(task.host)?;
    changed |= subids::free(task.host)?;
    changed |= backings::forget_images(task, None)?;
    changed |= baseline::remove(task.host)?;
    for folder in ["images", "upload"] {
        changed |= files::remove_folder(&task.host.corpus().join(folder))?;
    }
    // This very request made these again, so they don't tell whether there was anything to do.
    for folder in ["jobs", "locks"] {
        files::remove_folder(&task.host.corpus().join(folder))?;
    }
    Ok(changed)
}

/// A unit whose start was cut short starts all the same, since that is systemd's own work; its
/// file may be gone by then. systemd still knows how to stop it.
fn stop_those_without_a_file(task: &Task<'_>) -> Result<bool, Failure> {
    let inactive = inactive_units(task)?;
    let stray =
        units(task.host).into_iter().filter(|unit| !unit_path(task.host, unit).exists() && !inactive.contains(unit));
    let stray: Vec<&str> = stray.collect();
    if !stray.is_empty() {
        Argv::new("systemctl").args(["stop", "--quiet"]).args(stray.iter().rev()).quiet().run(task)?;
    }
    Ok(!stray.is_empty())
}

/// What the units' own stop lines should have removed.
fn remove_leftovers(task: &Task<'_>, bridge: Option<&str>) -> Result<bool, Failure> {
    let mut found = false;
    if let Some(bridge) = bridge
        && fs::exists(task.host.path(format!("/sys/class/net/{bridge}"))).unwrap_or(false)
    {
        Argv::new("ip").args(["link", "delete", "dev", bridge]).run(task)?;
        found = true;
    }
    for family in ["inet", "bridge"] {
        let (status, _) = Argv::new("nft").args(["delete", "table", family, "corpus"]).quiet().end(task)?;
        found |= status.success();
    }
    Ok(found)
}
