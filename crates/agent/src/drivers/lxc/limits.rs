//! What a guest may take of its node, as control groups: rendered for LXC, and written to a guest that runs.
//!
//! The limits are on a group above the one that the guest sees as the root of its tree, so root in
//! the guest can't raise them. What a host's kernel can't hold is left out, so that the guest
//! starts, and named among the host's facts.
//!
//! A quota is what holds processor time; the guest is also kept on as many processors as it has a
//! part of, since that is what `nproc` in it counts. Which ones follows from its address, so that
//! neighbours are on different ones.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{Bytes, GuestName, Limits};
use corpus_protocol::RequestError;
use rustix::io::Errno;

use super::{state, tables, tools, views};
use crate::failure::{At, Failure};
use crate::files;
use crate::groups::{Tree, Version, number, words};
use crate::host::Host;

/// What LXC starts the agent for.
pub const WORD: &str = "limits";
const MARKER: &str = "# limits ";
const LOOP: &str = "lxc.rootfs.path = loop:";
/// What the guest sees as the root of its tree.
const INNER: &str = "lxc.cgroup.dir.container.inner = inner";
const ADDRESS: &str = "lxc.net.0.ipv4.address = ";
/// What the kernel counts a processor's time in, in microseconds.
const PERIOD: u64 = 100_000;
const PAGE: u64 = 4096;
/// How many groups in a guest are moved to other processors; its root can make as many as it likes.
const GROUPS: usize = 2000;
const DEPTH: u32 = 16;
/// How long the kernel may take to give back what a process held that has ended.
const FREED: Duration = Duration::from_secs(3);

/// What of limits a host can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    memory: Option<Tree>,
    swap: bool,
    cpu: Option<Tree>,
    processes: Option<Tree>,
    processors: Option<(Tree, Vec<u32>)>,
    io: Option<(Tree, &'static str)>,
    /// Whether a disk's scheduler looks at weights.
    weighed: bool,
}

/// A file of a group, and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    tree: Tree,
    file: &'static str,
    value: String,
}

impl Held {
    /// Looks at the host.
    pub fn of(host: &Host) -> Self {
        let memory = Tree::of(host, "memory", "memory");
        let swap = memory.as_ref().is_some_and(|tree| tree.sample().join(swap_file(tree)).exists());
        let cpuset = Tree::of(host, "cpuset", "cpuset");
        let io = Tree::of(host, "blkio", "io").and_then(|tree| {
            let group = tree.sample();
            let file = io_files(&tree).into_iter().find(|file| group.join(file).exists())?;
            Some((tree, file))
        });
        Self {
            swap,
            memory,
            cpu: Tree::of(host, "cpu", "cpu"),
            processes: Tree::of(host, "pids", "pids"),
            processors: cpuset.map(|tree| (tree.clone(), processors(host, &tree))),
            io,
            weighed: weighs(host),
        }
    }

    /// What guests can't be held to here, and why, each for a person.
    pub fn missing(&self) -> Vec<String> {
        let lacks = |there: bool, text: &str| (!there).then(|| text.to_owned());
        [
            lacks(self.memory.is_some(), "memory: the kernel has no memory controller (cgroup_enable=memory)"),
            lacks(self.memory.is_none() || self.swap, "swap: the kernel does not count it (swapaccount=1)"),
            lacks(self.cpu.is_some(), "CPU: the kernel has no cpu controller"),
            lacks(self.processes.is_some(), "processes: the kernel has no pids controller"),
            lacks(self.processors.is_some(), "nproc: the kernel has no cpuset controller"),
            lacks(self.io.is_some(), "I/O weight: the kernel has no weights for groups"),
            lacks(self.io.is_none() || self.weighed, "I/O weight: no disk has a scheduler that looks at it (bfq)"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn settings(&self, limits: Limits, ip: Ipv4Addr) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut add = |tree: &Tree, v1: &'static str, v2: &'static str, value: String| {
            let file = if tree.version == Version::V1 { v1 } else { v2 };
            settings.push(Setting { tree: tree.clone(), file, value });
        };
        if let Some(tree) = &self.memory {
            let bytes = limits.memory.get() / PAGE * PAGE;
            add(tree, "memory.limit_in_bytes", "memory.max", bytes.to_string());
            if self.swap {
                // v1 counts memory and swap together, v2 swap alone: either way there is no swap.
                let swap = if tree.version == Version::V1 { bytes } else { 0 };
                add(tree, "memory.memsw.limit_in_bytes", "memory.swap.max", swap.to_string());
            }
        }
        if let Some(tree) = &self.processes {
            add(tree, "pids.max", "pids.max", limits.processes.to_string());
        }
        if let Some(tree) = &self.cpu {
            let millis = u64::from(limits.cpu);
            let quota = millis * PERIOD / 1000;
            // The kernel's own share of a group is 1024 on v1 and 100 on v2: that of one processor.
            let (share, weight) = ((millis * 1024 / 1000).clamp(2, 262_144), (millis / 10).clamp(1, 10_000));
            add(tree, "cpu.cfs_quota_us", "cpu.max", quota_text(tree, quota));
            add(tree, "cpu.shares", "cpu.weight", if tree.version == Version::V1 { share } else { weight }.to_string());
        }
        if let Some((tree, all)) = &self.processors {
            let count = usize::try_from(limits.cpu.get().div_ceil(1000)).unwrap_or(usize::MAX);
            add(tree, "cpuset.cpus", "cpuset.cpus", ranges(&share_of(all, count, ip)));
        }
        if let Some((tree, file)) = &self.io {
            add(tree, file, file, limits.io_weight.to_string());
        }
        settings
    }

    /// The limits as lines of LXC's configuration, with the groups that they are on, and what makes
    /// the guest see them. A disk that LXC attaches itself, it attaches when the devices of a group
    /// with an inner one are denied already: such a guest has none, and is privileged anyway.
    pub fn lines(&self, name: &GuestName, inner: bool, limits: Limits, ip: Ipv4Addr) -> Vec<String> {
        let marker = format!("{MARKER}{}", serde_json::to_string(&limits).unwrap_or_default());
        let line = |Setting { tree, file, value }: Setting| {
            let group = if tree.version == Version::V1 { "cgroup" } else { "cgroup2" };
            format!("lxc.{group}.{file} = {value}")
        };
        let settings = self.settings(limits, ip).into_iter().map(line);
        let inner = inner.then(|| INNER.to_owned());
        views::lines().chain([hook()]).chain(state::lines(name)).chain(inner).chain([marker]).chain(settings).collect()
    }

    /// A configuration with other limits.
    pub fn limited(&self, config: &str, name: &GuestName, limits: Limits) -> String {
        let kept = config.lines().filter(|line| !is_ours(line)).map(str::to_owned);
        let inner = !config.lines().any(|line| line.starts_with(LOOP));
        let lines: Vec<String> = kept.chain(self.lines(name, inner, limits, address(config))).collect();
        lines.join("\n") + "\n"
    }

    /// Writes the limits to the groups of a guest that runs. Memory comes first: it is the one that can be refused.
    pub fn apply(&self, config: &str, name: &GuestName, limits: Limits) -> Result<bool, Failure> {
        let mut changed = false;
        let mut settings = self.settings(limits, address(config));
        if self.memory.as_ref().is_some_and(|tree| grows(tree, name, limits)) && self.swap {
            // On v1 memory and swap together are never less than memory alone.
            settings.swap(0, 1);
        }
        for setting in settings {
            if let Some(group) = setting.tree.outer(name) {
                changed |= setting.write(&group, name)?;
            }
        }
        Ok(changed)
    }
}

impl Setting {
    fn write(&self, group: &Path, name: &GuestName) -> Result<bool, Failure> {
        let path = group.join(self.file);
        if is_so(&path, &self.value) {
            return Ok(false);
        }
        match self.file {
            "cpuset.cpus" => return Ok(keep_on(group, &self.value, &mut 0, 0).is_ok()),
            "memory.max" => give_back(group, name, &self.value)?,
            _ => {}
        }
        let busy = |error: &io::Error| error.raw_os_error() == Some(Errno::BUSY.raw_os_error());
        match patiently(|| fs::write(&path, &self.value), |written| written.as_ref().is_err_and(busy)) {
            Err(error) if busy(&error) => {
                Err(in_use(name, number(&group.join("memory.usage_in_bytes"), None), &self.value))
            }
            written => written.at("write", &path).map(|()| true),
        }
    }
}

/// When a guest reboots itself, LXC starts it with the configuration that it read when it started it
/// first, so with the limits of then: this hook, which is run before the guest's init, writes those of now.
fn hook() -> String {
    format!("lxc.hook.start-host = {} {WORD}", tools::AGENT)
}

/// What the hook does.
pub fn hold(host: &Host, name: &str) -> io::Result<()> {
    let held = name.parse().map_err(Failure::from).and_then(|name| {
        tables::raise(host)?;
        let config = files::read(&host.lxc_guest(&name).join("config"))?.unwrap_or_default();
        let limits = of_config(&config);
        limits.map_or(Ok(false), |limits| Held::of(host).apply(&config, &name, limits))
    });
    held.map(drop).map_err(|failure| io::Error::other(RequestError::from(failure).message))
}

/// The limits that a configuration was rendered with; none when it is older than limits.
pub fn of_config(config: &str) -> Option<Limits> {
    serde_json::from_str(config.lines().find_map(|line| line.strip_prefix(MARKER))?).ok()
}

fn is_ours(line: &str) -> bool {
    let key = line.strip_prefix("lxc.cgroup.").or_else(|| line.strip_prefix("lxc.cgroup2."));
    line.starts_with(MARKER)
        || views::is_ours(line)
        || line == hook()
        || key.is_some_and(|key| !key.starts_with("devices."))
}

fn address(config: &str) -> Ipv4Addr {
    let line = config.lines().find_map(|line| line.strip_prefix(ADDRESS)).unwrap_or_default();
    line.split('/').next().and_then(|ip| ip.parse().ok()).unwrap_or(Ipv4Addr::UNSPECIFIED)
}

const fn swap_file(tree: &Tree) -> &'static str {
    match tree.version {
        Version::V1 => "memory.memsw.limit_in_bytes",
        Version::V2 => "memory.swap.max",
    }
}

const fn io_files(tree: &Tree) -> [&'static str; 2] {
    match tree.version {
        Version::V1 => ["blkio.weight", "blkio.bfq.weight"],
        Version::V2 => ["io.weight", "io.bfq.weight"],
    }
}

fn quota_text(tree: &Tree, quota: u64) -> String {
    match tree.version {
        Version::V1 => quota.to_string(),
        Version::V2 => format!("{quota} {PERIOD}"),
    }
}

/// Whether a disk's scheduler is one that looks at weights.
fn weighs(host: &Host) -> bool {
    let disks = fs::read_dir(host.path("/sys/block")).into_iter().flatten().flatten();
    disks.map(|disk| words(&disk.path().join("queue/scheduler"))).any(|words| words.iter().any(|word| word == "[bfq]"))
}

/// The processors that guests may be on.
fn processors(host: &Host, cpuset: &Tree) -> Vec<u32> {
    let files = match cpuset.version {
        Version::V1 => ["cpuset.effective_cpus", "cpuset.cpus"],
        Version::V2 => ["cpuset.cpus.effective", "cpuset.cpus"],
    };
    let files = files.map(|file| cpuset.root.join(file)).into_iter();
    let mut files = files.chain([host.path("/sys/devices/system/cpu/online")]);
    files
        .find_map(|path| Some(numbers(&fs::read_to_string(path).ok()?)).filter(|all| !all.is_empty()))
        .unwrap_or_default()
}

/// The numbers of a list such as `0-3,8`.
fn numbers(list: &str) -> Vec<u32> {
    let part = |part: &str| {
        let (begin, end) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (begin.trim().parse::<u32>().ok()?, end.trim().parse::<u32>().ok()?);
        (high.checked_sub(low)? < 1 << 16).then_some(low..=high)
    };
    list.trim().split(',').filter_map(part).flatten().collect()
}

/// The same as a list.
fn ranges(numbers: &BTreeSet<u32>) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut().filter(|(_, last)| last.checked_add(1) == Some(number)) {
            Some((_, last)) => *last = number,
            None => parts.push((number, number)),
        }
    }
    let text = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// `count` of the processors, those of the guest's turn; addresses are given one after the other.
fn share_of(all: &[u32], count: usize, ip: Ipv4Addr) -> BTreeSet<u32> {
    let turn = usize::try_from(ip.to_bits()).unwrap_or_default();
    let first = turn.wrapping_mul(count).checked_rem(all.len()).unwrap_or_default();
    all.iter().cycle().skip(first).take(count.min(all.len())).copied().collect()
}

/// Whether a file says this already, by itself or for every device (`default 100`).
fn is_so(path: &Path, value: &str) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let first = text.lines().next().unwrap_or_default().trim();
    first.strip_prefix("default ").unwrap_or(first) == value
}

fn grows(memory: &Tree, name: &GuestName, limits: Limits) -> bool {
    let limit = memory.outer(name).and_then(|group| number(&group.join("memory.limit_in_bytes"), None));
    limit.is_some_and(|limit| limits.memory.get() > limit)
}

/// v2 kills in the guest when it holds more than its new limit; so what can be given back is taken
/// first, and when that does not do it the change is refused, as v1 refuses it by itself.
fn give_back(group: &Path, name: &GuestName, limit: &str) -> Result<(), Failure> {
    let limit: u64 = limit.parse().unwrap_or(u64::MAX);
    let held = || number(&group.join("memory.current"), None).unwrap_or_default();
    let reclaim = || {
        let too_much = held().saturating_sub(limit);
        if too_much > 0 {
            let _ = fs::write(group.join("memory.reclaim"), too_much.to_string());
        }
        held() > limit
    };
    if patiently(reclaim, |still| *still) { Err(in_use(name, Some(held()), &limit.to_string())) } else { Ok(()) }
}

/// Does it again for a while as long as it is `refused`: what a process held that has just ended is given
/// back page by page.
fn patiently<T>(act: impl Fn() -> T, refused: impl Fn(&T) -> bool) -> T {
    let end = Instant::now() + FREED;
    loop {
        let done = act();
        if !refused(&done) || Instant::now() > end {
            return done;
        }
        sleep(Duration::from_millis(50));
    }
}

fn in_use(name: &GuestName, held: Option<u64>, limit: &str) -> Failure {
    let amount = |bytes: u64| Bytes(bytes).gib();
    Failure::Invalid(format!(
        "{name} holds {} of memory that it can't give back now: {} are too little; end something in it, or stop it first",
        held.map_or_else(|| "more".to_owned(), amount),
        limit.parse().map_or_else(|_| limit.to_owned(), amount)
    ))
}

/// Moves a group and all below it to these processors. On v1 a group never has fewer than those
/// below it: so first it gets the new ones too, and loses the others last. What can't be moved is
/// no harm: the quota holds, and the guest's next start moves it.
fn keep_on(group: &Path, list: &str, seen: &mut usize, depth: u32) -> io::Result<()> {
    *seen += 1;
    if *seen > GROUPS || depth > DEPTH {
        return Err(Errno::BUSY.into());
    }
    let path = group.join("cpuset.cpus");
    let before = fs::read_to_string(&path)?;
    let both: BTreeSet<u32> = numbers(&before).into_iter().chain(numbers(list)).collect();
    fs::write(&path, ranges(&both))?;
    for child in folders(group) {
        keep_on(&child, list, seen, depth + 1)?;
    }
    fs::write(&path, list)
}

fn folders(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests;
