//! A guest is configured with lines that operators allow, and starts with them; what runs goes on as it is.

use corpus_domain::{Backing, GuestId, LxcLine};
use corpus_protocol::{ErrorKind, Request};

use crate::line::Line;
use crate::suite::{keys, leftovers, setup};
use crate::world::{World, guest, node, port};

fn line_of(key: &str, value: &str) -> LxcLine {
    LxcLine::new(key.parse().unwrap(), value.parse().unwrap()).unwrap()
}

/// One of each family, and what shows it in the guest.
const LINES: [(&str, &str, &str, &str); 6] = [
    ("lxc.sysctl.net.ipv4.ip_forward", "1", "cat /proc/sys/net/ipv4/ip_forward", "1"),
    (
        "lxc.sysctl.net.ipv4.tcp_rmem",
        "4096 65536 131072",
        "tr '\t' ' ' < /proc/sys/net/ipv4/tcp_rmem",
        "4096 65536 131072",
    ),
    // The guest's init raises the lower one itself.
    ("lxc.prlimit.nofile", "1234:4321", "grep '^Max open files' /proc/1/limits | tr -s ' ' | cut -d ' ' -f 5", "4321"),
    // Less than there is: a node that is a container itself can't raise it.
    (
        "lxc.prlimit.memlock",
        "65536",
        "grep '^Max locked memory' /proc/1/limits | tr -s ' ' | cut -d ' ' -f 4,5",
        "65536 65536",
    ),
    ("lxc.prlimit.nproc", "2345", "grep '^Max processes' /proc/1/limits | tr -s ' ' | cut -d ' ' -f 3,4", "2345 2345"),
    ("lxc.proc.oom_score_adj", "500", "cat /proc/1/oom_score_adj", "500"),
];

pub fn apply(world: &World, line: &mut Line) {
    println!("--- settings");
    let before = leftovers(world);
    let (key, public) = world.key_pair("set");
    let plan = guest("set.lab.test", 22, Backing::Overlayfs);
    let (name, id) = (plan.name.clone(), plan.id.unwrap());
    line.change(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
    line.change(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup(world, "set-host")) });
    line.change(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &public) });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[&plan])) });
    line.change(&Request::EnsureRunning { name: name.clone() });
    let inside = |command: &str| world.enter_soon("root", port(&plan), &key, command).text.trim().to_owned();
    let seen = || LINES.map(|(_, _, look, _)| inside(look));
    let unset = seen();
    let is_set = LINES.map(|(.., wanted)| wanted.to_owned());
    assert!(unset.iter().zip(&is_set).all(|(unset, set)| unset != set), "{unset:?}");

    let lines: Vec<LxcLine> = LINES.iter().map(|(key, value, ..)| line_of(key, value)).collect();
    let settings =
        |lines: &[LxcLine]| Request::EnsureSettings { name: name.clone(), id, autostart: true, lines: lines.to_vec() };
    line.twice(&settings(&lines));
    assert_eq!(world.must(&format!("grep ^lxc.start.auto /var/lib/lxc/{name}/config")), "lxc.start.auto = 1\n");
    assert_eq!(seen(), unset, "what runs goes on as it is");
    restart(line, &name);
    assert_eq!(seen(), is_set);
    is_not_raised_from_inside(&inside);
    inside("systemctl reboot");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(seen(), is_set, "after a reboot");

    // Other limits, and the same plan again, leave them as they are; a plan without them takes them away.
    line.change(&Request::EnsureLimits {
        name: name.clone(),
        limits: "small".parse::<corpus_domain::SizeProfile>().unwrap().limits(),
    });
    let with = corpus_protocol::GuestPlan { autostart: true, lines: lines.clone(), ..plan.clone() };
    line.change(&Request::EnsureGuest { plan: Box::new(with.clone()) });
    assert!(!line.change(&settings(&lines)));
    assert!(!line.change(&Request::EnsureGuest { plan: Box::new(with) }));
    line.twice(&settings(&lines[..1]));
    restart(line, &name);
    assert_eq!((seen()[0].as_str(), &seen()[1..]), ("1", &unset[1..]));

    let other = Request::EnsureSettings {
        name: name.clone(),
        id: GuestId(uuid::Uuid::from_u128(99)),
        autostart: false,
        lines: vec![],
    };
    assert_eq!(line.ask(other).unwrap_err().kind, ErrorKind::Invalid, "another guest of its name stays as it is");
    let twice = settings(&[line_of("lxc.prlimit.nofile", "1"), line_of("lxc.prlimit.nofile", "2")]);
    assert_eq!(line.ask(twice).unwrap_err().kind, ErrorKind::Invalid);
    line.twice(&settings(&[]));
    line.twice(&Request::EnsureAbsent { name, id: None });
    line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
    assert_eq!(leftovers(world), before);
}

fn restart(line: &mut Line, name: &corpus_domain::GuestName) {
    line.change(&Request::EnsureStopped { name: name.clone(), grace_s: 20 });
    line.change(&Request::EnsureRunning { name: name.clone() });
}

/// What was set from outside, its root takes no more of: not files beyond the limit, nor a better place when memory is short
/// than it would have had. (A node that is a container itself can't keep it from giving back a worse one.)
fn is_not_raised_from_inside(inside: &dyn Fn(&str) -> String) {
    let tries = "prlimit --pid 1 --nofile=9999:9999; for score in 0 -1 -1000; do echo $score > /proc/1/oom_score_adj; done; echo x > /proc/sys/kernel/core_pattern; grep '^Max open files' /proc/1/limits | tr -s ' ' | cut -d ' ' -f 5; cat /proc/1/oom_score_adj";
    let said = inside(&format!("({tries}) 2>/dev/null"));
    let (files, score) = said.split_once('\n').unwrap();
    assert!(files == "4321" && score.parse::<u16>().is_ok(), "root in the guest raised what it was given: {said}");
}
