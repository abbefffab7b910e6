//! The host's packages: what the driver, the network and the proxy need is installed.

use std::time::Duration;

use corpus_domain::Driver;

use crate::facts::{listeners, package_versions, require_no_other_firewall};
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::runner::{Argv, Output};
use crate::subids;
use crate::task::Task;
use crate::{confinement, drivers, node};

const INSTALL: Duration = Duration::from_mins(15);
/// openssl makes the proxy's first certificate.
const NODE: [&str; 9] = ["haproxy", "nftables", "iproute2", "procps", "openssl", "tar", "zstd", "systemd", RESOLVER];
const RESOLVER: &str = "unbound";
/// What comes with it would listen on port 53, or become the host's own resolver.
const RESOLVER_UNITS: [&str; 2] = ["unbound.service", "unbound-resolvconf.service"];
/// What makes the profiles of guests, where the kernel has AppArmor.
const APPARMOR: [&str; 1] = ["apparmor"];
/// What only guests with a disk of their own need.
const DISKS: [&str; 1] = ["btrfs-progs"];
/// What only guests on logical volumes need beside.
const LVM: [&str; 2] = ["lvm2", "thin-provisioning-tools"];
/// What sets the limits of projects, and says what belongs to one.
const QUOTA: [&str; 2] = ["quota", "e2fsprogs"];
/// And on volumes of ZFS. Its module was built by whoever loaded it.
const ZFS: [&str; 1] = ["zfsutils-linux"];
/// LXC mounts what the kernel knows already, also when the node boots.
const MODULES: &str = "/etc/modules-load.d/corpus.conf";

/// Everything is installed, and nothing of the host stands in the way.
pub fn ensure(task: &Task<'_>, driver: Driver) -> Result<bool, Failure> {
    let driver = drivers::of(driver)?;
    confinement::require(task.host)?;
    require_no_other_firewall(task.host)?;
    require_free_ports(task.host)?;
    let ports = node::reserve_ports(task)?;
    let profiles = if confinement::has_apparmor(task.host) { APPARMOR.as_slice() } else { &[] };
    let missing = missing(task.host, driver.packages().iter().chain(&NODE).chain(profiles))?;
    if !missing.is_empty() {
        let brings_resolver = missing.contains(&RESOLVER);
        if brings_resolver {
            Argv::new("systemctl").args(["mask", "--runtime", "--quiet"]).args(RESOLVER_UNITS).run(task)?;
        }
        install(task, &missing)?;
    }
    keep_resolver_off(task)?;
    let settled = driver.settle(task, &missing)?;
    let reserved = subids::reserve(task.host)?;
    node::await_ports(task)?;
    Ok(ports || settled || reserved || !missing.is_empty())
}

/// The same for guests with a disk of their own.
pub fn ensure_disks(task: &Task<'_>) -> Result<(), Failure> {
    let missing = missing(task.host, DISKS.iter())?;
    if !missing.is_empty() {
        install(task, &missing)?;
    }
    files::ensure(&task.host.path(MODULES), "btrfs\n", 0o644).map(drop)
}

/// The same for guests on logical volumes.
pub fn ensure_lvm(task: &Task<'_>) -> Result<(), Failure> {
    let missing = missing(task.host, LVM.iter())?;
    if !missing.is_empty() {
        install(task, &missing)?;
    }
    ensure_disks(task)
}

/// The same for guests on volumes of ZFS.
pub fn ensure_zfs(task: &Task<'_>) -> Result<(), Failure> {
    let missing = missing(task.host, ZFS.iter())?;
    if !missing.is_empty() {
        install(task, &missing)?;
    }
    ensure_disks(task)
}

/// The same for guests whose host counts what they take.
pub fn ensure_quota(task: &Task<'_>) -> Result<(), Failure> {
    let missing = missing(task.host, QUOTA.iter())?;
    if missing.is_empty() { Ok(()) } else { install(task, &missing) }
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
        let missing = || missing(&host, NODE.iter());
        assert!(missing().is_err());
        let entry = |name| format!("Package: {name}\nStatus: install ok installed\nVersion: 1\n\n");
        let status: String = NODE.iter().filter(|name| **name != "haproxy").map(entry).collect();
        files::write(&host.path("/var/lib/dpkg/status"), &status, 0o644).unwrap();
        assert_eq!(missing().unwrap(), ["haproxy"]);
    }
}
