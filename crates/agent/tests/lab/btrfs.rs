//! Guests that are snapshots: where the folder of guests is on btrfs, and held to their size there.

use std::path::Path;
use std::time::Duration;

use corpus_domain::{Backing, Driver, SizeProfile};
use corpus_protocol::{Answer, BackingFact, ErrorKind, GuestPlan, Request};

use crate::line::Line;
use crate::size;
use crate::suite::{conforms, keys, leftovers, setup};
use crate::world::{World, guest, node, port};

/// Makes a subvolume, and the same with more in the upper half of the call's number, which the kernel does not look at.
const SUBVOLUMES: &str = "import ctypes,os
libc=ctypes.CDLL(None,use_errno=True)
at=os.open('/root',os.O_RDONLY)
for call in (0x5000940e,0x15000940e,0x50009418):
    libc.syscall(ctypes.c_long(16),ctypes.c_long(at),ctypes.c_long(call),ctypes.create_string_buffer(b'\\0'*8+b'more',4096))
    print(os.strerror(ctypes.get_errno()))";

/// The node's folder of guests is on a btrfs until [`is_left_empty`].
pub fn goes_where_it_can(world: &World, mut line: Line) -> Line {
    println!("--- btrfs");
    let refused = fact(&mut line).obstacle;
    assert_eq!(refused.as_deref(), Some("/var/lib/lxc is not on btrfs"));
    let plan = guest("flat.lab.test", 18, Backing::Btrfs);
    let error = line.ask(Request::EnsureGuest { plan: Box::new(plan.clone()) }).unwrap_err();
    assert!(error.kind == ErrorKind::Invalid && error.message.contains("is not on btrfs"), "{error}");
    line.change(&Request::EnsureAbsent { name: plan.name.clone(), id: None });
    world.must(
        "truncate -s 30G /var/lib/guests.btrfs && mkfs.btrfs -q /var/lib/guests.btrfs && \
         mount -o loop /var/lib/guests.btrfs /var/lib/lxc",
    );
    assert_eq!(fact(&mut line).obstacle, None);
    // The image is made a subvolume once, and stays.
    line.twice(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    line.twice(&Request::EnsureAbsent { name: plan.name, id: None });
    conforms(world, &mut line, Driver::Lxc, Backing::Btrfs);
    is_real(world, &mut line);
    line.close();
    size::outlives_the_agent(world, Backing::Btrfs, (0..6).map(|step| Duration::from_millis(step * 15)));
    world.line()
}

/// The node was given back meanwhile.
pub fn is_left_empty(world: &World) {
    assert_eq!(world.must("ls -A /var/lib/lxc"), "");
    world.must("umount /var/lib/lxc && rm /var/lib/guests.btrfs");
}

fn fact(line: &mut Line) -> BackingFact {
    let Ok(Answer::Facts(facts)) = line.ask(Request::Facts) else { panic!("no facts") };
    let found = facts.drivers.into_iter().flat_map(|driver| driver.backings);
    found.into_iter().find(|fact| fact.backing == Backing::Btrfs).unwrap()
}

/// A guest can fill no more than its size, whatever it tries, and grows; on the node nobody else gets to its files.
fn is_real(world: &World, line: &mut Line) {
    let before = leftovers(world);
    let (key, public) = world.key_pair("snapshot");
    let plan = GuestPlan { size: SizeProfile::Xxxsmall, ..guest("snapshot.lab.test", 17, Backing::Btrfs) };
    let name = plan.name.clone();
    line.twice(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    line.change(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup(world, "snapshot-host")) });
    line.change(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &public) });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[&plan])) });
    line.change(&Request::EnsureRunning { name: name.clone() });
    assert!(world.enter_soon("root", port(&plan), &key, "true").success);
    fills_no_more(world, &plan, &key);

    let enlarge = |size| Request::EnsureSize { name: name.clone(), size, shrink: false };
    assert!(!line.change(&enlarge(SizeProfile::Xxxsmall)));
    line.twice(&enlarge(SizeProfile::Xxsmall));
    let more = "dd if=/dev/zero of=/root/more bs=1M count=100 && sync && rm /root/full /root/more";
    let said = world.enter("root", port(&plan), &key, more);
    assert!(said.success, "{}", said.text);
    let mut kind = |size| line.ask(enlarge(size)).unwrap_err().kind;
    assert_eq!((kind(SizeProfile::Xxxsmall), kind(SizeProfile::Xxxtrem)), (ErrorKind::Invalid, ErrorKind::NoSpace));

    let shrink = |size| Request::EnsureSize { name: name.clone(), size, shrink: true };
    let told = line.reading(&name).storage.unwrap();
    assert!(told.of == SizeProfile::Xxsmall.storage() && told.used.0 > 100_000_000, "{told:?}");
    let filled = "dd if=/dev/zero of=/root/much bs=1M count=400 && sync";
    assert!(world.enter("root", port(&plan), &key, filled).success);
    assert_eq!(line.ask(shrink(SizeProfile::Xxxsmall)).unwrap_err().kind, ErrorKind::Invalid);
    assert!(world.enter("root", port(&plan), &key, "rm /root/much && sync && sleep 2 && sync").success);
    line.twice(&shrink(SizeProfile::Xxxsmall));
    line.twice(&enlarge(SizeProfile::Xxsmall));

    let said = world.enter("root", port(&plan), &key, &format!("python3 -c \"{SUBVOLUMES}\"; ls /root/more"));
    assert_eq!(said.text.matches("Operation not permitted").count(), 3, "{}", said.text);
    assert!(said.text.contains("No such file"), "{}", said.text);
    let plant = "cp /bin/sh /root/sh && chmod 4755 /root/sh && chmod 755 /root";
    assert!(world.enter("root", port(&plan), &key, plant).success);
    let sh = format!("/var/lib/lxc/{name}/btrfs/rootfs/root/sh");
    assert_eq!(world.must(&format!("stat -c %U:%a {sh}")), "root:4755\n");
    assert!(!world.on_node(&format!("runuser -u nobody -- {sh} -p -c true")).success, "others run a guest's programs");

    line.twice(&Request::EnsureAbsent { name, id: None });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
    assert_eq!(leftovers(world), before);
}

fn fills_no_more(world: &World, plan: &GuestPlan, key: &Path) {
    let inside = |command: &str| world.enter("root", port(plan), key, command);
    let fill = "dd if=/dev/zero of=/root/full bs=1M";
    let said = inside(&format!("{fill}; sync; rm /root/full; sync; {fill}; sync; stat -c %s /root/full"));
    assert_eq!(said.text.matches("Disk quota exceeded").count(), 2, "{}", said.text);
    let written: u64 = said.text.lines().find_map(|line| line.parse().ok()).unwrap();
    assert!(written > 20_000_000 && written < plan.size.storage().0, "{}", said.text);
    assert!(inside("hostname").success);
}
