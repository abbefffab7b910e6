//! Root in a guest is nobody on its node, and nobody in any other guest.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use corpus_domain::{Backing, IdRange};
use corpus_protocol::{Answer, GuestFile, GuestPlan, GuestSetup, Request};

use crate::line::Line;
use crate::suite::{accounts, keys, leftovers, setup};
use crate::world::{World, guest, node, port};

/// A file of the image that one user may read, by an access list; and the same user may ping, by a capability.
pub const LISTED: &str = "/srv/listed";

/// Gives the image a file with an access list, before any guest is made of it.
pub fn list_a_file(world: &World) {
    let entries = "b''.join(struct.pack('<HHI',*e) for e in [(1,6,-1&0xffffffff),(2,4,1000),(4,0,-1&0xffffffff),(16,4,-1&0xffffffff),(32,0,-1&0xffffffff)])";
    let file = format!("/var/lib/corpus/images/debian-12/rootfs{LISTED}");
    world.must(&format!(
        "echo listed > {file} && chmod 600 {file} && python3 -c \"import os,struct; os.setxattr('{file}', 'system.posix_acl_access', struct.pack('<I',2)+{entries})\""
    ));
}

struct Confined<'a> {
    world: &'a World,
    plan: GuestPlan,
    key: PathBuf,
}

impl<'a> Confined<'a> {
    /// Makes and starts one that both users enter with the same key.
    fn new(world: &'a World, line: &mut Line, plan: GuestPlan) -> Self {
        let (key, public) = world.key_pair(&format!("confined-{}", plan.backing));
        let name = plan.name.clone();
        line.change(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
        let setup = setup(world, &format!("confined-host-{}", plan.backing));
        line.change(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup) });
        line.change(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root", "sysadmin"], &public) });
        line.change(&Request::EnsureRunning { name });
        Self { world, plan, key }
    }

    fn ids(&self) -> IdRange {
        self.plan.ids.unwrap()
    }

    /// What a command says in it, which must end well.
    fn says(&self, user: &str, command: &str) -> String {
        let said = self.world.enter_soon(user, port(&self.plan), &self.key, command);
        assert!(said.success, "{command}: {}", said.text);
        said.text
    }

    fn refuses(&self, command: &str) {
        let said = self.world.enter("root", port(&self.plan), &self.key, command);
        assert!(!said.success, "{command} was not refused: {}", said.text);
    }

    /// Its init as the node numbers it.
    fn init(&self) -> String {
        self.world.must(&format!("lxc-info -n {} -pH", self.plan.name)).trim().to_owned()
    }
}

/// What holds for a guest on each backing, running, restarted, and after the node's own reboot.
pub fn holds(world: &World, mut line: Line) -> Line {
    println!("--- confined");
    let before = leftovers(world);
    let backings = [Backing::Overlayfs, Backing::Loop, Backing::Dir];
    let plans: Vec<GuestPlan> = backings
        .into_iter()
        .zip(20..)
        .map(|(backing, number)| GuestPlan {
            autostart: true,
            size: corpus_domain::SizeProfile::Xxxsmall,
            ..guest(&format!("{backing}.lab.test"), number, backing)
        })
        .collect();
    line.change(&Request::ApplyNode { plan: Box::new(node(&plans.iter().collect::<Vec<_>>())) });
    let guests: Vec<Confined<'_>> = plans.into_iter().map(|plan| Confined::new(world, &mut line, plan)).collect();
    for guest in &guests {
        println!("             {}", guest.plan.backing);
        is_nobody(guest);
        is_a_whole_system(guest);
        is_written_to_as_its_own(&mut line, guest);
        outlives_its_own_reboot(guest);
    }
    are_apart(&guests);
    line.close();
    let started = Instant::now();
    world.reboot();
    for guest in &guests {
        is_nobody(guest);
    }
    println!("{:8.1} ms  the node's reboot, until all answer", started.elapsed().as_secs_f64() * 1e3);
    let mut line = world.line();
    for guest in &guests {
        is_written_to_as_its_own(&mut line, guest);
        outlives_a_kill(&mut line, guest);
        line.twice(&Request::EnsureAbsent { name: guest.plan.name.clone(), id: None });
    }
    line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
    assert_eq!(leftovers(world), before);
    line
}

/// On the node its root is the first of its ids; what is the node's stays the node's.
fn is_nobody(guest: &Confined<'_>) {
    assert_eq!(guest.says("root", "id -u"), "0\n");
    let (world, init, first) = (guest.world, guest.init(), guest.ids().first());
    let map = world.must(&format!("cat /proc/{init}/uid_map /proc/{init}/gid_map; stat -c %u:%g /proc/{init}/cwd/."));
    let words: Vec<&str> = map.split_whitespace().collect();
    let (first, len) = (first.to_string(), IdRange::LEN.to_string());
    let line = ["0", first.as_str(), len.as_str()];
    assert_eq!(words, [&line[..], &line[..], &[format!("{first}:{first}").as_str()]].concat());

    let pattern = world.must("cat /proc/sys/kernel/core_pattern");
    for command in [
        "mount -o remount,rw /proc/sys && echo '|/bin/false' > /proc/sys/kernel/core_pattern",
        "echo b > /proc/sysrq-trigger",
        "echo 1 > /sys/kernel/uevent_helper || echo /x > /sys/kernel/uevent_helper",
        "test -c /dev/kmsg || test -c /dev/mem || test -b /dev/loop0",
        "mknod /root/disk b 7 0",
        "mount -t ext4 /dev/loop0 /mnt",
        "insmod /nothing; test $? = 0",
        "g=$(mktemp -d) && mount -t cgroup -o memory none $g && echo /x > $g/release_agent",
        "nsenter --target 1 --user --preserve-credentials true",
        "date --set=@1",
        "chroot /proc/1/root/../../.. test -d /var/lib/corpus",
    ] {
        guest.refuses(command);
    }
    assert_eq!(world.must("cat /proc/sys/kernel/core_pattern"), pattern);
    // bpf, kexec_load, perf_event_open, userfaultfd are denied; keyctl and io_uring_setup are not there.
    let call = "python3 -c \"import ctypes; c=ctypes.CDLL(None,use_errno=True)\nfor n in (321,246,298,323,250,425):\n c.syscall(n,0,0,0,0,0); print(ctypes.get_errno(),end=' ')\"";
    assert_eq!(guest.says("root", call), "1 1 1 1 38 38 ");
    let status = world.must(&format!("grep -E '^(Seccomp|NoNewPrivs|CapBnd)' /proc/{init}/status"));
    assert!(status.contains("Seccomp:\t2"), "{status}");
}

/// All of it runs, its files have their owners, and what files carry beside them works.
fn is_a_whole_system(guest: &Confined<'_>) {
    let end = Instant::now() + Duration::from_secs(20);
    while guest.says("root", "systemctl is-system-running || true") != "running\n" {
        assert!(Instant::now() < end, "{}", guest.says("root", "systemctl is-system-running; systemctl --failed"));
    }
    assert_eq!(guest.says("sysadmin", &format!("cat {LISTED}")), "listed\n");
    guest.refuses(&format!("setpriv --reuid=65534 --clear-groups cat {LISTED}"));
    guest.says("sysadmin", "ping -c1 -W2 127.0.0.1 >/dev/null");
    let owners = "stat -c %U:%G:%a /etc/shadow /home/sysadmin /usr/bin/passwd /root";
    // Whether others read a home is another matter from Debian 13 on.
    let told = guest.says("root", owners).replace("sysadmin:700", "sysadmin:755");
    assert_eq!(told, "root:shadow:640\nsysadmin:sysadmin:755\nroot:root:4755\nroot:root:700\n");
    let own = "install -o games -g games -m 4755 /bin/true /usr/local/bin/own && stat -c %U:%a /usr/local/bin/own";
    assert_eq!(guest.says("root", own), "games:4755\n");
}

/// What the agent writes is the guest's root's, whether it runs or not, and old owners stay.
fn is_written_to_as_its_own(line: &mut Line, guest: &Confined<'_>) {
    let name = guest.plan.name.clone();
    for state in ["running", "stopped"] {
        let path = format!("/etc/made/{state}/file-{}", line.job.request);
        let file = GuestFile { path: path.clone(), text: format!("{state}\n"), mode: 0o640, yields: false };
        let setup = GuestSetup { files: vec![file], accounts: accounts(), ..GuestSetup::default() };
        if state == "stopped" {
            line.change(&Request::EnsureStopped { name: name.clone(), grace_s: 10 });
        }
        line.ask(Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup) }).unwrap();
        line.change(&Request::EnsureRunning { name: name.clone() });
        let seen =
            guest.says("root", &format!("cat {path}; stat -c %u:%g:%a {path} /etc/made /etc/made/{state} /etc/shadow"));
        assert_eq!(seen, format!("{state}\n0:0:640\n0:0:755\n0:0:755\n0:42:640\n"));
    }
}

fn outlives_its_own_reboot(guest: &Confined<'_>) {
    guest.says("root", "echo kept > /root/kept; sync");
    let before = guest.init();
    let _ = guest.world.enter("root", port(&guest.plan), &guest.key, "systemctl reboot");
    let end = Instant::now() + Duration::from_secs(20);
    while [before.as_str(), ""].contains(&guest.init().as_str()) {
        assert!(Instant::now() < end, "it did not reboot");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(guest.says("root", "cat /root/kept"), "kept\n");
    is_nobody(guest);
}

fn outlives_a_kill(line: &mut Line, guest: &Confined<'_>) {
    let name = &guest.plan.name;
    guest.world.must(&format!("pkill -KILL -f '^\\[lxc monitor\\] /var/lib/lxc {name}$'"));
    let end = Instant::now() + Duration::from_secs(10);
    while guest.world.must(&format!("lxc-info -n {name} -sH")).trim() != "STOPPED" {
        assert!(Instant::now() < end, "it outlives its monitor");
        std::thread::sleep(Duration::from_millis(50));
    }
    line.change(&Request::EnsureRunning { name: name.clone() });
    assert_eq!(guest.says("root", "cat /root/kept"), "kept\n");
}

/// Each has ids that no other has, so that nothing of one is another's.
fn are_apart(guests: &[Confined<'_>]) {
    let mut ids: Vec<IdRange> = guests.iter().map(Confined::ids).collect();
    ids.dedup();
    assert_eq!(ids.len(), guests.len());
    let world = guests[0].world;
    let mounts = world.must("cat /proc/mounts");
    assert!(!mounts.contains(" /var/lib/lxc/"), "the node has mounts of guests: {mounts}");
    let is_mapped = |guest: &&Confined<'_>| {
        let mounts = world
            .must(&format!("cat /proc/$(pgrep -f '^\\[lxc monitor\\] /var/lib/lxc {}$')/mountinfo", guest.plan.name));
        mounts.lines().any(|line| line.contains("/root ") && line.contains(&*guest.plan.name.to_string()))
    };
    assert_eq!(guests.iter().filter(is_mapped).count(), 2, "overlayfs and loop have a mount of their own");
}

/// Names that differ in what LXC, or we, append: each request means its own guest, and no other.
pub fn names_are_exact(world: &World, line: &mut Line) {
    println!("--- exact names");
    let before = leftovers(world);
    let names = ["same.lab.test", "same.lab.test-1", "same.lab.test.new", "payload.same.lab.test"];
    let plans: Vec<GuestPlan> =
        names.iter().zip(30..).map(|(name, number)| guest(name, number, Backing::Overlayfs)).collect();
    for plan in &plans {
        line.change(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    }
    let running = |line: &mut Line| -> Vec<String> {
        let Ok(Answer::Reading(reading)) = line.ask(Request::Read) else { panic!("no reading") };
        let running = reading.guests.into_iter().filter(|guest| guest.uptime_s.is_some());
        running.map(|guest| guest.name.to_string()).collect()
    };
    // A group that was left in its way made LXC take the name of the next one.
    world.must("for h in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do mkdir -p $h/lxc.payload.same.lab.test $h/corpus/same.lab.test/payload; done");
    for plan in plans.iter().rev() {
        line.twice(&Request::EnsureRunning { name: plan.name.clone() });
    }
    assert_eq!(running(line).len(), names.len());
    for (at, plan) in plans.iter().enumerate() {
        let attack =
            GuestFile { path: "/etc/whose".into(), text: format!("{}\n", plan.name), mode: 0o644, yields: false };
        let setup = GuestSetup { files: vec![attack], ..GuestSetup::default() };
        line.twice(&Request::SetUpGuest { name: plan.name.clone(), id: None, setup: Box::new(setup) });
        let root = world.must(&format!("cat /proc/$(lxc-info -n {} -pH)/root/etc/whose", plan.name));
        assert_eq!(root, format!("{}\n", plan.name));
        line.twice(&Request::EnsureStopped { name: plan.name.clone(), grace_s: 0 });
        assert_eq!(running(line).len(), names.len() - 1, "{at}");
        line.twice(&Request::EnsureRunning { name: plan.name.clone() });
    }
    for (gone, plan) in plans.iter().enumerate() {
        line.twice(&Request::EnsureAbsent { name: plan.name.clone(), id: None });
        let left: Vec<String> = running(line);
        assert!(left.len() == names.len() - gone - 1 && !left.contains(&plan.name.to_string()), "{left:?}");
    }
    assert_eq!(leftovers(world), before);
}

/// The node tells what holds guests, by having tried it.
pub fn is_told(line: &mut Line) {
    let Ok(Answer::Facts(facts)) = line.ask(Request::Facts) else { panic!("no facts") };
    for fact in &facts.confinement {
        println!(
            "             {}: {} ({})",
            fact.safeguard,
            if fact.in_force { "in force" } else { "not in force" },
            fact.detail
        );
    }
    let held = |name: &str| facts.confinement.iter().any(|fact| fact.safeguard.as_str() == name && fact.in_force);
    assert!(held("own ids") && held("system calls") && held("control groups"));
}
