//! Whether a container runs, without starting a process.
//!
//! LXC puts the processes of a container into a control group `lxc.payload.<name>` of each
//! hierarchy (one on cgroup v2, several on v1 and hybrid hosts), with `-1`, `-2`… appended when
//! a leftover of that name was in the way. The container's init is the process in it that is
//! number 1 in its own PID namespace, one below ours.

use std::fs;
use std::path::{Path, PathBuf};

use corpus_domain::{Bytes, GuestName};

const GROUPS: &str = "/sys/fs/cgroup";
/// Where the groups of a container may be, with the one that is searched first in front.
const HIERARCHIES: [&str; 5] = ["systemd", "", "unified", "pids", "memory"];
/// Clock ticks a second in /proc, the same on every architecture that Debian runs on.
const TICKS: u64 = 100;
const MAX_DEPTH: u32 = 6;

/// The guest's init as the host numbers it, if the guest runs.
pub fn init(name: &GuestName) -> Option<i32> {
    HIERARCHIES.iter().flat_map(|hierarchy| groups(hierarchy, "payload", name)).find_map(|group| find_init(&group, 0))
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

/// The memory that the guest's control group holds.
pub fn memory(name: &GuestName) -> Option<Bytes> {
    let files = [("memory", "memory.usage_in_bytes"), ("", "memory.current")];
    files.iter().find_map(|(hierarchy, file)| {
        let group = groups(hierarchy, "payload", name).into_iter().next()?;
        fs::read_to_string(group.join(file)).ok()?.trim().parse().ok().map(Bytes)
    })
}

/// Removes the empty control groups that a killed guest left behind.
pub fn sweep(name: &GuestName) {
    let hierarchies = fs::read_dir(GROUPS).into_iter().flatten().flatten();
    let hierarchies = hierarchies.filter_map(|entry| entry.file_name().into_string().ok()).chain([String::new()]);
    for hierarchy in hierarchies {
        for group in ["payload", "monitor"].iter().flat_map(|kind| groups(&hierarchy, kind, name)) {
            remove_empty(&group, 0);
        }
    }
}

fn groups(hierarchy: &str, kind: &str, name: &GuestName) -> Vec<PathBuf> {
    let wanted = format!("lxc.{kind}.{name}");
    let folder = Path::new(GROUPS).join(hierarchy);
    let exact = folder.join(&wanted);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let others = entries.filter(|entry| entry.file_name().to_str().is_some_and(|found| is_numbered(found, &wanted)));
    [exact].into_iter().filter(|group| group.is_dir()).chain(others.map(|entry| entry.path())).collect()
}

fn is_numbered(found: &str, wanted: &str) -> bool {
    let number = found.strip_prefix(wanted).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
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

    #[test]
    fn numbered_leftovers_are_found_and_longer_names_are_not() {
        assert!(is_numbered("lxc.payload.a.org-1", "lxc.payload.a.org"));
        for other in ["lxc.payload.a.org", "lxc.payload.a.org-", "lxc.payload.a.org-x1", "lxc.payload.a.organ-1"] {
            assert!(!is_numbered(other, "lxc.payload.a.org"), "{other}");
        }
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
