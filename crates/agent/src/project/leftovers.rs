//! What a deployment's programs leave behind is found and ended.
//!
//! The runner is the reaper of all its descendants, so that even what left its session stays one;
//! and all of them carry a mark in their environment ([`MARK`]), by which those of a runner that
//! was killed are known.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, child_subreaper, getpid, kill_process, set_child_subreaper, waitpid};

/// The variable that all processes of a deployment's recipes carry; its value is the id.
pub const MARK: &str = "CORPUS_RECIPE_OF";
/// What stayed behind gets this long to end by itself.
const GRACE: Duration = Duration::from_secs(1);
/// And then this long to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// From now on whatever a child of this process leaves behind becomes its child.
pub fn become_reaper() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Ends what a deployment's programs left behind; tells what that was.
pub fn end_leftovers(mark: &str) -> Vec<String> {
    let mut told: BTreeMap<i32, String> = BTreeMap::new();
    let began = Instant::now();
    loop {
        let left = leftovers(mark);
        if left.is_empty() || began.elapsed() > KILL_TIMEOUT {
            break;
        }
        let signal = if began.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
        for (pid, name) in left {
            let first = told.insert(pid, name).is_none();
            if let Some(pid) = Pid::from_raw(pid).filter(|_| first || signal == Signal::KILL) {
                let _ = kill_process(pid, signal);
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    let survived: BTreeSet<i32> = leftovers(mark).into_keys().collect();
    told.iter()
        .map(|(pid, name)| {
            let now = if survived.contains(pid) { "still runs after SIGKILL" } else { "was ended" };
            format!("{name} (pid {pid}) stayed behind and {now}")
        })
        .collect()
}

/// The living descendants of this process, if it reaps them, and all that carry the mark.
pub fn leftovers(mark: &str) -> BTreeMap<i32, String> {
    let own = getpid().as_raw_nonzero().get();
    let all = processes();
    let mut ours = BTreeSet::new();
    if child_subreaper().is_ok_and(|reaper| reaper.is_some()) {
        let mut parents = vec![own];
        while let Some(parent) = parents.pop() {
            let children = all.iter().filter(|(_, process)| process.parent == parent).map(|(pid, _)| *pid);
            parents.extend(children.filter(|pid| ours.insert(*pid)));
        }
    }
    let variable = format!("{MARK}={mark}");
    let marked = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    let mut left = BTreeMap::new();
    for (pid, process) in all {
        if pid == own || !(ours.contains(&pid) || marked(pid)) {
            continue;
        }
        if process.dead {
            if let Some(pid) = Pid::from_raw(pid).filter(|_| process.parent == own && ours.contains(&pid)) {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        } else {
            left.insert(pid, process.name);
        }
    }
    left
}

/// The living processes of an account.
pub fn of_user(user: u32) -> Vec<(Pid, String)> {
    use std::os::unix::fs::MetadataExt;
    let owned = |pid: i32| std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == user);
    let living = processes().into_iter().filter(|(pid, process)| !process.dead && owned(*pid));
    living.filter_map(|(pid, process)| Some((Pid::from_raw(pid)?, process.name))).collect()
}

struct Process {
    name: String,
    dead: bool,
    parent: i32,
}

/// All processes, as `proc_pid_stat(5)` tells them.
fn processes() -> BTreeMap<i32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

fn parse(stat: &str) -> Option<Process> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?;
    Some(Process { name: name.to_owned(), dead: ["Z", "X"].contains(&state), parent: fields.next()?.parse().ok()? })
}
