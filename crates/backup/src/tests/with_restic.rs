//! Without Corpus: what any restic makes of a guest's tree.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Output;

use corpus_protocol::TreeKind;

use super::known::{Tree, entry, noise};
use super::repository;

fn restic(args: &[&str], repository: &Path) -> Option<Output> {
    let run = std::process::Command::new("restic")
        .args(["--no-cache", "--repo"])
        .arg(repository)
        .args(args)
        .env("RESTIC_PASSWORD", "correct horse")
        .output();
    let Ok(run) = run else {
        assert!(std::env::var_os("CI").is_none(), "restic is not installed");
        return None;
    };
    assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    Some(run)
}

#[test]
fn restic_restores_a_guest() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    // Who is not root can only restore what is its own.
    let me = at.path().metadata().unwrap();
    let attributes = rustix::fs::setxattr(at.path(), "user.note", b"x", rustix::fs::XattrFlags::empty()).is_ok();
    let mut tree = Tree::new()
        .folder(1, "bin")
        .file(2, "su", b"#!/bin/true\n")
        .folder(1, "etc")
        .file(2, "hosts", b"127.0.0.1 localhost\n")
        .file(2, "hosts.link", b"127.0.0.1 localhost\n")
        .file(1, "large", &noise(1, 5 << 20))
        .add(entry(1, b"link", TreeKind::Link(b"etc/hosts".to_vec())))
        .add(entry(1, b"pipe", TreeKind::Pipe))
        .file(1, "\u{e4} \\ \"quoted\"", b"a name");
    for (entry, _) in &mut tree.0 {
        (entry.uid, entry.gid) = (me.uid(), me.gid());
    }
    for name in ["hosts", "hosts.link"] {
        (tree.at(name).0.inode, tree.at(name).0.links) = (4_711, 2);
    }
    tree.at("su").0.mode = 0o4751;
    tree.at("etc").0.mode = 0o1700;
    if attributes {
        tree.at("su").0.attributes = vec![(b"user.note".to_vec(), vec![0, 1, 255])];
    }
    // A name that is no text, and times that Go can't write.
    tree = tree.add(entry(1, b"\xff", TreeKind::Folder));
    let (last, _) = tree.0.last_mut().unwrap();
    (last.uid, last.gid, last.modified.0, last.changed.0) = (me.uid(), me.gid(), i64::MAX, i64::MIN);
    tree.save(&ours, "guest").unwrap();
    tree.save(&ours, "guest").unwrap();

    let place = at.path().join("repository");
    // What a power failure leaves of a snapshot is in nobody's way.
    std::fs::write(place.join("snapshots").join("0".repeat(64) + "-tmp"), [0; 100]).unwrap();
    assert_eq!(ours.list("guest").unwrap().len(), 2);
    let Some(_) = restic(&["check", "--read-data"], &place) else { return };
    let snapshots = restic(&["snapshots", "--json", "--host", "node", "--path", "/"], &place).unwrap();
    let snapshots: serde_json::Value = serde_json::from_slice(&snapshots.stdout).unwrap();
    assert_eq!(snapshots.as_array().unwrap().len(), 2);
    assert_eq!(snapshots[0]["tags"], serde_json::json!(["backup of guest, one"]));
    let listed = restic(&["ls", "--long", "latest"], &place).unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.lines().any(|line| line.starts_with("urwxr-x--x") && line.ends_with(" /bin/su")), "{listed}");

    let to = at.path().join("to");
    let restored = restic(&["restore", "latest", "--target", to.to_str().unwrap()], &place).unwrap();
    assert_eq!(String::from_utf8_lossy(&restored.stderr), "");
    assert!(std::fs::read(to.join("large")).unwrap() == noise(1, 5 << 20));
    assert_eq!(std::fs::read(to.join("\u{e4} \\ \"quoted\"")).unwrap(), b"a name");
    assert_eq!(std::fs::read_link(to.join("link")).unwrap(), Path::new("etc/hosts"));
    assert!(to.join("pipe").metadata().unwrap().file_type().is_fifo());
    let mode = |name: &str| to.join(name).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("bin/su"), mode("etc")), (0o4751, 0o1700));
    let hosts = ["etc/hosts", "etc/hosts.link"].map(|name| to.join(name).metadata().unwrap());
    assert_eq!((hosts[0].ino(), hosts[0].nlink()), (hosts[1].ino(), 2));
    assert_eq!((hosts[0].mtime(), hosts[0].mtime_nsec()), (hosts[1].mtime(), i64::from(tree.at("hosts").0.modified.1)));
    assert_eq!(hosts[0].mtime(), 1_790_000_000);
    if attributes {
        let mut value = [0; 8];
        let length = rustix::fs::getxattr(to.join("bin/su"), "user.note", &mut value).unwrap();
        assert_eq!(value[..length], [0, 1, 255]);
    }
}
