//! What a host needs for LXC, and what Debian's packages of it bring that is ours to do.

use std::path::Path;

use super::views;
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

/// It makes guests see themselves.
const VIEWS: &str = "lxcfs";
pub const PACKAGES: &[&str] = &["lxc", "debootstrap", VIEWS];
const NET: &str = "/etc/default/lxc-net";
const NO_NET: &str = "# Written by corpus-agent: Corpus has a bridge of its own.\nUSE_LXC_BRIDGE=\"false\"\n";

/// What was just installed does what it is for, and nothing else.
pub fn settle(task: &Task<'_>, installed: &[&str]) -> Result<bool, Failure> {
    if installed.contains(&VIEWS) {
        views::stop_packaged(task)?;
    }
    let served = views::ensure(task)?;
    Ok(stop_net(task)? || served)
}

/// Debian's own bridge for LXC is off, unless containers that are not ours live on it.
fn stop_net(task: &Task<'_>) -> Result<bool, Failure> {
    let changed = !has_foreign_containers(task.host)? && files::ensure(&task.host.path(NET), NO_NET, 0o644)?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
