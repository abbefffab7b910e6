//! The host's packages: what the driver, the network and the proxy need is installed.

use std::path::Path;
use std::time::Duration;

use corpus_domain::Driver;

use crate::drivers::lxc::views;
use crate::facts::{listeners, package_versions, require_no_other_firewall};
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::runner::{Argv, Output};
use crate::subids;
use crate::task::Task;
use crate::{confinement, drivers};

const INSTALL: Duration = Duration::from_mins(15);
/// openssl makes the proxy's first certificate.
const NODE: [&str; 9] = ["haproxy", "nftables", "iproute2", "procps", "openssl", "tar", "zstd", "systemd", RESOLVER];
const RESOLVER: &str = "unbound";
/// What comes with it would listen on port 53, or become the host's own resolver.
const RESOLVER_UNITS: [&str; 2] = ["unbound.service", "unbound-resolvconf.service"];
const LXC: [&str; 3] = ["lxc", "debootstrap", VIEWS];
/// It makes guests see themselves.
const VIEWS: &str = "lxcfs";
/// What makes the profiles of guests, where the kernel has AppArmor.
const APPARMOR: [&str; 1] = ["apparmor"];
/// What only guests with a disk of their own need.
const DISKS: [&str; 1] = ["btrfs-progs"];
/// LXC mounts what the kernel knows already, also when the node boots.
const MODULES: &str = "/etc/modules-load.d/corpus.conf";
const LXC_NET: &str = "/etc/default/lxc-net";
const NO_LXC_NET: &str = "# Written by corpus-agent: Corpus has a bridge of its own.\nUSE_LXC_BRIDGE=\"false\"\n";

/// Everything is installed, and nothing of the host stands in the way.
pub fn ensure(task: &Task<'_>, driver: Driver) -> Result<bool, Failure> {
    drivers::of(driver)?;
    confinement::require(task.host)?;
    require_no_other_firewall(task.host)?;
    require_free_ports(task.host)?;
    let profiles = if confinement::has_apparmor(task.host) { APPARMOR.as_slice() } else { &[] };
    let missing = missing(task.host, LXC.iter().chain(&NODE).chain(profiles))?;
    if !missing.is_empty() {
        let brings_resolver = missing.contains(&RESOLVER);
        if brings_resolver {
            Argv::new("systemctl").args(["mask", "--runtime", "--quiet"]).args(RESOLVER_UNITS).run(task)?;
        }
        install(task, &missing)?;
    }
    keep_resolver_off(task)?;
    if missing.contains(&VIEWS) {
        views::stop_packaged(task)?;
    }
    let served = views::ensure(task)?;
    let stopped = stop_lxc_net(task)?;
    let reserved = subids::reserve(task.host)?;
    Ok(served || stopped || reserved || !missing.is_empty())
}

/// The same for guests with a disk of their own.
pub fn ensure_disks(task: &Task<'_>) -> Result<(), Failure> {
    let missing = missing(task.host, DISKS.iter())?;
    if !missing.is_empty() {
        install(task, &missing)?;
    }
    files::ensure(&task.host.path(MODULES), "btrfs\n", 0o644).map(drop)
}

/// Takes back what [`ensure_disks`] wrote; packages stay.
pub fn forget_disks(host: &Host) -> Result<bool, Failure> {
    files::remove(&host.path(MODULES))
}

fn missing<'a>(host: &Host, wanted: impl Iterator<Item = &'a &'static str>) -> Result<Vec<&'static str>, Failure> {
    let path = host.path("/var/lib/dpkg/status");
    let status = files::read(&path)?
        .ok_or_else(|| Failure::Missing("the host has no dpkg; Debian 12 or later is needed".into()))?;
    let installed = package_versions(&status);
    Ok(wanted.copied().filter(|name| !installed.contains_key(name)).collect())
}

fn install(task: &Task<'_>, missing: &[&'static str]) -> Result<(), Failure> {
    task.note(format!("installing {}", missing.join(", ")));
    if apt(task, &["install", "--yes", "--no-install-recommends"], missing).is_ok() {
        return Ok(());
    }
    task.go_on()?;
    // The lists may be missing or old.
    let again =
        apt(task, &["update"], &[]).and_then(|_| apt(task, &["install", "--yes", "--no-install-recommends"], missing));
    match again {
        Err(Failure::Command { tail, .. }) => Err(Failure::Missing(format!(
            "{} can't be installed; give the host a package source it can reach, or install them by hand: {}",
            missing.join(", "),
            tail.join("\n")
        ))),
        other => other.map(|_| ()),
    }
}

fn apt(task: &Task<'_>, what: &[&str], packages: &[&str]) -> Result<Output, Failure> {
    let argv = Argv::new("apt-get").args(["-q", "-o", "DPkg::Lock::Timeout=60", "-o", "Acquire::Retries=1"]);
    argv.args(what).args(packages).env("DEBIAN_FRONTEND", "noninteractive").limit(INSTALL).run(task)
}

/// The resolver that came with the package never starts, also at the next boot; one that was there
/// before was not masked, and stays as it is.
fn keep_resolver_off(task: &Task<'_>) -> Result<(), Failure> {
    let [first, _] = RESOLVER_UNITS;
    if std::fs::symlink_metadata(task.host.path("/run/systemd/system").join(first)).is_err() {
        return Ok(());
    }
    let systemctl = |args: &[&str]| Argv::new("systemctl").args(args).args(RESOLVER_UNITS).quiet();
    systemctl(&["unmask", "--runtime", "--quiet"]).run(task)?;
    systemctl(&["disable", "--quiet"]).run(task).map(drop)
}

/// Debian's own bridge for LXC is off, unless containers that are not ours live on it.
fn stop_lxc_net(task: &Task<'_>) -> Result<bool, Failure> {
    let changed = !has_foreign_containers(task.host)? && files::ensure(&task.host.path(LXC_NET), NO_LXC_NET, 0o644)?;
    if changed {
        Argv::new("systemctl").args(["disable", "--now", "--quiet", "lxc-net.service"]).end(task)?;
    }
    Ok(changed)
}

fn has_foreign_containers(host: &Host) -> Result<bool, Failure> {
    let folder = host.lxc();
    if !folder.is_dir() {
        return Ok(false);
    }
    let entries = std::fs::read_dir(&folder).at("list", &folder)?;
    Ok(entries.flatten().any(|entry| is_foreign(&entry.path())))
}

fn is_foreign(folder: &Path) -> bool {
    files::read(&folder.join("config")).ok().flatten().is_some_and(|config| !config.starts_with("# corpus guest"))
}

/// Fails when something else than our proxy listens where it must.
pub fn require_free_ports(host: &Host) -> Result<(), Failure> {
    match listeners(host).iter().find(|listener| !listener.ours) {
        Some(taken) => Err(Failure::Invalid(format!(
            "port {} of the host is taken by another program; stop it (haproxy, nginx, apache?) so that the proxy can have it",
            taken.port
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_packages_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let missing = || missing(&host, LXC.iter().chain(&NODE));
        assert!(missing().is_err());
        let entry = |name| format!("Package: {name}\nStatus: install ok installed\nVersion: 1\n\n");
        let status: String = LXC.iter().chain(&NODE).filter(|name| **name != "haproxy").map(entry).collect();
        files::write(&host.path("/var/lib/dpkg/status"), &status, 0o644).unwrap();
        assert_eq!(missing().unwrap(), ["haproxy"]);
    }

    #[test]
    fn containers_of_others_keep_their_bridge() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        files::write(&host.lxc().join("a.b/config"), "# corpus guest\n", 0o644).unwrap();
        assert!(!has_foreign_containers(&host).unwrap());
        files::write(&host.lxc().join("mine/config"), "lxc.arch = x\n", 0o644).unwrap();
        assert!(has_foreign_containers(&host).unwrap());
    }
}
