//! A guest takes no more of its node than its limits, sees itself and not the node, and can't change that.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use corpus_domain::{Backing, Limits};
use corpus_protocol::{ErrorKind, GuestPlan, GuestReading, Request};

use crate::line::Line;
use crate::suite::{keys, leftovers, setup};
use crate::world::{World, guest, node, port};

/// Starts as many processes as it can, and keeps them for a moment.
const FORKS: &str = "python3 -c '
import os, time
made = 0
try:
    while made < 5000:
        if os.fork() == 0:
            time.sleep(3); os._exit(0)
        made += 1
except OSError as error: print(made, error.errno)
time.sleep(4)'";
/// Holds so many MB and says so.
const HOLDS: &str = "python3 -c 'import sys, time; held = bytearray(b\"x\") * (MB << 20); print(len(held) >> 20, flush=True); time.sleep(WAIT)'";

struct Inside<'a> {
    world: &'a World,
    plan: GuestPlan,
    key: PathBuf,
}

impl Inside<'_> {
    fn says(&self, command: &str) -> String {
        let said = self.world.enter_soon("root", port(&self.plan), &self.key, command);
        assert!(said.success, "{command}: {}", said.text);
        said.text.trim().to_owned()
    }

    /// What a command says that may well fail.
    fn tries(&self, command: &str) -> String {
        self.world.enter("root", port(&self.plan), &self.key, command).text.trim().to_owned()
    }

    fn hold(&self, mb: u32, seconds: u32) -> String {
        self.tries(&HOLDS.replace("MB", &mb.to_string()).replace("WAIT", &seconds.to_string()))
    }

    /// Memory in MB, processors, and whether it is up for less than two minutes, as the usual tools say.
    fn sees(&self) -> String {
        self.says("free -m | awk '/Mem/ { print $2 }'; nproc; grep -c ^processor /proc/cpuinfo; awk '{ print ($1 < 120) }' /proc/uptime")
            .replace('\n', " ")
    }

    fn ensure(&self, line: &mut Line, limits: Limits) {
        line.twice(&Request::EnsureLimits { name: self.plan.name.clone(), limits });
    }
}

fn limits(memory: &str, cpu: &str, processes: &str) -> Limits {
    Limits {
        memory: memory.parse().unwrap(),
        cpu: cpu.parse().unwrap(),
        processes: processes.parse().unwrap(),
        io_weight: "100".parse().unwrap(),
    }
}

pub fn hold(world: &World, line: &mut Line) {
    println!("--- limits");
    let before = leftovers(world);
    let (key, public) = world.key_pair("limited");
    let greedy =
        GuestPlan { limits: limits("256 MiB", "0.5", "128"), ..guest("greedy.lab.test", 20, Backing::Overlayfs) };
    let calm = guest("calm.lab.test", 21, Backing::Overlayfs);
    for plan in [&greedy, &calm] {
        line.change(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
        line.change(&Request::SetUpGuest {
            name: plan.name.clone(),
            id: None,
            setup: Box::new(setup(world, plan.name.as_str().split('.').next().unwrap())),
        });
        line.change(&Request::EnsureKeys { name: plan.name.clone(), id: None, keys: keys(&["root"], &public) });
    }
    line.change(&Request::ApplyNode { plan: Box::new(node(&[&greedy, &calm])) });
    for plan in [&greedy, &calm] {
        let started = Instant::now();
        line.change(&Request::EnsureRunning { name: plan.name.clone() });
        assert!(world.enter_soon("root", port(plan), &key, "true").success);
        println!("{:8.1} ms  from EnsureRunning to the first login", started.elapsed().as_secs_f64() * 1e3);
    }
    let greedy = Inside { world, plan: greedy, key: key.clone() };
    let calm = Inside { world, plan: calm, key };
    assert_eq!((greedy.sees(), calm.sees()), ("256 1 1 1".into(), "1024 1 1 1".into()));
    takes_no_more(&greedy, &calm, line);
    is_not_raised_from_inside(&greedy);
    is_changed_while_it_runs(&greedy, line);
    sees_itself_again(world, &greedy, &calm);
    greedy.tries("systemctl reboot");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(greedy.sees(), "512 2 2 1", "after a reboot");
    assert_eq!(greedy.hold(600, 0), "", "after a reboot");
    for inside in [&greedy, &calm] {
        line.twice(&Request::EnsureAbsent { name: inside.plan.name.clone(), id: None });
    }
    line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
    assert_eq!(leftovers(world), before);
}

/// Neither processes nor memory nor time; the neighbour goes on.
fn takes_no_more(greedy: &Inside<'_>, calm: &Inside<'_>, line: &mut Line) {
    let (said, neighbour) = std::thread::scope(|scope| {
        let forks = scope.spawn(|| greedy.tries(FORKS));
        std::thread::sleep(Duration::from_secs(2));
        let neighbour = calm.says("python3 -c 'import os; os.fork(); print(1)'");
        (forks.join().unwrap(), neighbour)
    });
    let made: u32 = said.split_whitespace().next().unwrap_or_default().parse().unwrap_or_else(|_| panic!("{said}"));
    assert!((50..128).contains(&made) && said.ends_with(" 11"), "forks: {said}");
    assert_eq!(neighbour, "1\n1");
    assert_eq!(
        (greedy.hold(100, 0), greedy.hold(300, 0), calm.hold(300, 0)),
        ("100".into(), String::new(), "300".into())
    );
    assert_eq!(greedy.says("echo lives"), "lives");

    greedy.says("for n in 1 2; do timeout 5 sh -c 'while :; do :; done' >/dev/null 2>&1 & done");
    std::thread::sleep(Duration::from_secs(1));
    reading(line, greedy);
    std::thread::sleep(Duration::from_secs(2));
    let seen = reading(line, greedy);
    println!("             {seen:?}");
    let millis = seen.cpu_millis.expect("two readings");
    assert!((20..=600).contains(&millis), "{millis} thousandths of a processor");
    assert!(seen.processes.is_some_and(|count| (3..128).contains(&count)), "{seen:?}");
    assert!(seen.memory_used.is_some_and(|used| used.0 < 256 << 20), "{seen:?}");
}

fn reading(line: &mut Line, inside: &Inside<'_>) -> GuestReading {
    line.reading(&inside.plan.name)
}

/// Its root writes to every limit that it can see, and looks for a way to see more of them.
fn is_not_raised_from_inside(greedy: &Inside<'_>) {
    let raised = greedy.says(
        "mount -o remount,rw /sys/fs/cgroup 2>/dev/null; mkdir -p /mnt/all && mount -t cgroup -o memory none /mnt/all 2>/dev/null
        mount -t cgroup2 none /mnt/all 2>/dev/null
        for folder in /sys/fs/cgroup /mnt/all; do
          for file in memory.memsw.limit_in_bytes memory.limit_in_bytes pids.max cpu.cfs_quota_us memory.max; do
            for value in -1 max; do find $folder -name $file -exec sh -c \"echo $value > {}\" \\; 2>/dev/null; done
          done
        done
        for value in 0-1; do find /sys/fs/cgroup /mnt/all -name cpuset.cpus -exec sh -c \"echo $value > {}\" \\; 2>/dev/null; done
        umount /mnt/all 2>/dev/null; nproc",
    );
    assert_eq!(raised, "1");
    assert_eq!(greedy.hold(300, 0), "", "root in the guest raised its memory");
    let said = greedy.tries(FORKS);
    assert!(said.split_whitespace().next().is_some_and(|made| made.parse::<u32>().unwrap() < 128), "{said}");
}

fn is_changed_while_it_runs(greedy: &Inside<'_>, line: &mut Line) {
    greedy.ensure(line, limits("512 MiB", "2", "200"));
    assert_eq!(greedy.sees(), "512 2 2 1");
    assert_eq!((greedy.hold(400, 0), greedy.hold(600, 0)), ("400".into(), String::new()));
    greedy.says(&format!("({}) >/dev/null 2>&1 &", HOLDS.replace("MB", "300").replace("WAIT", "30")));
    std::thread::sleep(Duration::from_secs(2));
    let name = greedy.plan.name.clone();
    let less = Request::EnsureLimits { name: name.clone(), limits: limits("128 MiB", "1", "100") };
    let error = line.ask(less.clone()).unwrap_err();
    println!("             {error}");
    assert_eq!((error.kind, greedy.sees()), (ErrorKind::Invalid, "512 2 2 1".to_owned()));
    greedy.says("pkill -f bytearra[y]");
    line.twice(&less);
    assert_eq!(greedy.sees(), "128 1 1 1");
    greedy.ensure(line, limits("512 MiB", "2", "200"));
    let error =
        line.ask(Request::EnsureLimits { name: "nobody.lab.test".parse().unwrap(), limits: greedy.plan.limits });
    assert_eq!(error.unwrap_err().kind, ErrorKind::Missing);
}

/// A daemon that is killed, restarted or told to load itself anew leaves no guest without its view.
fn sees_itself_again(world: &World, greedy: &Inside<'_>, calm: &Inside<'_>) {
    let pid = || world.must("systemctl show --value -p MainPID corpus-lxcfs.service");
    for harm in
        ["kill -KILL $(cat /run/corpus-lxcfs.pid)", "systemctl restart corpus-lxcfs", "systemctl reload corpus-lxcfs"]
    {
        let before = pid();
        let started = Instant::now();
        world.must(harm);
        while !harm.contains("reload") && [before.clone(), "0\n".to_owned()].contains(&pid()) {
            assert!(started.elapsed() < Duration::from_secs(5), "lxcfs does not come back");
        }
        let whole = || [greedy, calm].map(|inside| inside.tries("free -m | awk '/Mem/ { print $2 }'"));
        while whole() != ["512", "1024"] {
            assert!(started.elapsed() < Duration::from_secs(5), "{harm}: {:?}", whole());
        }
        println!("{:8.1} ms  guests see themselves after {harm}", started.elapsed().as_secs_f64() * 1e3);
        assert_eq!(greedy.says("grep -c lxcfs /proc/self/mounts"), "8");
    }
}
