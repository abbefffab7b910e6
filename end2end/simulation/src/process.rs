//! Memory and CPU of processes, from /proc: what whoever measures here reads of itself and of others.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The kernel's ticks a second in /proc: 100 on every Linux.
const TICKS: u64 = 100;

/// A thousand connections need as many open files.
pub fn raise_open_files() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("the limit of open files can't be raised")
}

/// What a process holds of memory now.
pub fn resident_kb(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// CPU time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage(Duration);

impl Usage {
    /// Of one process.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let (_, ticks) = stat(pid)?;
        Ok(Self(Duration::from_millis(ticks * 1000 / TICKS)))
    }

    /// Of a process and its children.
    pub fn of_family(parent: u32) -> anyhow::Result<Self> {
        let pids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let children = pids.filter_map(|pid| stat(pid).ok()).filter(|(of, _)| *of == parent);
        let ticks = children.map(|(_, ticks)| ticks).sum::<u64>() + stat(parent)?.1;
        Ok(Self(Duration::from_millis(ticks * 1000 / TICKS)))
    }

    /// Of everything on the machine (proc(5), /proc/stat: all but idle, iowait and steal).
    pub fn of_machine() -> anyhow::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let fields = text.lines().next().unwrap_or_default().split_ascii_whitespace().skip(1);
        let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
        let busy = [0, 1, 2, 5, 6].into_iter().filter_map(|index| ticks.get(index)).sum::<u64>();
        Ok(Self(Duration::from_millis(busy * 1000 / TICKS)))
    }

    /// In milliseconds.
    pub fn millis(self) -> f64 {
        self.0.as_secs_f64() * 1000.0
    }

    /// What was used since then.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self(self.0.saturating_sub(before.0))
    }

    /// In percent of one processor.
    pub fn percent(self, of: Duration) -> f64 {
        100.0 * self.0.as_secs_f64() / of.as_secs_f64()
    }
}

/// The parent of a process.
pub fn parent(pid: u32) -> anyhow::Result<u32> {
    Ok(stat(pid)?.0)
}

/// Parent, and ticks of CPU with those of children that have ended (proc(5), fields 4 and 14 to 17).
fn stat(pid: u32) -> anyhow::Result<(u32, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = text.rsplit_once(") ").context("no command")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).context("no number");
    let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
    Ok((u32::try_from(number(1)?)?, ticks))
}
