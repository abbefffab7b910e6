//! A guest whose storage has a size: it can't fill more, and it grows.

use std::path::Path;
use std::time::{Duration, Instant};

use corpus_domain::{Backing, SizeProfile};
use corpus_protocol::{ErrorKind, GuestPlan, Request};

use crate::line::Line;
use crate::suite::{keys, leftovers, setup};
use crate::world::{World, guest, node, port};

/// What btrfs keeps for itself.
const LITTLE: u64 = 1_000_000;

/// Fills and enlarges one, running and stopped, and reboots its node: the line is cut, and another comes back.
pub fn is_real(world: &World, mut line: Line, backing: Backing) -> Line {
    println!("--- a size that is real, on {backing}");
    let before = leftovers(world);
    let (key, public) = world.key_pair(&format!("size-{backing}"));
    let size = SizeProfile::Xxxsmall;
    let plan = GuestPlan { size, autostart: true, ..guest("sized.lab.test", 17, backing) };
    let name = plan.name.clone();
    line.twice(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    line.change(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup(world, "size-host")) });
    line.change(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &public) });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[&plan])) });
    line.change(&Request::EnsureRunning { name: name.clone() });
    assert_size(world, &plan, &key, size);
    is_full_alone(world, &plan, &key);

    let enlarge = |size| Request::EnsureSize { name: name.clone(), size, shrink: false };
    assert!(!line.change(&enlarge(size)));
    line.twice(&enlarge(SizeProfile::Xxsmall));
    assert_size(world, &plan, &key, SizeProfile::Xxsmall);
    refuses(world, &mut line, &plan);
    assert_size(world, &plan, &key, SizeProfile::Xxsmall);
    let more = "dd if=/dev/zero of=/root/more bs=1M count=100 && sync && rm /root/full /root/more";
    let said = world.enter("root", port(&plan), &key, more);
    assert!(said.success, "{}", said.text);

    // Less again while it runs, with what is in it moved; what does not fit is refused.
    let shrink = |size| Request::EnsureSize { name: name.clone(), size, shrink: true };
    line.twice(&enlarge(SizeProfile::Small));
    // More than the smallest size with what comes of the image, which is not counted where it is laid under.
    let much = if backing == Backing::Overlayfs { 520 } else { 300 };
    let write =
        format!("dd if=/dev/urandom of=/root/kept bs=1M count={much} && sha256sum /root/kept > /root/sum && sync");
    assert!(world.enter("root", port(&plan), &key, &write).success);
    line.twice(&shrink(SizeProfile::Xsmall));
    assert_size(world, &plan, &key, SizeProfile::Xsmall);
    let error = line.ask(shrink(SizeProfile::Xxxsmall)).unwrap_err();
    assert!(error.kind == ErrorKind::Invalid && error.to_string().contains("more than fit"), "{error}");
    let told = line.reading(&name).storage.unwrap();
    assert!(told.used.0 > 500_000_000 && told.of.0.abs_diff(SizeProfile::Xsmall.storage().0) < LITTLE, "{told:?}");
    assert!(world.enter("root", port(&plan), &key, "sha256sum -c /root/sum && rm /root/kept && sync").success);

    line.twice(&Request::EnsureStopped { name: name.clone(), grace_s: 20 });
    line.twice(&enlarge(SizeProfile::Small));
    line.twice(&shrink(SizeProfile::Xsmall));
    line.close();
    let started = Instant::now();
    world.reboot();
    let mut line = world.line();
    // The node may start it meanwhile by itself.
    line.change(&Request::EnsureRunning { name: name.clone() });
    assert_size(world, &plan, &key, SizeProfile::Xsmall);
    line.twice(&Request::EnsureStopped { name: name.clone(), grace_s: 20 });
    line.change(&Request::EnsureRunning { name: name.clone() });
    world.reboot();
    assert_size(world, &plan, &key, SizeProfile::Xsmall);
    println!("{:8.1} ms  two reboots of the node", started.elapsed().as_secs_f64() * 1e3);

    let mut line = world.line();
    if backing == Backing::Loop {
        leftover_device(world, &mut line, &plan);
    }
    line.twice(&Request::EnsureAbsent { name, id: None });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
    assert_eq!(leftovers(world), before);
    line
}

/// `df` in the guest tells the profile's size.
fn assert_size(world: &World, plan: &GuestPlan, key: &Path, size: SizeProfile) {
    let said = world.enter_soon("root", port(plan), key, "df --block-size=1 --output=size / | tail -n 1");
    let (has, wanted) = (said.text.trim().parse::<u64>().unwrap_or_default(), size.storage().0);
    assert!(has <= wanted && has + LITTLE > wanted, "{size} has {wanted} bytes; df: {}", said.text);
}

/// It can be filled no more than to its size; it still answers, and what it removes is free again.
fn is_full_alone(world: &World, plan: &GuestPlan, key: &Path) {
    let inside = |command: &str| world.enter("root", port(plan), key, command);
    let said =
        inside("dd if=/dev/zero of=/root/full bs=1M; sync; rm /root/full; sync; dd if=/dev/zero of=/root/full bs=1M");
    let full = ["No space left on device", "Disk quota exceeded"].map(|why| said.text.matches(why).count());
    assert!(!said.success && full.iter().sum::<usize>() == 2, "{}", said.text);
    assert!(inside("test $(stat -c %s /root/full) -lt 500000000 && hostname").success);
    if plan.backing != Backing::Loop {
        return;
    }
    let free = world.must(&format!("stat -c '%b %s' /var/lib/lxc/{}/rootfs.img", plan.name));
    let mut numbers = free.split_whitespace().map(|number| number.parse::<u64>().unwrap());
    let (taken, size) = (numbers.next().unwrap() * 512, numbers.next().unwrap());
    assert!(size == plan.size.storage().0 && taken <= size + LITTLE, "{free}");
}

fn refuses(world: &World, line: &mut Line, plan: &GuestPlan) {
    let mut kind = |name: &str, size| {
        let error = line.ask(Request::EnsureSize { name: name.parse().unwrap(), size, shrink: false }).unwrap_err();
        println!("             {error}");
        error.kind
    };
    assert_eq!(kind(plan.name.as_str(), SizeProfile::Xxxsmall), ErrorKind::Invalid);
    assert_eq!(kind(plan.name.as_str(), SizeProfile::Xxxtrem), ErrorKind::NoSpace);
    assert_eq!(kind("nobody.lab.test", SizeProfile::Small), ErrorKind::Missing);
    // Where the node counts for projects, each guest has a size.
    if world.must("cat /proc/mounts").contains("prjquota") {
        return;
    }
    let other = guest("flat.lab.test", 18, Backing::Overlayfs);
    line.change(&Request::EnsureGuest { plan: Box::new(other.clone()) });
    let error = line
        .ask(Request::EnsureSize { name: other.name.clone(), size: SizeProfile::Large, shrink: false })
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    line.change(&Request::EnsureAbsent { name: other.name, id: None });
}

/// What an agent leaves that is killed between attaching a disk and mounting it.
fn leftover_device(world: &World, line: &mut Line, plan: &GuestPlan) {
    let name = plan.name.clone();
    let attach = format!("losetup --find --show /var/lib/lxc/{name}/rootfs.img");
    line.change(&Request::EnsureStopped { name: name.clone(), grace_s: 0 });
    world.must(&attach);
    line.twice(&Request::EnsureRunning { name: name.clone() });
    world.must(&attach);
    // The leftover is not what the guest has mounted.
    line.twice(&Request::EnsureSize { name: name.clone(), size: SizeProfile::Small, shrink: false });
    line.change(&Request::EnsureStopped { name: name.clone(), grace_s: 0 });
    world.must(&attach);
    let file =
        corpus_protocol::GuestFile { path: "/etc/motd".into(), text: "ours\n".into(), mode: 0o644, yields: false };
    let files = corpus_protocol::GuestSetup { files: vec![file], ..Default::default() };
    line.twice(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(files) });
    world.must(&attach);
    // Nobody starts a guest whose disk an agent has open.
    let file = format!("/var/lib/lxc/{}/rootfs.img", plan.name);
    world.must(&format!("(flock {file} sleep 2 >/dev/null 2>&1 &) ; sleep 0.2"));
    let started = Instant::now();
    line.change(&Request::EnsureRunning { name: plan.name.clone() });
    assert!(started.elapsed() > Duration::from_secs(1), "{:?}", started.elapsed());
}

/// An agent that is killed in the middle of making a guest leaves nothing that the next one does not take away.
pub fn outlives_the_agent(world: &World, backing: Backing, killed_after: impl Iterator<Item = Duration>) {
    println!("--- agents killed while they make a guest on {backing}");
    let before = leftovers(world);
    let plan = GuestPlan { size: SizeProfile::Xxxsmall, ..guest("killed.lab.test", 19, backing) };
    let request = Request::EnsureGuest { plan: Box::new(plan.clone()) };
    for after in killed_after {
        let mut line = world.line();
        line.send(request.clone());
        std::thread::sleep(after);
        world.must("kill -KILL $(pgrep -f '^/var/lib/corpus/agent/corpus-agent-test serve')");
        drop(line);
        let mut line = world.line();
        line.change(&request);
        assert!(!line.change(&request));
        line.twice(&Request::EnsureAbsent { name: plan.name.clone(), id: None });
        line.close();
        assert_eq!(leftovers(world), before, "killed after {after:?}");
    }
}
