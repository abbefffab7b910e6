//! A guest whose files are brought elsewhere in two passes, by the words that are said to the agent.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;

use corpus_domain::{Backing as Kind, SnapshotId};
use corpus_protocol::{GuestPlan, KEPT};
use rustix::fs::{AtFlags, FlockOperation, Timespec, Timestamps, UTIME_OMIT, flock, utimensat};
use uuid::Uuid;

use super::*;
use crate::drivers::{self, Driver, Kept};
use crate::snapshots::tests::plan;
use crate::task::test::with_task;

const JOB: &str = "00000000-0000-0000-0000-000000000007";
const OTHER: &str = "00000000-0000-0000-0000-000000000008";

/// A node with a guest.
struct Node {
    host: Host,
    plan: GuestPlan,
    /// The one in which it was written last.
    generation: Cell<i64>,
    _folder: TempDir,
}

impl Node {
    fn new(kind: Kind) -> Self {
        let folder = tempdir().unwrap();
        let (host, plan) = (Host::below(folder.path()), plan(kind));
        let etc = host.image(&plan.image).join("rootfs/etc");
        fs::create_dir_all(&etc).unwrap();
        fs::write(etc.join("image"), vec![7; 300_000]).unwrap();
        with_task(&host, |task| drivers::ensure(task, &plan)).unwrap();
        Self { host, plan, generation: Cell::new(1), _folder: folder }
    }

    fn folder(&self) -> PathBuf {
        self.host.lxc_guest(&self.plan.name)
    }

    /// The guest's files, to be changed.
    fn root(&self) -> GuestRoot {
        let Kept { backing, store, .. } = drivers::lxc::Lxc.kept(&self.host, &self.plan.name).unwrap();
        with_task(&self.host, |task| backing.open(task, &store)).unwrap()
    }

    fn of(&self, job: JobId, generation: i64) -> For {
        For { guest: self.plan.name.clone(), job, generation }
    }

    fn read(&self, files: &str, input: &mut BufReader<impl Read>) -> Result<Vec<u8>, String> {
        let job = files.strip_prefix("written ").and_then(|job| job.parse().ok());
        let words: Vec<&str> = if job.is_some() { vec!["written"] } else { files.split(' ').collect() };
        let of = self.of(job.unwrap_or_else(|| JobId(Uuid::now_v7())), self.generation.get());
        let mut output = Vec::new();
        let done = read(&self.host, &of, &words, input, &mut output);
        if let Err(reason) = &done {
            let said = serde_json::from_slice::<TreeLine>(&output).unwrap();
            assert_eq!(said, TreeLine::Failed(reason.clone()));
        }
        done.map(|()| output)
    }

    /// The entries, and what is written with the contents of those that are asked for.
    fn tells(&self, files: &str, is_asked: &dyn Fn(usize, &TreeEntry) -> bool) -> (Vec<TreeEntry>, Vec<u8>) {
        let listed = self.read(files, &mut BufReader::new(&b""[..])).unwrap();
        let mut entries = Vec::new();
        let mut lines = listed.as_slice();
        loop {
            match pieces::tree_line(&mut lines, &mut Vec::new()).unwrap() {
                TreeLine::Entry(entry) => entries.push(*entry),
                TreeLine::End { entries: told } => break assert_eq!(told, entries.len() as u64),
                other => panic!("{other:?}"),
            }
        }
        let is_asked = |at: &usize| entries[*at].kind == TreeKind::File && is_asked(*at, &entries[*at]);
        let asked: Vec<usize> = (0..entries.len()).filter(is_asked).collect();
        let numbers = asked.iter().map(usize::to_string).collect::<Vec<_>>().join("\n") + "\n";
        let numbers = if asked.is_empty() { String::new() } else { numbers };
        let told = self.read(files, &mut BufReader::new(numbers.as_bytes())).unwrap();
        let (lines, mut contents) = told.split_at(listed.len());
        assert!(lines == listed, "it tells the same twice");
        let mut stream = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            pieces::say(&mut stream, &TreeLine::Entry(Box::new(entry.clone()))).unwrap();
            if asked.contains(&at) {
                let mut piece = Vec::new();
                while pieces::take(&mut contents, &mut piece).unwrap() {
                    pieces::put(&mut stream, &piece).unwrap();
                }
                pieces::put(&mut stream, b"").unwrap();
            } else if entry.kind == TreeKind::File {
                stream.extend(KEPT.to_be_bytes());
            }
        }
        assert!(contents.is_empty());
        pieces::say(&mut stream, &TreeLine::End { entries: entries.len() as u64 }).unwrap();
        (entries, stream)
    }

    fn write(&self, words: &str, mut stream: &[u8]) -> Result<(), String> {
        let words: Vec<&str> = words.split(' ').collect();
        let [job, generation, what @ ..] = words.as_slice() else { panic!("{words:?}") };
        let of = self.of(job.parse().unwrap(), generation.parse().unwrap());
        self.generation.set(self.generation.get().max(of.generation));
        let mut output = Vec::new();
        let done = write(&self.host, &of, what, &mut stream, &mut output);
        match (serde_json::from_slice(&output).unwrap(), &done) {
            (TreeLine::End { .. }, Ok(())) => {}
            (TreeLine::Failed(said), Err(reason)) => assert_eq!(said, *reason),
            other => panic!("{other:?}"),
        }
        done
    }
}

/// The path of each entry.
fn paths(entries: &[TreeEntry]) -> Vec<PathBuf> {
    let mut here = Vec::new();
    let named = entries.iter().map(|entry| {
        here.truncate((entry.depth as usize).saturating_sub(1));
        here.extend((entry.depth > 0).then(|| std::ffi::OsStr::from_bytes(&entry.name).to_owned()));
        here.iter().collect()
    });
    named.collect()
}

/// What need not come once more, as the controller finds it: of one name, size and time of change.
fn same(now: &[TreeEntry], written: &[TreeEntry]) -> Vec<bool> {
    let seen: HashMap<_, _> = paths(written).into_iter().zip(written).collect();
    let is_same = |(path, now): (PathBuf, &TreeEntry)| {
        seen.get(&path).is_some_and(|then| {
            let of = |entry: &TreeEntry| (entry.kind.clone(), entry.links, entry.size, entry.modified);
            now.links == 1 && of(now) == of(then)
        })
    };
    paths(now).into_iter().zip(now).map(is_same).collect()
}

/// All of it, contents too, is the same on both.
fn equal(from: (&Node, &str), to: (&Node, &str)) {
    let all = |(node, files): (&Node, &str)| node.tells(files, &|_, _| true);
    let ((one, contents), (other, others)) = (all(from), all(to));
    similar(&comparable(&other), &comparable(&one));
    let of = |entries: &[TreeEntry], stream: &[u8]| {
        let (mut rest, mut all, mut piece) = (stream, Vec::new(), Vec::new());
        for entry in entries {
            pieces::tree_line(&mut rest, &mut Vec::new()).unwrap();
            let mut content = Vec::new();
            while entry.kind == TreeKind::File && pieces::take(&mut rest, &mut piece).unwrap() {
                content.extend_from_slice(&piece);
            }
            all.push(content);
        }
        all
    };
    assert!(of(&one, &contents) == of(&other, &others), "a content is another");
}

/// What a guest does between the passes, in each way that there is.
fn change(at: &Path) {
    fs::write(at.join("etc/same-size"), "other").unwrap();
    fs::remove_file(at.join("removed")).unwrap();
    fs::create_dir(at.join("etc/new")).unwrap();
    fs::write(at.join("etc/new/file"), "new").unwrap();
    fs::hard_link(at.join("single"), at.join("etc/second-name")).unwrap();
    fs::remove_file(at.join("a-first-name")).unwrap();
    fs::remove_file(at.join("etc/deep/again")).unwrap();
    fs::rename(at.join("etc/deep"), at.join("etc/renamed")).unwrap();
    fs::set_permissions(at.join("mode"), fs::Permissions::from_mode(0o4751)).unwrap();
    chown(at.join("owner"), Some(12), Some(34)).unwrap();
    set(&at.join("attribute"), "user.note", b"other");
    rustix::fs::removexattr(at.join("su"), "security.capability").unwrap();
    fs::remove_file(at.join("turns")).unwrap();
    fs::create_dir(at.join("turns")).unwrap();
    fs::write(at.join("turns/inside"), "inside").unwrap();
    fs::remove_dir_all(at.join("folder")).unwrap();
    fs::write(at.join("folder"), "no folder").unwrap();
    fs::remove_file(at.join("pipe")).unwrap();
    fs::write(at.join("pipe"), "no pipe").unwrap();
    fs::remove_file(at.join("up")).unwrap();
    symlink("elsewhere", at.join("up")).unwrap();
    fs::remove_file(at.join("etc/image")).unwrap();
}

/// What must have come for that, and nothing else.
const SENT: [&str; 9] = [
    "etc/new/file",
    "etc/renamed/big",
    "etc/same-size",
    "etc/second-name",
    "etc/text",
    "folder",
    "pipe",
    "single",
    "turns/inside",
];

/// The guest has these before.
fn begin(at: &Path) {
    fill(at, ids(0).unwrap());
    for name in ["etc/same-size", "removed", "single", "mode", "owner", "attribute", "turns"] {
        fs::write(at.join(name), "these").unwrap();
    }
    set(&at.join("attribute"), "user.note", b"note");
    fs::create_dir_all(at.join("folder/in")).unwrap();
    fs::write(at.join("folder/in/file"), "file").unwrap();
}

/// And turns back in the end.
fn turn_back(at: &Path) {
    fs::remove_dir_all(at.join("turns")).unwrap();
    fs::write(at.join("turns"), "these").unwrap();
    fs::remove_file(at.join("folder")).unwrap();
    fs::create_dir_all(at.join("folder/in")).unwrap();
    fs::remove_file(at.join("etc/second-name")).unwrap();
    fs::rename(at.join("etc/renamed"), at.join("etc/deep")).unwrap();
}

fn moves(from: Kind, to: Kind) {
    let (one, two) = (Node::new(from), Node::new(to));
    begin(&one.root().path());
    let snapshot = SnapshotId(Uuid::from_u128(1));
    with_task(&one.host, |task| snapshots::take(task, &one.plan.name, snapshot)).unwrap();
    let first = one.tells(&snapshot.to_string(), &|_, _| true);
    let words = |generation, bytes: usize| format!("{JOB} {generation} {bytes}");
    let onto = |generation, bytes: usize| format!("{} onto", words(generation, bytes));
    let written = format!("written {JOB}");

    let missing = two.read(&written, &mut BufReader::new(&b""[..])).unwrap_err();
    assert!(missing.contains("nothing was written for job"), "{missing}");
    let missing = two.write(&onto(1, 1), &first.1).unwrap_err();
    assert!(missing.contains("nothing was written for job"), "{missing}");
    two.write(&words(1, first.1.len()), &first.1).unwrap();
    equal((&one, &snapshot.to_string()), (&two, &written));
    for words in [format!("written {OTHER}"), "written".into(), "own now".into(), "written own".into()] {
        two.read(&words, &mut BufReader::new(&b""[..])).unwrap_err();
    }
    for words in [format!("{OTHER} 1 1 onto"), format!("{JOB} 1 1 into"), format!("{JOB} 1"), format!("{JOB} 1 onto")] {
        two.write(&words, &first.1).unwrap_err();
    }

    let pass = |generation| {
        let (had, _) = two.tells(&written, &|_, _| false);
        let (now, _) = one.tells("own", &|_, _| false);
        let same = same(&now, &had);
        let (now, stream) = one.tells("own", &|at, _| !same[at]);
        two.write(&onto(generation, stream.len()), &stream).unwrap();
        equal((&one, "own"), (&two, &written));
        let sent = paths(&now).into_iter().zip(&now).zip(same);
        let sent = sent.filter(|((_, entry), same)| entry.kind == TreeKind::File && !same);
        sent.map(|((path, _), _)| path.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(pass(1), Vec::from(["a-first-name", "etc/deep/again", "etc/text"]), "only what has more names");
    change(&one.root().path());
    assert_eq!(pass(1), SENT);
    assert!(two.write(&words(0, 1), &first.1).unwrap_err().contains("too late"));
    turn_back(&one.root().path());
    assert_eq!(pass(2), ["etc/deep/big", "single", "turns"]);

    // What comes is the guest's, as all that is written.
    with_task(&two.host, |task| snapshots::replace(task, &two.plan.name, JOB.parse().unwrap())).unwrap();
    equal((&one, "own"), (&two, "own"));
    two.read(&written, &mut BufReader::new(&b""[..])).unwrap_err();
}

#[test]
fn from_a_folder_to_an_overlay() {
    moves(Kind::Dir, Kind::Overlayfs);
}

#[test]
fn from_an_overlay_to_a_folder() {
    moves(Kind::Overlayfs, Kind::Dir);
}

#[test]
fn what_is_cut_leaves_nothing() {
    for kind in [Kind::Dir, Kind::Overlayfs] {
        let node = Node::new(kind);
        begin(&node.root().path());
        let (_, stream) = node.tells("own", &|_, _| true);
        let next = node.folder().join("next");
        let onto = format!("{JOB} 1 1 onto");
        let replaces = || with_task(&node.host, |task| snapshots::replace(task, &node.plan.name, JOB.parse().unwrap()));
        let half = stream[..stream.len() / 2].to_vec();
        for (cut, why) in [(half, "was cut"), (without_one(&stream), "its content was left out")] {
            node.write(&format!("{JOB} 1 1"), &stream).unwrap();
            let failed = node.write(&onto, &cut).unwrap_err();
            assert!(failed.contains(why), "{failed}");
            assert!(!next.exists());
            assert!(matches!(replaces(), Err(Failure::Missing(_))));
            assert!(node.write(&onto, &stream).unwrap_err().contains("nothing was written"));
        }
    }
}

/// The content of a file that has more than one name is left out.
fn without_one(stream: &[u8]) -> Vec<u8> {
    let at = stream.windows(14).position(|window| window == b"\0\0\0\x0asome text\n").unwrap();
    [&stream[..at], &KEPT.to_be_bytes(), &stream[at + 18..]].concat()
}

/// What is read when the first content could be asked for.
struct Asks<F>(F);

impl<F: FnMut()> Read for Asks<F> {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        (self.0)();
        Ok(0)
    }
}

#[test]
fn what_is_read_stays_as_it_is() {
    for kind in [Kind::Dir, Kind::Overlayfs] {
        let node = Node::new(kind);
        begin(&node.root().path());
        let (_, stream) = node.tells("own", &|_, _| true);
        node.write(&format!("{JOB} 1 1"), &stream).unwrap();
        for (files, lock) in [("own".to_owned(), "guest"), (format!("written {JOB}"), "tree")] {
            let mut asked = 0;
            let lock = node.host.corpus().join(format!("locks/{lock}-{}", node.plan.name));
            let hold = |operation| flock(fs::File::open(&lock).unwrap(), operation);
            let mut asks = || {
                asked += 1;
                hold(FlockOperation::NonBlockingLockExclusive).unwrap_err();
                hold(FlockOperation::NonBlockingLockShared).unwrap();
            };
            node.read(&files, &mut BufReader::new(Asks(&mut asks))).unwrap();
            hold(FlockOperation::NonBlockingLockExclusive).unwrap();
            assert_eq!(asked, 1);
        }
    }
}

#[test]
fn what_is_read_has_the_times_that_it_had() {
    for kind in [Kind::Dir, Kind::Overlayfs] {
        let node = Node::new(kind);
        begin(&node.root().path());
        node.write(&format!("{JOB} 1 1"), &node.tells("own", &|_, _| true).1).unwrap();
        let mut all = Vec::new();
        let piece = if kind == Kind::Dir { "rootfs" } else { "delta0" };
        let image = node.host.image(&node.plan.image).join("rootfs");
        let mut folders = vec![node.folder().join(piece), node.folder().join("next").join(piece), image];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let is_folder = fs::symlink_metadata(&entry).unwrap().is_dir();
                folders.extend(is_folder.then(|| entry.clone()));
                all.push(entry);
            }
        }
        // The kernel notes who reads what was not read for long.
        let old = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
        let kept = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        for path in &all {
            let times = Timestamps { last_access: old, last_modification: kept };
            utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        }
        let times = || {
            let of = |path: &PathBuf| {
                let stat = fs::symlink_metadata(path).unwrap();
                let times = [stat.atime(), stat.mtime(), stat.ctime(), stat.ctime_nsec()];
                (path.clone(), times)
            };
            all.iter().map(of).collect::<Vec<_>>()
        };
        let before = times();
        assert!(before.len() > 30);
        node.tells("own", &|_, _| true);
        node.tells(&format!("written {JOB}"), &|_, _| true);
        for (now, before) in times().iter().zip(&before) {
            assert_eq!(now, before);
        }
    }
}

#[test]
fn what_a_guest_has_that_is_begun_is_not_read() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let node = Node::new(Kind::Dir);
    // LXC listens so from before a guest starts until after its end.
    let address = SocketAddr::from_abstract_name(node.folder().join("command").as_os_str().as_bytes()).unwrap();
    let listens = UnixListener::bind_addr(&address).unwrap();
    let refused = node.read("own", &mut BufReader::new(&b""[..])).unwrap_err();
    assert!(refused.contains("read only while it is stopped"), "{refused}");
    // One that is on its way out is waited for.
    let gone = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(listens);
    });
    node.read("own", &mut BufReader::new(&b""[..])).unwrap();
    gone.join().unwrap();
}

/// What a node says of files is what whoever brought them says, and what changes in them is seen.
#[test]
fn files_come_to_what_was_brought() {
    let node = Node::new(Kind::Dir);
    let of = node.of(JobId(Uuid::now_v7()), 1);
    let summed = |files: &str| {
        let mut output = Vec::new();
        sum(&node.host, &of, &[files], &mut output).unwrap();
        let TreeLine::Sums(sums) = serde_json::from_slice(&output).unwrap() else { panic!("no sums") };
        sums
    };
    let told = summed("own");
    let (entries, _) = node.tells("own", &|_, _| false);
    let (mut digest, root) = (corpus_protocol::TreeDigest::default(), node.root());
    for entry in &entries {
        let path = digest.entry(entry);
        if entry.kind == TreeKind::File {
            digest.content_begins(&path);
            let content = fs::read(root.path().join(String::from_utf8(path).unwrap())).unwrap();
            content.chunks(1000).for_each(|piece| digest.content(piece));
            digest.content_ends();
        }
    }
    assert_eq!(told, digest.end());
    assert!(told["/etc"].files >= 1 && told["/etc"].bytes >= 300_000, "{told:?}");

    fs::write(root.path().join("etc/image"), vec![7; 299_999]).unwrap();
    assert_eq!(corpus_protocol::differing(&told, &summed("own")), ["/etc"]);
    let refused = sum(&node.host, &of, &["none"], &mut Vec::new()).unwrap_err();
    assert!(refused.contains("\"none\" is not valid"), "{refused}");
}
