//! Whether a container runs, without starting a process.
//!
//! LXC puts the processes of a container into a control group of each hierarchy (one on cgroup v2,
//! several on v1 and hybrid hosts). Left to itself it takes `lxc.payload.<name>`, or appends `-1`,
//! `-2`… when a leftover is in the way, which is the name of another guest's group: so each guest
//! has a folder of its own for its groups ([`Group`]), and leftovers go before it starts. A guest
//! that was started with an older configuration is found by LXC's own name, whole. The container's
//! init is the process in it that is number 1 in its own PID namespace, one below ours.

use std::fs;
use std::path::{Path, PathBuf};

use corpus_domain::GuestName;

use crate::host::Host;

const GROUPS: &str = "/sys/fs/cgroup";
/// The folder, in each hierarchy, with a folder for each guest.
const OURS: &str = "corpus";
const CONTAINER: &str = "lxc.cgroup.dir.container = ";
const MONITOR: &str = "lxc.cgroup.dir.monitor = ";
/// Where the groups of a container may be, with the one that is searched first in front.
const HIERARCHIES: [&str; 5] = ["systemd", "", "unified", "pids", "memory"];
/// Clock ticks a second in /proc, the same on every architecture that Debian runs on.
const TICKS: u64 = 100;
const MAX_DEPTH: u32 = 8;

/// The two control groups of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Of all its processes.
    Payload,
    /// Of LXC's own process that waits for its end.
    Monitor,
}

impl Group {
    const ALL: [Self; 2] = [Self::Payload, Self::Monitor];

    const fn word(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Monitor => "monitor",
        }
    }

    /// Its path in each hierarchy: no name of a guest has a slash, so none leads to another's.
    fn path(self, name: &GuestName) -> String {
        format!("{OURS}/{name}/{}", self.word())
    }

    /// Where LXC puts it by itself.
    fn by_lxc(self, name: &GuestName) -> String {
        format!("lxc.{}.{name}", self.word())
    }
}

/// The guest's init as the host numbers it, if the guest runs.
pub fn init(host: &Host, name: &GuestName) -> Option<i32> {
    let path = payload(host, name);
    let groups = HIERARCHIES.iter().map(|hierarchy| Path::new(GROUPS).join(hierarchy).join(&path));
    groups.into_iter().find_map(|group| find_init(&group, 0))
}

/// The path of the group of the guest's processes in each hierarchy.
fn payload(host: &Host, name: &GuestName) -> String {
    let config = fs::read_to_string(host.lxc_guest(name).join("config")).unwrap_or_default();
    let ours = Group::Payload.path(name);
    let is_ours = config.lines().any(|line| line.strip_prefix(CONTAINER) == Some(&ours));
    if is_ours { ours } else { Group::Payload.by_lxc(name) }
}

/// What the guest's configuration says of its control groups.
pub fn lines(name: &GuestName) -> [String; 2] {
    [format!("{CONTAINER}{}", Group::Payload.path(name)), format!("{MONITOR}{}", Group::Monitor.path(name))]
}

/// Whether LXC has begun to start the guest, or runs it: it then listens on a socket of this name.
pub fn is_begun(folder: &Path) -> bool {
    let socket = format!(" @{}/command", folder.display());
    fs::read_to_string("/proc/self/net/unix").is_ok_and(|list| list.lines().any(|line| line.ends_with(&socket)))
}

/// Seconds since that process started.
pub fn uptime(pid: i32) -> Option<u64> {
    let started = started_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let now: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some((std::time::Duration::try_from_secs_f64(now).ok()?.as_secs()).saturating_sub(started / TICKS))
}

/// Removes the empty control groups that a killed guest left behind.
pub fn sweep(name: &GuestName) {
    for hierarchy in hierarchies() {
        for path in Group::ALL.iter().flat_map(|kind| [kind.path(name), kind.by_lxc(name)]) {
            remove_empty(&Path::new(GROUPS).join(&hierarchy).join(path), 0);
        }
        let _ = fs::remove_dir(Path::new(GROUPS).join(&hierarchy).join(OURS).join(name.as_str()));
    }
}

/// Removes the folder of all guests' control groups, once the last guest is gone.
pub fn sweep_all() {
    for hierarchy in hierarchies() {
        let _ = fs::remove_dir(Path::new(GROUPS).join(hierarchy).join(OURS));
    }
}

fn hierarchies() -> impl Iterator<Item = String> {
    let hierarchies = fs::read_dir(GROUPS).into_iter().flatten().flatten();
    hierarchies.filter_map(|entry| entry.file_name().into_string().ok()).chain([String::new()])
}

fn find_init(group: &Path, depth: u32) -> Option<i32> {
    let pids = fs::read_to_string(group.join("cgroup.procs")).ok()?;
    let here = pids.lines().filter_map(|pid| pid.parse().ok()).find(|pid| is_init(*pid));
    here.or_else(|| {
        let mut children = folders(group);
        children.sort_by_key(|child| !child.ends_with("init.scope"));
        (depth < MAX_DEPTH).then(|| children.iter().find_map(|child| find_init(child, depth + 1)))?
    })
}

fn is_init(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| is_init_status(&status))
}

/// `NSpid` lists the process's number in each namespace, ours first.
fn is_init_status(status: &str) -> bool {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let alive = !status.lines().any(|line| line.starts_with("State:\tZ") || line.starts_with("State:\tX"));
    alive && numbers.is_some_and(|numbers| numbers.split_whitespace().skip(1).eq(["1"]))
}

/// Field 22 of `proc_pid_stat(5)`, counted after the name, which may hold anything.
fn started_ticks(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

fn folders(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

fn remove_empty(group: &Path, depth: u32) {
    if depth < MAX_DEPTH {
        for child in folders(group) {
            remove_empty(&child, depth + 1);
        }
    }
    // The kernel refuses to remove a group that has processes.
    let _ = fs::remove_dir(group);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that are the same but for what LXC, or we, add to one.
    const ALIKE: [&str; 6] = ["a.org", "a.org-1", "a.org-1-1", "payload.a.org", "b.a.org", "a.organ"];

    #[test]
    fn no_guest_has_the_groups_of_another() {
        let all = ALIKE.iter().flat_map(|name| {
            let name: GuestName = name.parse().unwrap();
            Group::ALL.map(|kind| [kind.path(&name), kind.by_lxc(&name)]).concat()
        });
        let mut all: Vec<String> = all.collect();
        let made = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), made);
        assert!(all.iter().all(|one| !all.iter().any(|other| other.starts_with(&format!("{one}/")))));
    }

    #[test]
    fn a_guest_is_looked_for_where_its_configuration_puts_it() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let name: GuestName = "a.org-1".parse().unwrap();
        let has = |config: &str| {
            crate::files::write(&host.lxc_guest(&name).join("config"), config, 0o644).unwrap();
            payload(&host, &name)
        };
        assert_eq!(has(&lines(&name).join("\n")), "corpus/a.org-1/payload");
        assert_eq!(has(&lines(&"a.org".parse().unwrap()).join("\n")), "lxc.payload.a.org-1");
        assert_eq!(has("lxc.arch = linux64\n"), "lxc.payload.a.org-1");
    }

    #[test]
    fn init_is_number_one_just_below() {
        assert!(is_init_status("State:\tS (sleeping)\nNSpid:\t733\t1\n"));
        for other in
            ["NSpid:\t1\n", "NSpid:\t733\t12\n", "NSpid:\t733\t40\t1\n", "State:\tZ (zombie)\nNSpid:\t733\t1\n", ""]
        {
            assert!(!is_init_status(other), "{other}");
        }
    }

    #[test]
    fn start_time_survives_a_hostile_name() {
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(started_ticks(stat), Some(4711));
    }
}
