//! Snapshots: of one moment, brought back and taken back again, whatever a guest lies on.

use std::path::Path;
use std::time::{Duration, Instant};

use corpus_domain::{Bytes, JobId, SnapshotId};
use corpus_protocol::{Answer, ErrorKind, GuestPlan, Request};
use uuid::Uuid;

use crate::crowd::{measured, ms};
use crate::line::Line;
use crate::world::{World, patience, port};

/// Writes a number into one file and then into another, over and over.
const WRITES: &str = "n=0; while sleep 0.01; do n=$((n+1)); echo $n > /root/a.new; mv /root/a.new /root/a; echo $n > /root/b.new; mv /root/b.new /root/b; done";

/// The guest runs, and answers `key` as root.
pub fn are_kept(world: &World, line: &mut Line, plan: &GuestPlan, key: &Path) {
    let name = plan.name.clone();
    let inside = |command: &str| world.enter_soon("root", port(plan), key, command);
    let says = |command: &str| {
        let said = inside(command);
        assert!(said.success, "{command}: {}", said.text);
        said.text
    };
    says(&format!(
        "echo one > /root/state; rm -rf /usr/share/doc; systemd-run -q --unit writes sh -c '{WRITES}'; sleep 1"
    ));
    let (id, job) = (SnapshotId(Uuid::now_v7()), JobId(Uuid::now_v7()));
    let started = Instant::now();
    let taken = take(line, plan, id);
    let took = ms(started.elapsed());
    assert!(taken > Bytes(0));
    assert_eq!(take(line, plan, id), taken, "it is there");
    let before: u64 = says("cat /root/b").trim().parse().unwrap();
    says("sleep 0.5");
    assert!(says("cat /root/a").trim().parse::<u64>().unwrap() > before, "the guest does not go on");
    says("echo two > /root/state; mkdir /usr/share/doc");

    let restore = |job| Request::EnsureRestored { name: name.clone(), snapshot: id, job };
    let error = line.ask(restore(job)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Busy, "{error}");
    let stop = Request::EnsureStopped { name: name.clone(), grace_s: 0 };
    let start = Request::EnsureRunning { name: name.clone() };
    line.change(&stop);
    let started = Instant::now();
    line.twice(&restore(job));
    let back = ms(started.elapsed());
    let size = taken.0 / 1_000_000;
    measured(&format!(
        "a snapshot of {size} MB on {}: taken in {took:.0} ms, brought back in {back:.0} ms",
        plan.backing
    ));
    line.change(&start);
    assert_eq!(says("cat /root/state; ls -d /usr/share/doc 2>&1 | grep -c 'No such'"), "one\n1\n");
    let both = says("cat /root/a /root/b");
    let mut both = both.lines().map(|line| line.parse::<u64>().unwrap());
    let (a, b) = (both.next().unwrap(), both.next().unwrap());
    assert!(a > 0 && (a == b || a == b + 1), "not of one moment: {a} {b}");
    line.change(&stop);
    line.twice(&Request::EnsureReturned { name: name.clone(), job });
    line.change(&start);
    assert_eq!(says("cat /root/state; ls -d /usr/share/doc"), "two\n/usr/share/doc\n");

    line.change(&stop);
    line.twice(&restore(JobId(Uuid::now_v7())));
    line.twice(&Request::EnsureSettled { name: name.clone() });
    assert!(!line.change(&Request::EnsureReturned { name: name.clone(), job }), "nothing is kept any more");
    line.twice(&Request::EnsureNoSnapshot { name: name.clone(), snapshot: id });
    let error = line.ask(restore(JobId(Uuid::now_v7()))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Missing, "{error}");
    line.change(&start);
    assert_eq!(says("cat /root/state"), "one\n");
    let folder = format!("/var/lib/lxc/{name}");
    assert_eq!(
        world.must(&format!("ls -A {folder}/snapshots; ls -d {folder}/former {folder}/next 2>/dev/null || true")),
        ""
    );
    // One that stays when its guest goes must go with it.
    take(line, plan, id);
    assert_eq!(world.must(&format!("stat -c %a {folder}/snapshots")), "700\n");
}

/// An agent that is killed while it copies leaves no guest frozen, and nothing in the way of the next one.
pub fn thaws_without_the_agent(world: &World, line: &mut Line, plan: &GuestPlan) {
    let id = SnapshotId(Uuid::now_v7());
    let frozen = format!("lxc-info -sH -n {}", plan.name);
    let mut other = world.line();
    other.send(Request::EnsureSnapshot { name: plan.name.clone(), snapshot: id });
    let end = Instant::now() + patience(Duration::from_secs(10));
    while world.must(&frozen) != "FROZEN\n" {
        assert!(Instant::now() < end, "it never stood still");
    }
    world.must("kill -KILL $(pgrep -nf '^/var/lib/corpus/agent/corpus-agent-test serve')");
    drop(other);
    let end = Instant::now() + patience(Duration::from_secs(5));
    while world.must(&frozen) != "RUNNING\n" {
        assert!(Instant::now() < end, "the guest stays frozen");
    }
    take(line, plan, id);
}

/// Cuts `lxc-freeze` in the middle: whoever thaws the guest behind its back has it wait. What LXC says then.
const HALF_FREEZE: &str = r#"
group=$(ls /sys/fs/cgroup/freezer/corpus/$guest/payload/freezer.state /sys/fs/cgroup/corpus/$guest/payload/cgroup.freeze 2>/dev/null | head -n 1)
case $group in *.state) still=FROZEN on=THAWED ;; *) still=1 on=0 ;; esac
timeout 2 sh -c "while :; do echo $on >$group; done" &
sleep 0.1
timeout 1 lxc-freeze -n $guest
wait
said=$(lxc-info -sH -n $guest)
if [ "$said" = FREEZING ]; then echo $still >$group; else lxc-unfreeze -n $guest; fi
echo "LXC says $said"
"#;

/// What was ended while it froze a guest left it neither frozen nor thawed for LXC, which thaws it no more.
pub fn thaws_what_was_half_frozen(world: &World, plan: &GuestPlan) {
    let name = &plan.name;
    let said = format!("lxc-info -sH -n {name}");
    let is_half = |_| world.must(&format!("guest={name}{HALF_FREEZE}")).contains("LXC says FREEZING");
    assert!((0..20).any(is_half), "it was never cut while it froze");
    world.must(&format!("lxc-unfreeze -n {name}"));
    assert_eq!(world.must(&said), "FREEZING\n", "LXC thaws it by now: we need not");
    world.must(&format!("/var/lib/corpus/lxc/agent lxc-thaw {name}"));
    assert_eq!(world.must(&said), "RUNNING\n");
}

fn take(line: &mut Line, plan: &GuestPlan, snapshot: SnapshotId) -> Bytes {
    match line.ask(Request::EnsureSnapshot { name: plan.name.clone(), snapshot }) {
        Ok(Answer::Snapshot { bytes }) => bytes,
        other => panic!("{other:?}"),
    }
}
