//! What is written where, by version and layout of control groups.

use corpus_domain::{ChosenLimits, SizeProfile};

use super::*;
use crate::groups::tests::put;

const IP: Ipv4Addr = Ipv4Addr::new(10, 5, 0, 10);

fn name() -> GuestName {
    "www.example.org".parse().unwrap()
}

fn v1(host: &Host) {
    let trees = ["memory", "cpu", "pids", "cpuset", "blkio"].map(|tree| format!("{tree}/cgroup.procs"));
    put(host, &trees.iter().map(|path| (path.as_str(), "")).collect::<Vec<_>>());
    put(host, &[("cpuset/cpuset.effective_cpus", "0-3\n"), ("memory/corpus/memory.memsw.limit_in_bytes", "")]);
    put(host, &[("blkio/corpus/blkio.bfq.weight", "")]);
}

fn v2(host: &Host) {
    put(host, &[("cgroup.controllers", "cpuset cpu io memory pids\n"), ("cgroup.subtree_control", "")]);
    put(host, &[("corpus/memory.swap.max", ""), ("corpus/io.weight", ""), ("cpuset.cpus.effective", "0-1,4-5\n")]);
}

/// What follows the marker.
fn settings(held: &Held, limits: Limits) -> Vec<String> {
    let lines = held.lines(&name(), true, limits, IP).into_iter();
    lines.skip_while(|line| !line.starts_with(MARKER)).skip(1).collect()
}

fn on(set_up: fn(&Host), act: impl FnOnce(&Host, &Held)) {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::below(folder.path());
    set_up(&host);
    act(&host, &Held::of(&host));
}

#[test]
fn lines_for_v1() {
    on(v1, |_, held| {
        assert_eq!(
            settings(held, SizeProfile::Medium.limits()),
            [
                "lxc.cgroup.memory.limit_in_bytes = 2147483648",
                "lxc.cgroup.memory.memsw.limit_in_bytes = 2147483648",
                "lxc.cgroup.pids.max = 2048",
                "lxc.cgroup.cpu.cfs_quota_us = 200000",
                "lxc.cgroup.cpu.shares = 2048",
                "lxc.cgroup.cpuset.cpus = 0-1",
                "lxc.cgroup.blkio.bfq.weight = 100",
            ]
        );
        assert_eq!(held.missing(), ["I/O weight: no disk has a scheduler that looks at it (bfq)"]);
    });
}

#[test]
fn lines_for_v2() {
    on(v2, |host, held| {
        assert_eq!(
            settings(held, SizeProfile::Xxxsmall.limits()),
            [
                "lxc.cgroup2.memory.max = 268435456",
                "lxc.cgroup2.memory.swap.max = 0",
                "lxc.cgroup2.pids.max = 256",
                "lxc.cgroup2.cpu.max = 50000 100000",
                "lxc.cgroup2.cpu.weight = 50",
                "lxc.cgroup2.cpuset.cpus = 4",
                "lxc.cgroup2.io.weight = 50",
            ]
        );
        crate::files::write(&host.path("/sys/block/sda/queue/scheduler"), "none [bfq]\n", 0o644).unwrap();
        assert_eq!(Held::of(host).missing(), Vec::<String>::new());
    });
}

#[test]
fn what_a_host_lacks_is_left_out_and_named() {
    on(
        |_| {},
        |_, held| {
            assert!(settings(held, SizeProfile::Small.limits()).is_empty());
            assert_eq!(held.missing().len(), 5, "{:?}", held.missing());
        },
    );
}

#[test]
fn a_configuration_gets_other_limits_and_keeps_the_rest() {
    on(v1, |_, held| {
        let (small, large) = (SizeProfile::Small.limits(), SizeProfile::Large.limits());
        let rest = "# corpus guest\nlxc.net.0.ipv4.address = 10.5.0.10/16\nlxc.cgroup.devices.deny = a\n";
        let text = |limits| format!("{rest}{}\n", held.lines(&name(), true, limits, IP).join("\n"));
        assert_eq!(held.limited(rest, &name(), small), text(small));
        assert_eq!(held.limited(&text(small), &name(), large), text(large));
        assert_eq!((of_config(&text(large)), of_config(rest)), (Some(large), None));
    });
}

#[test]
fn processors_are_shared_in_turn() {
    let all = numbers("0-3,8\n");
    assert_eq!(all, [0, 1, 2, 3, 8]);
    let mut given = vec![0; 9];
    for guest in 0..50 {
        for one in share_of(&all, 2, Ipv4Addr::from_bits(0x0a05_0000 + guest)) {
            given[one as usize] += 1;
        }
    }
    assert_eq!(given, [20, 20, 20, 20, 0, 0, 0, 0, 20]);
    assert_eq!(ranges(&share_of(&all, 99, IP)), "0-3,8");
    assert_eq!(share_of(&[], 2, IP).len(), 0);
}

#[test]
fn a_guest_that_runs_gets_them_written_once() {
    on(v1, |host, held| {
        let group = "corpus/www.example.org/payload";
        for (tree, file) in [
            ("memory", "memory.limit_in_bytes"),
            ("memory", "memory.memsw.limit_in_bytes"),
            ("pids", "pids.max"),
            ("cpu", "cpu.cfs_quota_us"),
            ("cpu", "cpu.shares"),
            ("cpuset", "cpuset.cpus"),
            ("cpuset", "inner/cpuset.cpus"),
            ("blkio", "blkio.bfq.weight"),
        ] {
            put(host, &[(&format!("{tree}/{group}/{file}"), "0\n")]);
        }
        let limits = SizeProfile::Medium.limits();
        assert!(held.apply("lxc.net.0.ipv4.address = 10.5.0.11/16\n", &name(), limits).unwrap());
        assert!(!held.apply("lxc.net.0.ipv4.address = 10.5.0.11/16\n", &name(), limits).unwrap());
        let read = |path: &str| fs::read_to_string(host.path("/sys/fs/cgroup").join(path)).unwrap();
        assert_eq!(read(&format!("memory/{group}/memory.limit_in_bytes")), "2147483648");
        assert_eq!(read(&format!("cpuset/{group}/inner/cpuset.cpus")), "2-3");
    });
}

#[test]
fn on_v2_less_than_what_is_held_is_refused() {
    on(v2, |host, held| {
        let group = "corpus/www.example.org/payload";
        put(host, &[(&format!("{group}/memory.max"), "max\n"), (&format!("{group}/memory.current"), "300000000\n")]);
        let less = ChosenLimits { memory: "256 MiB".parse().ok(), ..ChosenLimits::default() };
        let error = held.apply("", &name(), less.over(SizeProfile::Small.limits())).unwrap_err();
        assert!(error.to_string().contains("holds 286.1 MiB of memory"), "{error}");
        let max = || fs::read_to_string(host.path("/sys/fs/cgroup").join(group).join("memory.max")).unwrap();
        assert_eq!(max(), "max\n");
        held.apply("", &name(), SizeProfile::Small.limits()).unwrap();
        assert_eq!(max(), "1073741824");
    });
}
