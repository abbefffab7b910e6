//! Guests whose files are folders of the node's own file system, which holds them to their size: on a node that counts for
//! projects.

use std::time::Duration;

use corpus_domain::{Backing, Driver, SizeProfile};
use corpus_protocol::{Answer, GuestPlan, Request};

use crate::line::Line;
use crate::size;
use crate::suite::{conforms, keys, leftovers, setup};
use crate::world::{World, guest, node, patience, port};

/// A guest's root tries to have his files counted to nobody, or to another: by each of the two calls, for a file, a folder
/// and his root. Then he fills it with files that have nothing in them, and with names of one that has.
const TRIES: &str = "import fcntl,os,struct
GET,SET,FLAGS,SETFLAGS=0x801c581f,0x401c5820,0x80086601,0x40086602
os.makedirs('/root/in',exist_ok=True); open('/root/file','w').write('x'*9999)
for path in ('/root/file','/root/in','/'):
    at=os.open(path,os.O_RDONLY)
    has=list(struct.unpack('IIIII8s',fcntl.ioctl(at,GET,bytes(28))))
    for number in (0,1,has[3]+1):
        try: fcntl.ioctl(at,SET,struct.pack('IIIII8s',has[0]&~0x200,has[1],has[2],number,has[4],has[5])); print(path,number,'works')
        except OSError as error: print('refused:',error.strerror)
    flags=struct.unpack('q',fcntl.ioctl(at,FLAGS,bytes(8)))[0]
    if flags&0x20000000:
        try: fcntl.ioctl(at,SETFLAGS,struct.pack('q',flags&~0x20000000)); print(path,'is nobodys')
        except OSError as error: print('refused:',error.strerror)
made=0
try:
    for made in range(90000): os.close(os.open('/root/in/%d'%made,os.O_CREAT|os.O_WRONLY))
except OSError as error: print('refused:',error.strerror)
print('files',made)";

/// What must hold of guests there, whose files are folders.
pub fn are_held(world: &World, mut line: Line, backing: Backing) -> Line {
    let Ok(Answer::Facts(facts)) = line.ask(Request::Facts) else { panic!("no facts") };
    let found = facts.drivers.into_iter().flat_map(|driver| driver.backings).find(|fact| fact.backing == backing);
    assert!(found.unwrap().holds_size);
    root_is_held(world, &mut line, backing);
    line.close();
    size::outlives_the_agent(world, backing, (0..4).map(|step| patience(Duration::from_millis(step * 80))));
    let mut line = size::is_real(world, world.line(), backing);
    conforms(world, &mut line, Driver::Lxc, backing);
    assert_eq!(limits(world), "");
    line
}

/// Those that anything has.
fn limits(world: &World) -> String {
    world.must("! command -v repquota >/dev/null || repquota --project --no-names / | awk '/^#/ && ($5 || $8)'")
}

fn root_is_held(world: &World, line: &mut Line, backing: Backing) {
    println!("--- the root of a guest on {backing}, who has his files counted elsewhere");
    let before = leftovers(world);
    let (key, public) = world.key_pair(&format!("counted-{backing}"));
    let plan = GuestPlan { size: SizeProfile::Xxxsmall, ..guest("counted.lab.test", 17, backing) };
    let name = plan.name.clone();
    line.twice(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    line.change(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup(world, "counted-host")) });
    line.change(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &public) });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[&plan])) });
    line.change(&Request::EnsureRunning { name: name.clone() });
    assert!(world.enter_soon("root", port(&plan), &key, "true").success);
    let said = world.enter("root", port(&plan), &key, &format!("python3 -c \"{TRIES}\""));
    let made = said.text.lines().find_map(|line| line.strip_prefix("files ")?.parse::<u32>().ok());
    assert!(said.success && made.is_some_and(|made| made < 62_000), "{}", said.text);
    assert!(said.text.matches("refused: ").count() > 10 && !said.text.contains("works"), "{}", said.text);
    assert!(!said.text.contains("nobodys") && said.text.contains("Disk quota exceeded"), "{}", said.text);
    line.twice(&Request::EnsureAbsent { name, id: None });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
    assert_eq!(leftovers(world), before);
}
