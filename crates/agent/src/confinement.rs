//! What holds guests on this host, tried or read, never taken for granted.
//!
//! A guest's root is hostile. What keeps it in are parts of the host's kernel that may be missing,
//! and a guest that is started without one looks the same from outside. So each is told as a fact,
//! with the reason where it is not in force; and a host that lacks what an unprivileged guest is
//! made of is no node.

use corpus_domain::{IdRange, Safeguard};
use corpus_protocol::SafeguardFact;

use crate::failure::Failure;
use crate::files;
use crate::guest_root::view;
use crate::host::Host;
use crate::users;

/// Each safeguard of unprivileged guests, and whether it is in force.
pub fn facts(host: &Host) -> Vec<SafeguardFact> {
    let fact = |safeguard, held: Result<String, String>| {
        let in_force = held.is_ok();
        SafeguardFact { safeguard, in_force, detail: held.unwrap_or_else(|reason| reason) }
    };
    vec![
        fact(Safeguard::Ids, ids(host)),
        fact(Safeguard::SystemCalls, system_calls(host)),
        fact(Safeguard::AppArmor, apparmor(host)),
        fact(Safeguard::ControlGroups, control_groups(host)),
    ]
}

/// Fails unless unprivileged guests can be made here.
pub fn require(host: &Host) -> Result<(), Failure> {
    let missing = |what: &str, reason: String| {
        Failure::Missing(format!("{what}: {reason}. Guests are never made without; give the host Debian 12's kernel"))
    };
    ids(host).map_err(|reason| missing("guests can't have ids of their own here", reason))?;
    system_calls(host).map_err(|reason| missing("guests can't be kept from system calls here", reason)).map(drop)
}

/// Tried with the folder that guests' images are in.
fn ids(host: &Host) -> Result<String, String> {
    let ids = IdRange::all().next().ok_or("there are no ids")?;
    let root_missing = !rustix::process::geteuid().is_root();
    if root_missing {
        return Err("only root can try it, and the agent is not".to_owned());
    }
    users::namespace(ids).map_err(|failure| failure.in_full())?;
    let folder = [host.corpus(), host.path("/var/lib")].into_iter().find(|folder| folder.is_dir());
    let folder = folder.ok_or("the host has no /var/lib")?;
    view(&folder, Some(ids)).map_err(|failure| failure.in_full())?;
    Ok(format!("{} ids a guest, by a user namespace and mounts that map them", IdRange::LEN))
}

fn system_calls(host: &Host) -> Result<String, String> {
    let actions = files::read(&host.path("/proc/sys/kernel/seccomp/actions_avail")).ok().flatten();
    match actions {
        Some(actions) if actions.split_whitespace().any(|action| action == "errno") => {
            Ok("a list of system calls that guests don't have".to_owned())
        }
        _ => Err("the kernel has no seccomp filters".to_owned()),
    }
}

/// Whether the kernel has it in force; then no guest is started without a profile.
pub fn has_apparmor(host: &Host) -> bool {
    let enabled = files::read(&host.path("/sys/module/apparmor/parameters/enabled")).ok().flatten();
    enabled.is_some_and(|enabled| enabled.trim() == "Y")
}

fn apparmor(host: &Host) -> Result<String, String> {
    if !has_apparmor(host) {
        return Err("the kernel has none, or it is switched off".to_owned());
    }
    if !host.path("/sys/kernel/security/apparmor/profiles").exists() {
        return Err("the kernel has it, but shows no profiles (is securityfs mounted?): guests can't start".to_owned());
    }
    let parser = ["/usr/sbin/apparmor_parser", "/sbin/apparmor_parser"];
    if !parser.iter().any(|path| host.path(path).exists()) {
        return Err("the kernel has it, but apparmor_parser is not installed: guests can't start".to_owned());
    }
    Ok("a profile that LXC makes for each guest".to_owned())
}

fn control_groups(host: &Host) -> Result<String, String> {
    if host.path("/sys/fs/cgroup/cgroup.controllers").exists() {
        return Ok("version 2".to_owned());
    }
    let held = ["memory", "cpu", "pids", "devices"];
    let missing: Vec<&str> =
        held.into_iter().filter(|one| !host.path(format!("/sys/fs/cgroup/{one}")).is_dir()).collect();
    if missing.is_empty() {
        return Ok("version 1".to_owned());
    }
    Err(format!("the host has none for {}", missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        for (path, text) in files {
            files::write(&host.path(path), text, 0o644).unwrap();
        }
        (folder, host)
    }

    #[test]
    fn what_is_missing_is_said() {
        let (_folder, host) = host(&[]);
        let facts = facts(&host);
        assert_eq!(facts.len(), Safeguard::ALL.len());
        assert!(facts.iter().all(|fact| !fact.in_force && !fact.detail.is_empty()), "{facts:?}");
        let error = require(&host).unwrap_err().to_string();
        assert!(error.contains("never made without"), "{error}");
    }

    #[test]
    fn apparmor_is_in_force_only_whole() {
        let enabled = ("/sys/module/apparmor/parameters/enabled", "Y\n");
        let shown = ("/sys/kernel/security/apparmor/profiles", "");
        let parser = ("/usr/sbin/apparmor_parser", "");
        let (_folder, off) = host(&[("/sys/module/apparmor/parameters/enabled", "N\n"), shown, parser]);
        assert!(!has_apparmor(&off) && apparmor(&off).is_err());
        for lacking in [vec![enabled], vec![enabled, shown], vec![enabled, parser]] {
            let (_folder, half) = host(&lacking);
            // The profile is asked for all the same, so that the start fails.
            assert!(has_apparmor(&half) && apparmor(&half).unwrap_err().contains("can't start"));
        }
        let (_folder, whole) = host(&[enabled, shown, parser]);
        assert!(apparmor(&whole).is_ok());
    }

    #[test]
    fn control_groups_of_either_version() {
        let (_folder, two) = host(&[("/sys/fs/cgroup/cgroup.controllers", "memory")]);
        assert_eq!(control_groups(&two).as_deref(), Ok("version 2"));
        let (_folder, one) = host(&[("/sys/fs/cgroup/memory/x", ""), ("/sys/fs/cgroup/cpu/x", "")]);
        assert_eq!(control_groups(&one), Err("the host has none for pids, devices".to_owned()));
    }
}
