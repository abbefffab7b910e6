//! The suite: what must hold on every node, and for every driver.

use std::time::{Duration, Instant};

use corpus_domain::{Backing, Driver, GuestState, UnixUser};
use corpus_protocol::{
    Account, Answer, AuthorizedKeys, ErrorKind, GuestCheck, GuestFile, GuestPlan, GuestSetup, ImageSource, Request,
    SshHostKey, UnixPasswordHash,
};

use crate::confined;
use crate::line::Line;
use crate::snapshots;
use crate::trees;
use crate::world::{World, guest, image, node, patience, port};

const HASH: &str =
    "$6$rounds=5000$abcdefgh$5Jm2cRsY2Rd6Xj5M6YyS7Wc0Cq7w4m1Hkqk7kqk7kqk7kqk7kqk7kqk7kqk7kqk7kqk7kqk7kqk7kqk7kq";

pub fn node_is_set_up(world: &World, line: &mut Line) {
    clear(world, line);
    let Ok(Answer::Facts(facts)) = line.ask(Request::Facts) else { panic!("no facts") };
    assert_eq!(format!("{}\n", facts.hostname), world.must("hostname"));
    assert!(facts.addresses.iter().any(|ip| ip.to_string() == world.address));
    line.change(&Request::EnsureDriver { driver: Driver::Lxc });
    assert!(!line.change(&Request::EnsureDriver { driver: Driver::Lxc }));
    let plan = Box::new(node(&[]));
    line.twice(&Request::ApplyNode { plan: plan.clone() });
    assert_eq!(drift(line, Request::CheckNode { plan }), Vec::<String>::new());
    assert!(world.http("nobody.example.org").text.starts_with("No site of this name here.\n 404"));
    world.copy(&world.image, "/var/lib/corpus/upload/image");
    let sum = world.must("sha256sum /var/lib/corpus/upload/image");
    let sha256 = sum.split_whitespace().next().unwrap().to_owned();
    let path = "/var/lib/corpus/upload/image".to_owned();
    line.twice(&Request::EnsureImage {
        name: image(),
        source: ImageSource::Archive { path, sha256: sha256.clone(), unpacked: None },
    });
    assert_eq!(line.ask(Request::ListImages), Ok(Answer::Images { images: vec![(image(), sha256)] }));
    assert_eq!(world.must("ls /var/lib/corpus/upload"), "");
    confined::list_a_file(world);
}

/// What an earlier run that failed may have left.
fn clear(world: &World, line: &mut Line) {
    let Ok(Answer::Reading(reading)) = line.ask(Request::Read) else { panic!("no reading") };
    for guest in reading.guests {
        line.change(&Request::EnsureAbsent { name: guest.name, id: None });
    }
    line.change(&Request::RemoveNode);
    world.must("mkdir -p /var/lib/corpus/upload");
}

pub fn node_is_checked(world: &World, line: &mut Line) {
    let plan = node(&[]);
    line.change(&Request::ApplyNode { plan: Box::new(plan.clone()) });
    let mut old = plan.clone();
    old.revision = 0;
    let error = line.ask(Request::ApplyNode { plan: Box::new(old) }).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Fenced);

    world.must("nft delete table inet corpus; echo x >> /etc/corpus/hosts.map; ip link set lxcbr1 down; ip address flush dev lxcbr1");
    let found = drift(line, Request::CheckNode { plan: Box::new(plan.clone()) });
    assert_eq!(found.len(), 3, "{found:?}");
    line.twice(&Request::ApplyNode { plan: Box::new(plan.clone()) });
    assert_eq!(drift(line, Request::CheckNode { plan: Box::new(plan.clone()) }), Vec::<String>::new());

    // A part of the proxy that can't come up: the previous one stays in force.
    world.must("mv /usr/sbin/haproxy /usr/sbin/haproxy.away && printf '#!/bin/sh\\necho no good >&2; exit 1\\n' > /usr/sbin/haproxy && chmod 755 /usr/sbin/haproxy");
    let far = guest("far.lab.test", 9, Backing::Overlayfs);
    let mut wider = node(&[&far]);
    wider.ssh_routes[0].port = 40_900.try_into().unwrap();
    let error = line.ask(Request::ApplyNode { plan: Box::new(wider) }).unwrap_err();
    world.must("mv /usr/sbin/haproxy.away /usr/sbin/haproxy");
    assert_eq!((error.kind, error.message.contains("no good")), (ErrorKind::CheckFailed, true), "{error}");
    assert_eq!(drift(line, Request::CheckNode { plan: Box::new(plan) }), Vec::<String>::new());
}

pub fn drift(line: &mut Line, request: Request) -> Vec<String> {
    match line.ask(request) {
        Ok(Answer::Drift { differences }) => differences.into_iter().map(|one| one.text).collect(),
        other => panic!("{other:?}"),
    }
}

pub fn setup(world: &World, name: &str) -> GuestSetup {
    let (private, public) = world.key_pair(name);
    let file = |path: &str, text: String| GuestFile { path: path.into(), text, mode: 0o644, yields: false };
    GuestSetup {
        files: vec![
            file("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 one.lab.test\n".to_owned()),
            file("/etc/hostname", "one.lab.test\n".to_owned()),
            file("/srv/deep/er/file", "x\n".into()),
        ],
        host_key: Some(SshHostKey { private: std::fs::read_to_string(private).unwrap(), public }),
        accounts: accounts(),
        ..GuestSetup::default()
    }
}

pub fn accounts() -> Vec<Account> {
    let account = |user: &str| Account { user: user.parse().unwrap(), password: UnixPasswordHash(HASH.into()) };
    vec![account("root"), account("sysadmin")]
}

pub fn keys(users: &[&str], public: &str) -> AuthorizedKeys {
    users.iter().map(|user| (user.parse::<UnixUser>().unwrap(), vec![public.to_owned()])).collect()
}

/// From nothing to a guest that one can enter, and back to nothing; each request twice.
pub fn conforms(world: &World, line: &mut Line, driver: Driver, backing: Backing) {
    println!("--- {driver} on {backing}");
    let plan = GuestPlan { driver, ..guest("one.lab.test", 10, backing) };
    let other = guest("two.lab.test", 11, Backing::Overlayfs);
    let name = plan.name.clone();
    let before = leftovers(world);
    let host = setup(world, &format!("host-{backing}"));
    let (alice, alice_line) = world.key_pair(&format!("alice-{backing}"));
    let (bob, bob_line) = world.key_pair(&format!("bob-{backing}"));

    line.twice(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    if backing == Backing::Overlayfs {
        assert!(!line.change(&Request::EnsureNoImage { name: image() }), "what a guest lies on stays");
    }
    line.twice(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(host.clone()) });
    line.twice(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root", "sysadmin"], &alice_line) });
    line.twice(&Request::ApplyNode { plan: Box::new(node(&[&plan])) });
    let started = Instant::now();
    line.change(&Request::EnsureRunning { name: name.clone() });
    let said = world.enter_soon("sysadmin", port(&plan), &alice, "hostname; sudo -n id -u");
    println!("{:8.1} ms  from EnsureRunning to the first login", started.elapsed().as_secs_f64() * 1e3);
    assert_eq!(said.text, "one.lab.test\n0\n");
    assert!(!line.change(&Request::EnsureRunning { name: name.clone() }));

    let inside = |user: &str, key, command: &str| world.enter(user, port(&plan), key, command);
    assert_eq!(
        inside("root", &alice, "cat /srv/deep/er/file; stat -c %a:%U /etc/ssh/ssh_host_ed25519_key").text,
        "x\n600:root\n"
    );
    assert!(inside("root", &alice, "cat /etc/shadow").text.contains(&format!("sysadmin:{HASH}:")));
    assert!(!inside("root", &bob, "true").success);
    line.twice(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &bob_line) });
    assert!(inside("root", &bob, "true").success);
    assert!(!inside("root", &alice, "true").success && !inside("sysadmin", &alice, "true").success);
    let fresh = setup(world, &format!("fresh-{backing}"));
    line.twice(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(fresh) });
    assert!(world.enter_soon("root", port(&plan), &bob, "true").success);

    serves_http_alone(world, line, &plan, &other, &bob);
    assert_eq!(state(line, &plan), Some(GuestState::Running));
    line.twice(&Request::EnsureStopped { name: name.clone(), grace_s: 20 });
    assert_eq!(state(line, &plan), Some(GuestState::Stopped));
    line.twice(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &alice_line) });
    line.twice(&Request::EnsureRunning { name: name.clone() });
    assert!(world.enter_soon("root", port(&plan), &alice, "true").success);
    // One that goes on elsewhere rests, also when the node boots; another one of its name goes on.
    let at_boot = || world.must(&format!("grep ^lxc.start.auto /var/lib/lxc/{name}/config"));
    line.change(&Request::EnsureGuest { plan: Box::new(GuestPlan { autostart: true, ..plan.clone() }) });
    assert!(!line.change(&Request::EnsureResting { name: name.clone(), id: other.id.unwrap() }));
    assert_eq!((state(line, &plan), at_boot().trim()), (Some(GuestState::Running), "lxc.start.auto = 1"));
    line.twice(&Request::EnsureResting { name: name.clone(), id: plan.id.unwrap() });
    assert_eq!((state(line, &plan), at_boot().trim()), (Some(GuestState::Stopped), "lxc.start.auto = 0"));
    line.twice(&Request::EnsureRunning { name: name.clone() });
    snapshots::are_kept(world, line, &plan, &alice);
    trees::are_brought_back(world, line, &plan, &alice);
    if backing == Backing::Dir {
        snapshots::thaws_without_the_agent(world, line, &plan);
        snapshots::thaws_what_was_half_frozen(world, &plan);
    }
    line.twice(&Request::EnsureAbsent { name: name.clone(), id: None });
    line.twice(&Request::ApplyNode { plan: Box::new(node(&[])) });
    assert_eq!(leftovers(world), before);
    let error = line.ask(Request::EnsureRunning { name }).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Missing, "{error}");
}

/// A name leads to its own guest only, on kept connections too; guests don't reach each other or the node.
fn serves_http_alone(world: &World, line: &mut Line, one: &GuestPlan, two: &GuestPlan, key: &std::path::Path) {
    line.change(&Request::EnsureGuest { plan: Box::new(two.clone()) });
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    line.change(&Request::SetUpGuest {
        name: two.name.clone(),
        id: None,
        setup: Box::new(setup(world, &format!("two-{}", one.backing))),
    });
    line.change(&Request::EnsureKeys { name: two.name.clone(), id: None, keys: keys(&["root"], public.trim()) });
    line.change(&Request::EnsureRunning { name: two.name.clone() });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[one, two])) });
    for guest in [one, two] {
        let web = format!(
            "mkdir /www && cd /www && echo {} > index.html && systemd-run -q python3 -m http.server -d /www 80",
            guest.name
        );
        let said = world.enter_soon("root", port(guest), key, &web);
        assert!(said.success, "{}", said.text);
    }
    for guest in [one, two, one, two] {
        let wanted = format!("{}\n 200", guest.name);
        let end = Instant::now() + patience(Duration::from_secs(5));
        while world.http(guest.name.as_str()).text != wanted {
            assert!(Instant::now() < end, "{}", world.http(guest.name.as_str()).text);
        }
    }
    let reach = |command: &str| world.enter("root", port(one), key, command);
    assert!(reach("ping -c1 -W1 10.5.0.1").success);
    assert!(!reach("ping -c1 -W1 10.5.0.11").success, "a guest reaches another");
    assert!(reach("timeout 1 bash -c '</dev/tcp/10.5.0.1/80'").success, "a guest reaches the proxy as anybody does");
    for place in ["10.5.0.11/22", "10.5.0.1/22"] {
        assert!(!reach(&format!("timeout 1 bash -c '</dev/tcp/{place}'")).success, "a guest reaches {place}");
    }
    line.change(&Request::EnsureAbsent { name: two.name.clone(), id: None });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[one])) });
}

fn state(line: &mut Line, plan: &GuestPlan) -> Option<GuestState> {
    let Ok(Answer::Reading(reading)) = line.ask(Request::Read) else { panic!("no reading") };
    let found = reading.guests.into_iter().find(|guest| guest.name == plan.name)?;
    assert_eq!(found.uptime_s.is_some() && found.memory_used.is_some(), found.state == GuestState::Running);
    Some(found.state)
}

/// Everything on the node that could be a guest's: folders, cables, control groups, mounts.
/// The kernel's loop devices are shared with nodes of other labs: those of this node's disk count.
pub fn leftovers(world: &World) -> String {
    world.must("ls -A /var/lib/lxc; lvs --noheadings --options lv_name 2>/dev/null | grep -E '^ *(guest|copy)[.]'; zfs list -H -o name -t all 2>/dev/null | grep -E '(guest|copy)[.]'; ls /sys/class/net; find /sys/fs/cgroup -maxdepth 3 -name '*.lab.test*'; grep -c /var/lib/lxc/ /proc/mounts || true; pgrep -fc lxc/.*lab.test || true; losetup --list --noheadings --output BACK-MAJ:MIN,BACK-FILE | grep \"$(stat -c %Hd:%Ld /var/lib/lxc) .*lab.test\" || true")
}

/// The root of a guest lays traps; the agent stays inside the guest and removes it all.
pub fn hostile_guest(world: &World, line: &mut Line) {
    println!("--- hostile guest");
    let plan = guest("evil.lab.test", 12, Backing::Overlayfs);
    let name = plan.name.clone();
    let (key, public) = world.key_pair("evil");
    world.must("rm -rf /tmp/outside && mkdir /tmp/outside && echo safe > /tmp/outside/file");
    line.change(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    line.change(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup(world, "evil-host")) });
    line.change(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &public) });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[&plan])) });
    line.change(&Request::EnsureRunning { name: name.clone() });
    let traps = "rm -rf /etc/corpus && ln -s /tmp/outside /etc/corpus && ln -sf /tmp/outside/file /etc/hosts && \
        ln -s ../../../../../../../../tmp/outside /srv/up && mkfifo /srv/pipe && ln -s /proc/self/root /srv/magic && \
        ln -s /sys/kernel /srv/sys && touch /root/stays && ! python3 -c \"import fcntl,array;f=open('/root/stays');fcntl.ioctl(f,0x40086602,array.array('l',[0x10]))\"";
    let said = world.enter_soon("root", port(&plan), &key, traps);
    assert!(said.success, "{}", said.text);
    for _ in ["running", "stopped"] {
        for path in [
            "/etc/hosts",
            "/srv/up/file",
            "/srv/up/new",
            "/srv/pipe",
            "/srv/magic/x",
            "/srv/sys/x",
            "/etc/corpus/authorized_keys/x",
        ] {
            let file = GuestFile { path: path.into(), text: "ours".into(), mode: 0o644, yields: false };
            let setup = GuestSetup { files: vec![file], ..GuestSetup::default() };
            let reply = line.ask(Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup) });
            println!("             {path}: {}", reply.map_or_else(|error| error.message, |_| "written inside".into()));
        }
        let _ = line.ask(Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &public) });
        assert_eq!(world.must("cat /tmp/outside/*; ls -A /tmp/outside"), "safe\nfile\n");
        let _ = line.ask(Request::EnsureStopped { name: name.clone(), grace_s: 5 });
    }
    line.twice(&Request::EnsureAbsent { name, id: None });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
}

/// A controller that lost its lease is refused; another job's requests are not.
pub fn fencing(world: &World, line: &mut Line) {
    println!("--- fencing");
    let name = guest("late.lab.test", 13, Backing::Overlayfs).name;
    line.job.generation = 5;
    assert!(line.ask(Request::EnsureAbsent { name: name.clone(), id: None }).is_ok());
    let mut late = world.line();
    late.job = line.job;
    late.job.generation = 4;
    assert_eq!(late.ask(Request::EnsureAbsent { name: name.clone(), id: None }).unwrap_err().kind, ErrorKind::Fenced);
    late.job.generation = 6;
    assert!(late.ask(Request::EnsureAbsent { name: name.clone(), id: None }).is_ok());
    assert_eq!(line.ask(Request::EnsureAbsent { name, id: None }).unwrap_err().kind, ErrorKind::Fenced);
    line.job.generation = 7;
    late.close();
    let journal = world.must(&format!("cat /var/lib/corpus/jobs/{}.log", line.job.id));
    assert!(journal.lines().last().unwrap().contains("fenced") || journal.contains("\"kind\":\"fenced\""), "{journal}");
}

/// A controller that was brought back from a backup chooses what a guest has that it does not know: that guest stays, and
/// nobody gets its files or its address.
pub fn unknown_guest(world: &World, line: &mut Line) {
    println!("--- guest that the controller does not know");
    let plan = guest("kept.lab.test", 22, Backing::Overlayfs);
    let before = leftovers(world);
    line.change(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    let kept = world.must("stat -c %i:%Y /var/lib/lxc/kept.lab.test/config /var/lib/lxc/kept.lab.test/delta0");
    let free = guest("new.lab.test", 23, Backing::Overlayfs);
    let of_its_name = GuestPlan { id: free.id, ..plan.clone() };
    let at_its_address = GuestPlan { net: plan.net.clone(), ..free.clone() };
    let with_its_ids = GuestPlan { ids: plan.ids, ..free.clone() };
    for (refused, why) in [
        (of_its_name, "another guest kept.lab.test is on the node"),
        (at_its_address, "the guest kept.lab.test on the node has the address 10.5.0.22"),
        (with_its_ids, "the guest kept.lab.test on the node has the ids from"),
    ] {
        let absent = Request::EnsureAbsent { name: refused.name.clone(), id: refused.id };
        let error = line.ask(Request::EnsureGuest { plan: Box::new(refused) }).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
        assert!(error.message.contains(why), "{error}");
        assert!(!line.change(&absent), "what undoes it leaves it alone");
    }
    let id = free.id;
    let its_keys =
        Request::EnsureKeys { name: plan.name.clone(), id, keys: keys(&["root"], "ssh-ed25519 AAAA nobody") };
    assert_eq!(line.ask(its_keys).unwrap_err().kind, ErrorKind::Invalid);
    let its_files = Request::SetUpGuest { name: plan.name.clone(), id, setup: Box::default() };
    assert_eq!(line.ask(its_files).unwrap_err().kind, ErrorKind::Invalid);
    let guests = vec![GuestCheck { name: plan.name.clone(), id, there: true, running: None, keys: None }];
    let told = drift(line, Request::CheckGuests { guests, images: Vec::new() });
    assert!(told.iter().any(|text| text.contains("another guest has its name")), "{told:?}");
    assert_eq!(world.must("stat -c %i:%Y /var/lib/lxc/kept.lab.test/config /var/lib/lxc/kept.lab.test/delta0"), kept);
    line.twice(&Request::EnsureAbsent { name: plan.name, id: plan.id });
    assert_eq!(leftovers(world), before);
}

/// A copy is cancelled in the middle: its processes are gone, and so is what it made.
pub fn cancel(world: &World, line: &mut Line) {
    println!("--- cancel");
    let plan = guest("slow.lab.test", 14, Backing::Dir);
    let before = leftovers(world);
    let id = line.send(Request::EnsureGuest { plan: Box::new(plan.clone()) });
    println!("             {:?}", line.event());
    let started = Instant::now();
    line.cancel(id);
    assert_eq!(line.result(id).unwrap_err().kind, ErrorKind::Cancelled);
    println!("{:8.1} ms  cancel", started.elapsed().as_secs_f64() * 1e3);
    assert!(!world.on_node("pgrep -x cp").success, "cp lives");
    line.change(&Request::EnsureAbsent { name: plan.name, id: None });
    assert_eq!(leftovers(world), before);
}

/// The line is cut while a request runs: the request goes on to its end, then the agent ends.
pub fn cut(world: &World) {
    println!("--- cut line");
    let plan = guest("cut.lab.test", 15, Backing::Dir);
    let mut line = world.line();
    line.send(Request::EnsureGuest { plan: Box::new(plan.clone()) });
    let _ = line.event();
    drop(line);
    let end = Instant::now() + patience(Duration::from_mins(1));
    let mut after = world.line();
    while state(&mut after, &plan).is_none() {
        assert!(Instant::now() < end, "the copy did not go on");
        std::thread::sleep(Duration::from_millis(200));
    }
    after.change(&Request::EnsureAbsent { name: plan.name, id: None });
    after.close();
}

pub fn node_is_given_back(world: &World, line: &mut Line) {
    println!("--- node given back");
    let plan = guest("last.lab.test", 16, Backing::Overlayfs);
    line.change(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    assert_eq!(line.ask(Request::RemoveNode).unwrap_err().kind, ErrorKind::Invalid);
    line.change(&Request::EnsureAbsent { name: plan.name, id: None });
    line.twice(&Request::RemoveNode);
    assert_eq!(world.must("ls -A /var/lib/corpus; ls /etc/corpus 2>/dev/null || true"), "agent\n");
    let counted = "/var/lib/corpus-traffic /var/lib/private/corpus-traffic /var/lib/haproxy/corpus /run/corpus-traffic";
    assert_eq!(world.must(&format!("ls -d {counted} 2>/dev/null || true")), "");
    assert_eq!(
        world.must(
            "ls /etc/systemd/system /etc/sysctl.d | grep corpus || true; ls /sys/class/net; nft list tables
            cat /proc/sys/net/ipv4/ip_local_reserved_ports"
        ),
        "eth0\nlo\n\n"
    );
}
