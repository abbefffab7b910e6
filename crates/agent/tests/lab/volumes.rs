//! Guests on volumes: where the node has a place for them, and held to their size there.

use std::path::Path;
use std::time::Duration;

use corpus_domain::{Backing, Driver, SizeProfile};
use corpus_protocol::{Answer, BackingFact, ErrorKind, GuestPlan, Request};

use crate::line::Line;
use crate::size;
use crate::suite::{conforms, keys, leftovers, setup};
use crate::world::{World, guest, node, patience, port};

/// What changes a file system or holds it still, asked of the one that a guest's root lies on; and the disks of the node.
const TRIES: &str = "import ctypes,os,stat
libc=ctypes.CDLL(None,use_errno=True)
at=os.open('/root',os.O_RDONLY)
more=ctypes.create_string_buffer(bytes(8)+b'max',4096)
def tried(what,call):
    try: call(); print(what,'works')
    except OSError as error: print(what,error.strerror)
def ioctl(number):
    if libc.ioctl(at,ctypes.c_ulong(number),more):
        raise OSError(ctypes.get_errno(),os.strerror(ctypes.get_errno()))
for number in (0x50009403,0x41009432,0xc0045877,0xc0185879,0x5000940a,0x5000940e):
    tried(hex(number),lambda: ioctl(number))
for minor in range(8):
    tried('mknod',lambda: os.mknod('/root/disk%d'%minor,stat.S_IFBLK|0o600,os.makedev(MAJOR,minor)))
for name in ('/dev/mapper/control','/dev/vdb','/dev/dm-0','/dev/zd0'):
    tried(name,lambda: os.open(name,os.O_RDONLY))";

/// Where volumes are, and what an operator says to have it and to see what is in it.
pub struct Place {
    backing: Backing,
    /// What is said to be missing without it.
    missing: &'static str,
    /// What makes it.
    make: &'static str,
    /// All names that are there.
    list: &'static str,
    /// One for something else, that may take nearly all.
    others: &'static str,
    others_gone: &'static str,
    /// What [`Place::list`] says when the node was given back.
    empty: &'static str,
    gone: &'static str,
    /// Where its devices are.
    devices: &'static str,
}

pub const LVM: Place = Place {
    backing: Backing::Lvm,
    missing: "there is no volume group corpus",
    make: "vgcreate --quiet corpus /dev/vdb",
    list: "lvs --noheadings --options lv_name",
    others: "lvcreate --quiet --yes --virtualsize 21g --thinpool guests --name somebodys corpus",
    others_gone: "lvremove --quiet --yes corpus/somebodys",
    empty: "",
    gone: "vgremove --quiet --yes corpus && pvremove --quiet /dev/vdb && dmsetup ls",
    devices: "/dev/mapper/corpus-",
};

pub const ZFS: Place = Place {
    backing: Backing::Zfs,
    missing: "there is no pool corpus",
    make: "zpool create -O mountpoint=none corpus /dev/vdb",
    list: "zfs list -H -o name -t all",
    others: "zfs create -s -V 21g corpus/guests/somebodys",
    others_gone: "zfs destroy corpus/guests/somebodys",
    empty: "corpus\n",
    gone: "zpool destroy corpus",
    devices: "/dev/zvol/corpus/guests/",
};

impl Place {
    /// The node has the place until [`Place::is_left_empty`].
    pub fn goes_where_it_can(&self, world: &World, mut line: Line) -> Line {
        let backing = self.backing;
        println!("--- {backing}");
        let plan = guest("flat.lab.test", 18, backing);
        let why = self.missing;
        let refused = self.fact(&mut line).obstacle.unwrap();
        assert!(refused.contains(why), "{refused}");
        let error = line.ask(Request::EnsureGuest { plan: Box::new(plan.clone()) }).unwrap_err();
        assert!(error.kind == ErrorKind::Invalid && error.message.contains(why), "{error}");
        line.change(&Request::EnsureAbsent { name: plan.name.clone(), id: None });
        world.must(self.make);
        let BackingFact { obstacle, room, .. } = self.fact(&mut line);
        assert_eq!(obstacle, None);
        // The pool is made once, and the image's volume.
        line.twice(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
        line.twice(&Request::EnsureAbsent { name: plan.name, id: None });
        let alone = self.volumes(world);
        assert_eq!(alone.matches("image.").count(), 1, "{alone}");
        // What guests may have there is told before the pool is made, and hardly less after.
        let [before, after] = [room, self.fact(&mut line).room].map(|room| room.unwrap().0);
        assert!(before < 30_000_000_000 && (15_000_000_000..before).contains(&after), "{before}, then {after}");
        line
    }

    /// What must hold of guests there.
    pub fn holds(&self, world: &World, mut line: Line) -> Line {
        let (backing, alone) = (self.backing, self.volumes(world));
        self.keeps_promises(world, &mut line);
        self.keeps_to_itself(world, &mut line);
        line.close();
        size::outlives_the_agent(world, backing, (0..6).map(|step| patience(Duration::from_millis(step * 80))));
        assert_eq!(self.volumes(world), alone);
        // The image's volume is made anew each time.
        for step in 1..4 {
            world.must(&format!("rm /var/lib/corpus/{backing}-images/debian-12/sha256"));
            size::outlives_the_agent(world, backing, std::iter::once(patience(Duration::from_millis(step * 350))));
            assert_eq!(self.volumes(world).matches("image.").count(), 1);
        }
        let mut line = size::is_real(world, world.line(), backing);
        conforms(world, &mut line, Driver::Lxc, backing);
        line
    }

    /// The node was given back meanwhile.
    pub fn is_left_empty(&self, world: &World) {
        assert_eq!(world.must("ls -A /var/lib/lxc"), "");
        assert_eq!(self.volumes(world), self.empty);
        world.must(self.gone);
    }

    fn volumes(&self, world: &World) -> String {
        world.must(self.list)
    }

    fn fact(&self, line: &mut Line) -> BackingFact {
        let Ok(Answer::Facts(facts)) = line.ask(Request::Facts) else { panic!("no facts") };
        let found = facts.drivers.into_iter().flat_map(|driver| driver.backings);
        found.into_iter().find(|fact| fact.backing == self.backing).unwrap()
    }

    /// What others were promised in the pool is not promised again, though nothing is in it.
    fn keeps_promises(&self, world: &World, line: &mut Line) {
        let before = leftovers(world);
        let room = |line: &mut Line| self.fact(line).room.unwrap();
        let without_others = room(line);
        world.must(self.others);
        assert!(room(line) < without_others, "{without_others:?}");
        let plan = guest("flat.lab.test", 18, self.backing);
        let error = line.ask(Request::EnsureGuest { plan: Box::new(plan.clone()) }).unwrap_err();
        assert!(error.kind == ErrorKind::NoSpace && error.message.contains("corpus/guests"), "{error}");
        line.change(&Request::EnsureAbsent { name: plan.name.clone(), id: None });
        let small = GuestPlan { size: SizeProfile::Xxxsmall, ..plan };
        line.twice(&Request::EnsureGuest { plan: Box::new(small.clone()) });
        let error = line
            .ask(Request::EnsureSize { name: small.name.clone(), size: SizeProfile::Small, shrink: false })
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
        line.twice(&Request::EnsureAbsent { name: small.name, id: None });
        world.must(self.others_gone);
        assert_eq!(leftovers(world), before);
    }

    /// The root of a guest gets to no device, and changes nothing about its file system that the node has to do with.
    fn keeps_to_itself(&self, world: &World, line: &mut Line) {
        let before = leftovers(world);
        let (key, public) = world.key_pair("volume");
        let plan = GuestPlan { size: SizeProfile::Xxxsmall, ..guest("volume.lab.test", 17, self.backing) };
        let name = plan.name.clone();
        line.twice(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
        line.change(&Request::SetUpGuest {
            name: name.clone(),
            id: None,
            setup: Box::new(setup(world, "volume-host")),
        });
        line.change(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &public) });
        line.change(&Request::ApplyNode { plan: Box::new(node(&[&plan])) });
        line.change(&Request::EnsureRunning { name: name.clone() });
        assert!(world.enter_soon("root", port(&plan), &key, "true").success);
        let volume = world.must(&format!("cat /var/lib/lxc/{name}/{}/volume", self.backing));
        let device = format!("{}{}", self.devices, volume.trim());
        let label = || world.must(&format!("btrfs filesystem label {device}"));
        assert_eq!(label(), "\n");
        tries(world, &plan, &key, &device);
        assert_eq!(label(), "\n");
        // It goes while it is full, and while somebody writes.
        world.enter("root", port(&plan), &key, "systemd-run -q sh -c 'cat /dev/zero > /root/full'; sleep 1");
        line.twice(&Request::EnsureAbsent { name, id: None });
        line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
        assert_eq!(leftovers(world), before);
    }
}

fn tries(world: &World, plan: &GuestPlan, key: &Path, device: &str) {
    let major = world.must(&format!("stat -Lc %Hr {device}"));
    let program = TRIES.replace("MAJOR", major.trim());
    let said = world.enter("root", port(plan), key, &format!("python3 -c \"{program}\""));
    let told: Vec<&str> = said.text.lines().collect();
    let refused = |line: &&&str| {
        ["Operation not permitted", "No such file", "Permission denied"].iter().any(|why| line.contains(why))
    };
    assert!(said.success && told.len() == 18 && told.iter().filter(refused).count() == 18, "{}", said.text);
    let others = world.enter("root", port(plan), key, "mount; ls /dev");
    assert!(
        !["copy.", "dm-", "zd", "vd"].iter().any(|other| others.text.lines().any(|line| line.starts_with(other))),
        "{}",
        others.text
    );
}
