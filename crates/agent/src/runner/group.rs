//! The processes of a command: all of its group end with it, and its number is nobody else's meanwhile.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid};

/// How often the end of a group is looked for.
const PEEK: Duration = Duration::from_millis(5);
/// What a group gets between SIGTERM and SIGKILL, and then to be gone.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The process group that a command leads.
pub(crate) struct Group(pub(super) Pid);

impl Group {
    pub(crate) fn of(child: &Child) -> Self {
        Self(Pid::from_child(child))
    }

    /// Tells when the leader has exited, without reaping it.
    pub(crate) fn watch(&self, tell: impl FnOnce() + Send + 'static) {
        let leader = self.0;
        thread::spawn(move || {
            while let Err(rustix::io::Errno::INTR) =
                waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            {}
            tell();
        });
    }

    /// Ends all of the group; tells which of its processes are left, none as a rule. The leader
    /// is reaped when the others are gone: until then nobody else's group can have its number.
    pub(crate) fn kill(&self, child: &mut Child) -> Vec<i32> {
        let _ = kill_process_group(self.0, Signal::TERM);
        let end = Instant::now() + GRACE;
        while Instant::now() < end && !self.leader_ended() {
            thread::sleep(PEEK);
        }
        let end = Instant::now() + GRACE;
        loop {
            let _ = kill_process_group(self.0, Signal::KILL);
            let left = self.living();
            if left.is_empty() || Instant::now() > end {
                let _ = child.try_wait();
                return left;
            }
            thread::sleep(PEEK);
        }
    }

    fn leader_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.0), options), Ok(None))
    }

    /// Its processes that still run. Those that ended and were not reaped yet don't count.
    fn living(&self) -> Vec<i32> {
        if test_kill_process_group(self.0).is_err() {
            return Vec::new();
        }
        let group = self.0.as_raw_nonzero().to_string();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let runs =
            |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| runs_in(&stat, &group));
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(runs).collect()
    }
}

/// State and group of `proc_pid_stat(5)`, counted after the name, which may hold anything.
pub(super) fn runs_in(stat: &str, group: &str) -> bool {
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let alive = fields.next().is_some_and(|state| !["Z", "X"].contains(&state));
    alive && fields.nth(1) == Some(group)
}

#[cfg(test)]
mod tests {
    use super::runs_in;

    #[test]
    fn the_dead_are_not_counted() {
        assert!(runs_in("12 (a) b) S 1 12 12 0", "12"));
        for other in ["12 (a) Z 1 12 12 0", "12 (a) S 1 13 12 0", "12 (a) S 12 1 12 0", ""] {
            assert!(!runs_in(other, "12"), "{other}");
        }
    }
}
