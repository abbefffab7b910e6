//! What LXC reads and starts for every unprivileged guest, at places that its configuration names.
//!
//! The agent's own file changes its name with every release, and a guest that starts when its node
//! boots needs the agent before any controller has called: so the agent lies once more in
//! `/var/lib/corpus/lxc`, as another name of the same file. Whatever makes or starts a guest, or
//! brings the node's plan, looks that it is the agent that runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{seccomp, state};
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;

const SELF: &str = "/proc/self/exe";
/// Where the agent lies for LXC and systemd.
pub const AGENT: &str = "/var/lib/corpus/lxc/agent";

/// The agent, as LXC starts it.
pub fn agent(host: &Host) -> PathBuf {
    host.lxc_tools().join("agent")
}

/// The system calls that guests don't have.
pub fn system_calls(host: &Host) -> PathBuf {
    host.lxc_tools().join("guest.seccomp")
}

/// They are there, and are of this agent.
pub fn ensure(host: &Host) -> Result<(), Failure> {
    files::ensure(&system_calls(host), &seccomp::profile(), 0o644)?;
    let (agent, own) = (agent(host), Path::new(SELF));
    let id = |path: &Path| fs::metadata(path).map(|stat| (stat.dev(), stat.ino()));
    if id(&agent).ok() == Some(id(own).at("look at", own)?) {
        return Ok(());
    }
    // Requests of several guests may do so at once.
    let beside = agent.with_file_name(format!(".agent-{:?}", std::thread::current().id()));
    files::remove(&beside)?;
    // Its own file may be on another disk, or gone already.
    fs::read_link(own)
        .and_then(|file| fs::hard_link(file, &beside))
        .or_else(|_| fs::copy(own, &beside).map(drop))
        .and_then(|()| fs::rename(&beside, &agent))
        .at("make", &agent)
}

/// They are gone, and what guests leave of control groups.
pub fn remove(host: &Host) -> Result<bool, Failure> {
    state::sweep_all();
    files::remove_folder(&host.lxc_tools())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_agent_is_replaced_by_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        files::write(&agent(&host), "older", 0o755).unwrap();
        ensure(&host).unwrap();
        ensure(&host).unwrap();
        assert_eq!(fs::metadata(agent(&host)).unwrap().len(), fs::metadata(SELF).unwrap().len());
        assert_eq!(fs::read_dir(host.lxc_tools()).unwrap().count(), 2);
        assert!(remove(&host).unwrap() && !remove(&host).unwrap());
    }
}
