//! What a running guest takes of its node, read from its groups without starting a process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use corpus_domain::{Bytes, GuestName};

use crate::groups::{Tree, Version, number};
use crate::host::Host;

/// Over less than this a share of time says little.
const MIN_AGE: Duration = Duration::from_millis(500);
/// Over more than this it says nothing about now.
const MAX_AGE: Duration = Duration::from_mins(1);

/// What a guest takes; what can't be read is left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory that can't be given back: without the files that are only kept because there is room.
    pub memory: Option<Bytes>,
    /// Processor time over the last moments, in thousandths of a processor.
    pub cpu_millis: Option<u32>,
    /// Processes and threads.
    pub processes: Option<u32>,
}

/// When a guest's processor time was read, how much it was, and what that made of the time before.
type Sample = (Instant, u64, Option<u32>);

/// A share of time needs two readings: the last one of each guest, for as long as this agent lives.
static SAMPLES: Mutex<BTreeMap<GuestName, Sample>> = Mutex::new(BTreeMap::new());

/// Reads it.
pub fn of(host: &Host, name: &GuestName) -> Usage {
    let group = |v1, v2| Tree::of(host, v1, v2).and_then(|tree| Some((tree.version, tree.outer(name)?)));
    Usage {
        memory: group("memory", "memory").and_then(|(version, group)| memory(version, &group)),
        cpu_millis: group("cpuacct", "cpu").and_then(|(version, group)| share(name, spent(version, &group)?)),
        processes: group("pids", "pids")
            .and_then(|(_, group)| number(&group.join("pids.current"), None)?.try_into().ok()),
    }
}

/// Forgets the guests that are not there any more.
pub fn forget_others(names: &[GuestName]) {
    let mut samples = SAMPLES.lock().unwrap_or_else(PoisonError::into_inner);
    samples.retain(|name, _| names.binary_search(name).is_ok());
}

fn memory(version: Version, group: &Path) -> Option<Bytes> {
    let (file, cache) = match version {
        Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
        Version::V2 => ("memory.current", "inactive_file"),
    };
    let held = number(&group.join(file), None)?;
    Some(Bytes(held.saturating_sub(number(&group.join("memory.stat"), Some(cache)).unwrap_or_default())))
}

/// Processor time so far, in microseconds.
fn spent(version: Version, group: &Path) -> Option<u64> {
    match version {
        Version::V1 => number(&group.join("cpuacct.usage"), None).map(|nanoseconds| nanoseconds / 1000),
        Version::V2 => number(&group.join("cpu.stat"), Some("usage_usec")),
    }
}

fn share(name: &GuestName, spent: u64) -> Option<u32> {
    let mut samples = SAMPLES.lock().unwrap_or_else(PoisonError::into_inner);
    let (sample, share) = next(samples.get(name).copied(), Instant::now(), spent);
    samples.insert(name.clone(), sample);
    share
}

fn next(last: Option<Sample>, now: Instant, spent: u64) -> (Sample, Option<u32>) {
    let fresh = ((now, spent, None), None);
    let Some((at, before, share)) = last.filter(|(_, before, _)| *before <= spent) else { return fresh };
    let elapsed = now.saturating_duration_since(at);
    if elapsed > MAX_AGE {
        return fresh;
    }
    if elapsed < MIN_AGE {
        return ((at, before, share), share);
    }
    let millis = u128::from(spent - before) * 1000 / elapsed.as_micros().max(1);
    let share = u32::try_from(millis).ok();
    ((now, spent, share), share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::tests::put;

    #[test]
    fn read_on_v1_and_v2() {
        let name: GuestName = "read.example.org".parse().unwrap();
        for (files, memory, processes) in [
            (
                vec![
                    ("memory/cgroup.procs", ""),
                    ("memory/corpus/read.example.org/payload/memory.usage_in_bytes", "5000\n"),
                    ("memory/corpus/read.example.org/payload/memory.stat", "cache 3\ntotal_inactive_file 1000\n"),
                    ("pids/cgroup.procs", ""),
                    ("pids/corpus/read.example.org/payload/pids.current", "17\n"),
                ],
                4000,
                Some(17),
            ),
            (
                vec![
                    ("cgroup.controllers", "memory\n"),
                    ("corpus/read.example.org/payload/memory.current", "5000\n"),
                    ("corpus/read.example.org/payload/memory.stat", "inactive_file 2000\n"),
                ],
                3000,
                None,
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let host = Host::below(folder.path());
            put(&host, &files);
            assert_eq!(of(&host, &name), Usage { memory: Some(Bytes(memory)), cpu_millis: None, processes });
        }
    }

    #[test]
    fn a_share_is_of_the_time_between_two_readings() {
        let start = Instant::now();
        let (sample, share) = next(None, start, 1_000_000);
        assert_eq!(share, None);
        let (same, share) = next(Some(sample), start + Duration::from_millis(100), 9_000_000);
        assert_eq!((same, share), (sample, None), "too early to say");
        let (sample, share) = next(Some(sample), start + Duration::from_secs(2), 2_000_000);
        assert_eq!(share, Some(500));
        let (_, share) = next(Some(sample), start + Duration::from_secs(3), 1_000);
        assert_eq!(share, None, "it was restarted");
        let (_, share) = next(Some(sample), start + Duration::from_mins(9), 3_000_000);
        assert_eq!(share, None, "too long ago");
    }
}
