//! All files of a guest: read from a snapshot, written to be its own, and taken back again, whatever a guest lies on.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use corpus_domain::{JobId, SnapshotId};
use corpus_protocol::{BROKEN, ErrorKind, GuestPlan, JobRef, KEPT, Request, TreeEntry, TreeKind, TreeLine};
use uuid::Uuid;

use crate::crowd::{measured, ms};
use crate::line::Line;
use crate::world::{World, patience, port};

/// Files of each kind, as a guest's own root makes them.
const MAKE: &str = r#"
mkdir -p /root/tree/deep/er; cd /root/tree
echo one > state; ln state deep/again; ln -s /etc/passwd absolute; ln -s ../../../../etc up; mkfifo -m 640 pipe
printf odd > $(printf 'odd\377name'); truncate -s 64M sparse; echo middle | dd of=sparse bs=1M seek=32 conv=notrunc status=none
chown -h 1000:1001 state up; cp /bin/true capable; chmod 4711 capable; cp /bin/true plain
setcap cap_net_raw+ep plain
python3 -c 'import os,struct
no=2**32-1
acl=[(1,6,no),(2,6,1000),(4,4,no),(8,4,33),(16,6,no),(32,0,no)]
os.setxattr("state","system.posix_acl_access",struct.pack("<I",2)+b"".join(struct.pack("<HHI",*one) for one in acl))
os.setxattr("state","user.note",b"a note")'
touch -d '2001-02-03 04:05:06.789' state deep
rm -rf /usr/share/man; sync
"#;

/// What must be the same afterwards.
const MANIFEST: &str = r#"
cd /; all='usr etc root srv home opt'
find $all -xdev -type d -printf '%p %m %U:%G %T@\n' | sort
find $all -xdev ! -type d -printf '%p %y %m %U:%G %n %s %T@ %l\n' | sort
find $all -xdev -type f -print0 | sort -z | xargs -0 sha256sum
getcap -r usr root
python3 -c 'import os
print([(file,name,os.getxattr(file,name)) for file in ("root/tree/state","root/tree/plain") for name in sorted(os.listxattr(file))])'
"#;

/// The guest runs, and answers `key` as root.
pub fn are_brought_back(world: &World, line: &mut Line, plan: &GuestPlan, key: &Path) {
    let name = plan.name.clone();
    let says = |command: &str| {
        let said = world.enter_soon("root", port(plan), key, command);
        assert!(said.success, "{command}: {}", said.text);
        said.text
    };
    says(MAKE);
    let manifest = says(MANIFEST);
    assert!(manifest.contains("cap_net_raw=ep") && manifest.contains("system.posix_acl_access"), "{manifest}");
    let (id, job) = (SnapshotId(Uuid::now_v7()), JobId(Uuid::now_v7()));
    line.ask(Request::EnsureSnapshot { name: name.clone(), snapshot: id }).unwrap();
    says("cd /root/tree; echo two > state; rm -rf deep absolute; mkdir -p absolute/in /usr/share/man; echo x > junk");
    let folder = format!("/var/lib/lxc/{name}");
    let within = world.must(&format!("cd {folder}/snapshots/{id} && find . -maxdepth 1 | sort"));

    let mut none = world.agent(&reads(plan, &Uuid::now_v7().to_string()));
    let said = tree_line(&mut BufReader::new(none.stdout.take().unwrap()));
    assert!(matches!(&said, TreeLine::Failed(reason) if reason.contains("there is no snapshot")), "{said:?}");
    assert!(!none.wait().unwrap().success());
    let started = Instant::now();
    let (entries, stream) = read(world, plan, &id.to_string(), |_| true);
    let took = ms(started.elapsed());
    let size = stream.len() / 1_000_000;
    let files = entries.len();
    assert!(entries.iter().all(|entry| entry.uid < 65_536 && entry.gid < 65_536));
    assert_eq!(world.must(&format!("cd {folder}/snapshots/{id} && find . -maxdepth 1 | sort")), within);
    // The kernel lets go of a disk a moment after the last who looked at it.
    // All nodes of the labs of a machine have its loop devices, so it is looked for those of this guest.
    let attached = format!(
        "looks() {{ losetup --noheadings --list --output BACK-FILE | grep -c '{name}/snapshots'; }}
        for _ in $(seq 50); do [ \"$(looks)\" != 0 ] || break; sleep 0.1; done; looks || true"
    );
    assert_eq!(world.must(&attached), "0\n");

    let started = Instant::now();
    write(world, plan, job, 2, &stream).unwrap();
    let back = ms(started.elapsed());
    measured(&format!("{files} files, {size} MB, on {}: read in {took:.0} ms, written in {back:.0} ms", plan.backing));
    let taken = world.must(&format!("du -sm --one-file-system {folder}/next | cut -f1"));
    println!("what was written takes {} MB", taken.trim());
    let late = write(world, plan, job, 1, &stream).unwrap_err();
    assert!(late.contains("comes too late"), "{late}");

    let replace = Request::EnsureReplaced { name: name.clone(), job };
    assert_eq!(line.ask(replace.clone()).unwrap_err().kind, ErrorKind::Busy, "it runs");
    let stop = Request::EnsureStopped { name: name.clone(), grace_s: 0 };
    let start = Request::EnsureRunning { name: name.clone() };
    line.change(&stop);
    line.twice(&replace);
    line.change(&start);
    same(&says(MANIFEST), &manifest);
    line.change(&stop);
    line.twice(&Request::EnsureReturned { name: name.clone(), job });
    assert_eq!(line.ask(replace.clone()).unwrap_err().kind, ErrorKind::Missing, "what was written went");
    line.change(&start);
    assert_eq!(
        says("cat /root/tree/state /root/tree/junk; ls -d /root/tree/absolute/in"),
        "two\nx\n/root/tree/absolute/in\n"
    );

    comes_in_two_passes(world, line, plan, &says, (job, &entries, &stream));

    // What is cut leaves nothing, and neither does what is not wanted any more.
    let cut = write(world, plan, job, 2, &stream[..stream.len() / 2]).unwrap_err();
    assert!(cut.contains("was cut"), "{cut}");
    assert!(!world.on_node(&format!("test -e {folder}/next")).success);
    is_killed(world, plan, job, &stream[..stream.len() / 2]);
    write(world, plan, job, 2, &stream).unwrap();
    line.change(&Request::EnsureSettled { name: name.clone() });
    assert!(!world.on_node(&format!("ls -d {folder}/next {folder}/former")).text.contains(&format!("{folder}/next\n")));
    assert_eq!(world.must("losetup --noheadings --list --output BACK-FILE | grep -c next || true"), "0\n");
    line.change(&Request::EnsureNoSnapshot { name, snapshot: id });
}

/// The guest runs, and what a snapshot had is written again; what it has by now comes after that, when it is stopped.
fn comes_in_two_passes(
    world: &World,
    line: &mut Line,
    plan: &GuestPlan,
    says: &dyn Fn(&str) -> String,
    (job, entries, stream): (JobId, &[TreeEntry], &[u8]),
) {
    let name = plan.name.clone();
    write(world, plan, job, 2, stream).unwrap();
    let written = format!("written {job}");
    says("cd /root/tree; echo three > state; chown 5:6 plain; mkdir -p deep; echo new > deep/new; sync");
    let mut early = world.agent(&reads(plan, "own"));
    let TreeLine::Failed(why) = tree_line(&mut BufReader::new(early.stdout.take().unwrap())) else { panic!("it runs") };
    assert!(why.contains("only while it is stopped") && !early.wait().unwrap().success(), "{why}");

    let stop = Request::EnsureStopped { name: name.clone(), grace_s: 0 };
    let start = Request::EnsureRunning { name: name.clone() };
    line.change(&stop);
    let (had, _) = read(world, plan, &written, |_| false);
    assert_eq!(had.len(), entries.len());
    let had: HashMap<_, _> = paths(&had).into_iter().zip(&had).collect();
    let of = |entry: &TreeEntry| (entry.kind.clone(), entry.links, entry.size, entry.modified);
    let (own, _) = read(world, plan, "own", |_| false);
    let is_same = |path: &Vec<Vec<u8>>, entry: &TreeEntry| {
        entry.links == 1 && had.get(path).is_some_and(|had| of(had) == of(entry))
    };
    let same: Vec<bool> = paths(&own).iter().zip(&own).map(|(path, entry)| is_same(path, entry)).collect();
    let started = Instant::now();
    let (own, second) = read(world, plan, "own", |at| !same[at]);
    assert!(second.len() < stream.len() / 2, "{} of {} bytes came again", second.len(), stream.len());
    let other = JobId(Uuid::now_v7());
    let refused = write_with(world, plan, &format!("{other} 2 {} onto", stream.len()), &second).unwrap_err();
    assert!(refused.contains("nothing was written for job"), "{refused}");
    write_with(world, plan, &format!("{job} 2 {} onto", stream.len()), &second).unwrap();
    measured(&format!("a second pass on {}: {:.0} ms", plan.backing, ms(started.elapsed())));
    let (again, _) = read(world, plan, &written, |_| false);
    let alike = |all: &[TreeEntry]| {
        let all = all.iter().map(|entry| {
            let links = if entry.kind == TreeKind::Folder { 0 } else { entry.links };
            TreeEntry { inode: 0, changed: (0, 0), links, ..entry.clone() }
        });
        all.collect::<Vec<_>>()
    };
    assert!(alike(&again) == alike(&own), "what was written is not what the guest has");

    // As long as it is read, nobody starts it.
    let mut held = world.agent(&reads(plan, "own"));
    let mut output = BufReader::new(held.stdout.take().unwrap());
    while matches!(tree_line(&mut output), TreeLine::Entry(_)) {}
    assert_eq!(line.ask(start.clone()).unwrap_err().kind, ErrorKind::Busy);
    drop(held.stdin.take());
    assert!(held.wait().unwrap().success());

    line.twice(&Request::EnsureReplaced { name: name.clone(), job });
    is_overtaken(world, line, plan);
    line.change(&start);
    assert_eq!(says("cd /root/tree; cat state deep/new; stat -c %u:%g plain"), "three\nnew\n5:6\n");
}

/// What a controller holds that stands still with its line open is let go of for the one that has its job by now.
fn is_overtaken(world: &World, line: &mut Line, plan: &GuestPlan) {
    let job = line.job;
    for what in ["read-tree own", "write-tree 1000"] {
        let others = JobId(Uuid::now_v7());
        line.job = JobRef { id: others, generation: 1, request: 0 };
        let (verb, rest) = what.split_once(' ').unwrap();
        let words = format!("{verb} {} {others} 1 {rest}", plan.name);
        let mut held = world.agent(&words);
        let lock = if words.starts_with("read") { "guest" } else { "tree" };
        let is_free = format!("flock --nonblock /var/lib/corpus/locks/{lock}-{} true", plan.name);
        let until = Instant::now() + patience(Duration::from_secs(10));
        while world.on_node(&is_free).success {
            assert!(Instant::now() < until, "{words}: it holds nothing");
        }
        line.job.generation += 1;
        let started = Instant::now();
        line.ask(Request::EnsureSettled { name: plan.name.clone() }).unwrap();
        assert!(started.elapsed().as_secs() < 5, "{words}: {:?}", started.elapsed());
        // Nobody reads what it told.
        drop((held.stdin.take(), held.stdout.take()));
        assert!(!held.wait().unwrap().success(), "{words}");
        let late = world.agent(&words).wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&late.stdout).contains("comes too late"), "{words}");
    }
    line.job = job;
}

/// The words that have files read, for a job of its own; what was written, for that which wrote it.
fn reads(plan: &GuestPlan, files: &str) -> String {
    let (files, job) = files.split_once(' ').map_or((files, None), |(files, job)| (files, Some(job.to_owned())));
    let job = job.unwrap_or_else(|| Uuid::now_v7().to_string());
    format!("read-tree {} {job} 2 {files}", plan.name)
}

/// The names that lead to each entry.
fn paths(entries: &[TreeEntry]) -> Vec<Vec<Vec<u8>>> {
    let mut here = Vec::new();
    let named = entries.iter().map(|entry| {
        here.truncate((entry.depth as usize).saturating_sub(1));
        here.push(entry.name.clone());
        here.clone()
    });
    named.collect()
}

/// All of these files, and the stream that writes them, with the contents of those that are asked for.
fn read(world: &World, plan: &GuestPlan, files: &str, is_asked: impl Fn(usize) -> bool) -> (Vec<TreeEntry>, Vec<u8>) {
    let mut program = world.agent(&reads(plan, files));
    let mut input = program.stdin.take().unwrap();
    let mut output = BufReader::new(program.stdout.take().unwrap());
    let mut entries = Vec::new();
    loop {
        match tree_line(&mut output) {
            TreeLine::Entry(entry) => entries.push(*entry),
            TreeLine::End { entries: told } => break assert_eq!(told, entries.len() as u64),
            other => panic!("{other:?}"),
        }
    }
    let numbers = entries.iter().enumerate().filter(|(at, entry)| entry.kind == TreeKind::File && is_asked(*at));
    let asked = numbers.fold(String::new(), |mut all, (number, _)| {
        writeln!(all, "{number}").unwrap();
        all
    });
    let asks = std::thread::spawn(move || input.write_all(asked.as_bytes()));
    let mut stream = Vec::new();
    let say = |stream: &mut Vec<u8>, line: &TreeLine| {
        serde_json::to_writer(&mut *stream, line).unwrap();
        stream.push(b'\n');
    };
    for (at, entry) in entries.iter().enumerate() {
        say(&mut stream, &TreeLine::Entry(Box::new(entry.clone())));
        if entry.kind == TreeKind::File && is_asked(at) {
            content(&mut output, &mut stream);
        } else if entry.kind == TreeKind::File {
            stream.extend(KEPT.to_be_bytes());
        }
    }
    say(&mut stream, &TreeLine::End { entries: entries.len() as u64 });
    asks.join().unwrap().unwrap();
    assert!(program.wait().unwrap().success());
    (entries, stream)
}

fn content(output: &mut impl Read, stream: &mut Vec<u8>) {
    loop {
        let mut length = [0; 4];
        output.read_exact(&mut length).unwrap();
        stream.extend(length);
        let length = u32::from_be_bytes(length);
        assert_ne!(length, BROKEN);
        if length == 0 {
            return;
        }
        assert_eq!(output.take(length.into()).read_to_end(stream).unwrap(), length as usize);
    }
}

fn write(world: &World, plan: &GuestPlan, job: JobId, generation: i64, stream: &[u8]) -> Result<(), String> {
    write_with(world, plan, &format!("{job} {generation} {}", stream.len()), stream)
}

fn write_with(world: &World, plan: &GuestPlan, words: &str, stream: &[u8]) -> Result<(), String> {
    let mut program: Child = world.agent(&format!("write-tree {} {words}", plan.name));
    let mut input = program.stdin.take().unwrap();
    let mut output = BufReader::new(program.stdout.take().unwrap());
    // One that has failed takes no more.
    let _ = input.write_all(stream);
    drop(input);
    let said = tree_line(&mut output);
    let ended = program.wait().unwrap().success();
    match said {
        TreeLine::End { .. } => {
            assert!(ended);
            Ok(())
        }
        TreeLine::Failed(reason) => {
            assert!(!ended);
            Err(reason)
        }
        TreeLine::Entry(_) | TreeLine::Sums(_) => panic!("{said:?}"),
    }
}

/// The program is killed while it writes, and leaves what the next one clears.
fn is_killed(world: &World, plan: &GuestPlan, job: JobId, stream: &[u8]) {
    let mut program = world.agent(&format!("write-tree {} {job} 2 {}", plan.name, stream.len()));
    program.stdin.as_mut().unwrap().write_all(stream).unwrap();
    world.must("kill -KILL $(pgrep -nf '^/var/lib/corpus/agent/corpus-agent-test write-tree')");
    assert!(!program.wait().unwrap().success());
    world.must(&format!("test -e /var/lib/lxc/{}/next", plan.name));
}

fn tree_line(output: &mut impl BufRead) -> TreeLine {
    let mut text = String::new();
    output.read_line(&mut text).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn same(now: &str, before: &str) {
    let of = |one: &str, other: &str| {
        let other: std::collections::HashSet<&str> = other.lines().collect();
        one.lines().filter(|line| !other.contains(line)).take(20).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(now == before, "not before: {:#?}\nnot now: {:#?}", of(now, before), of(before, now));
}
