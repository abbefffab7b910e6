//! Trees that a guest's root has prepared.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn own(mode: u32) -> Owner {
    Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw(), mode }
}

fn path(text: &str) -> GuestPath {
    text.parse().unwrap()
}

#[test]
fn refuses_bad_paths() {
    for bad in ["", "/", "etc/hosts", "/etc/../x", "/etc//x", "/etc/", "/./x", "/a\nb", "/a\0b"] {
        assert!(bad.parse::<GuestPath>().is_err(), "{bad:?}");
    }
}

#[test]
fn writes_once_with_mode_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let root = GuestRoot::folder(folder.path()).unwrap();
    assert!(root.ensure(&path("/etc/corpus/x"), "1", own(0o640)).unwrap());
    assert!(!root.ensure(&path("/etc/corpus/x"), "1", own(0o640)).unwrap());
    assert!(root.ensure(&path("/etc/corpus/x"), "1", own(0o600)).unwrap());
    let mode = fs::metadata(folder.path().join("etc/corpus/x")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(root.list(&path("/etc/corpus")).unwrap(), ["x"]);
    assert!(root.remove(&path("/etc/corpus/x")).unwrap() && !root.remove(&path("/etc/corpus/x")).unwrap());
}

#[test]
fn hostile_links_stay_inside() {
    let (guest, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    symlink(outside.path(), guest.path().join("absolute")).unwrap();
    symlink("../../../../../../..", guest.path().join("up")).unwrap();
    symlink(&secret, guest.path().join("file")).unwrap();
    let root = GuestRoot::folder(guest.path()).unwrap();
    assert!(root.read(&path("/file")).unwrap().is_none());
    assert!(root.ensure(&path("/file"), "ours", own(0o644)).unwrap());
    assert!(root.read(&path("/absolute/secret")).unwrap().is_none());
    assert!(root.ensure(&path("/absolute/secret"), "ours", own(0o644)).is_err());
    assert!(root.ensure(&path("/up/etc/x"), "ours", own(0o644)).unwrap());
    assert_eq!(fs::read_to_string(guest.path().join("etc/x")).unwrap(), "ours");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_pipe_does_not_block() {
    let guest = tempfile::tempdir().unwrap();
    rustix::fs::mknodat(CWD, guest.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let root = GuestRoot::folder(guest.path()).unwrap();
    assert!(root.read(&path("/pipe")).unwrap().is_none());
    assert!(root.ensure(&path("/pipe"), "ours", own(0o644)).unwrap());
}
