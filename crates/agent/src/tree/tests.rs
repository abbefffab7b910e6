//! Trees that are read and written again.

mod hostile;
mod kept;
mod passes;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use corpus_domain::IdRange;
use corpus_protocol::{TreeEntry, TreeKind};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, mknodat};
use tempfile::{TempDir, tempdir};

use self::hostile::{entry, stream};
use super::*;
use crate::guest_root::GuestRoot;

fn root(folder: &TempDir, ids: Option<IdRange>) -> GuestRoot {
    GuestRoot::folder(folder.path()).unwrap().with_ids(ids)
}

fn ids(nth: usize) -> Option<IdRange> {
    IdRange::all().nth(nth)
}

/// The entries, and a stream that writes them.
fn read_all(folder: &TempDir, ids: Option<IdRange>) -> (Vec<TreeEntry>, Vec<u8>) {
    let mut reader = Reader::new(&root(folder, ids)).unwrap();
    let mut entries = Vec::new();
    let told = reader.list(&mut |line| {
        if let TreeLine::Entry(entry) = line {
            entries.push((**entry).clone());
        }
        Ok(())
    });
    assert_eq!(told.unwrap(), entries.len() as u64);
    let mut stream = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        pieces::say(&mut stream, &TreeLine::Entry(Box::new(entry.clone()))).unwrap();
        if entry.kind == TreeKind::File {
            let told = reader.content(u32::try_from(number).unwrap(), &mut stream).unwrap();
            assert!(matches!(told, Told::Whole));
        }
    }
    pieces::say(&mut stream, &TreeLine::End { entries: entries.len() as u64 }).unwrap();
    (entries, stream)
}

fn write_all(folder: &TempDir, ids: Option<IdRange>, mut stream: &[u8]) -> Result<u64, Failure> {
    Writer::new(&root(folder, ids)).unwrap().run(&mut stream)
}

/// What must be the same of two trees: numbers and times of change can't be.
fn comparable(entries: &[TreeEntry]) -> Vec<TreeEntry> {
    let first = |inode| entries.iter().position(|entry| entry.inode == inode).unwrap() as u64;
    entries
        .iter()
        .map(|entry| TreeEntry { inode: first(entry.inode), changed: (0, 0), links: entry.links, ..entry.clone() })
        .map(|entry| if entry.kind == TreeKind::Folder { TreeEntry { links: 0, ..entry } } else { entry })
        .collect()
}

fn set(path: &Path, name: &str, value: &[u8]) {
    lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
}

fn acl(named: u32) -> Vec<u8> {
    let entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let entries = [entry(1, 6, none), entry(2, 6, named), entry(4, 4, none), entry(16, 6, none), entry(32, 0, none)];
    [&2_u32.to_le_bytes()[..], &entries.concat()].concat()
}

fn capability(root: Option<u32>) -> Vec<u8> {
    let magic: u32 = if root.is_some() { 0x0300_0001 } else { 0x0200_0001 };
    let root = root.map(u32::to_le_bytes).unwrap_or_default();
    let bytes = [&magic.to_le_bytes()[..], &[0, 4, 0, 0], &[0; 12], &root].concat();
    bytes[..if magic < 0x0300_0000 { 20 } else { 24 }].to_vec()
}

/// All that a guest may have, with the ids of `ids`.
fn fill(at: &Path, ids: IdRange) {
    let own = |id| ids.outside(id);
    fs::create_dir_all(at.join("etc/deep")).unwrap();
    fs::create_dir(at.join("tmp")).unwrap();
    fs::set_permissions(at.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(at.join("etc/empty"), "").unwrap();
    fs::write(at.join("etc/text"), "some text\n").unwrap();
    fs::write(at.join("etc/deep/big"), (0..600_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
    fs::hard_link(at.join("etc/text"), at.join("etc/deep/again")).unwrap();
    fs::hard_link(at.join("etc/text"), at.join("a-first-name")).unwrap();
    fs::write(at.join("su"), "program").unwrap();
    symlink("/etc/passwd", at.join("absolute")).unwrap();
    symlink("../../../../etc/shadow", at.join("up")).unwrap();
    mknodat(CWD, at.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    mknodat(CWD, at.join("device"), FileType::CharacterDevice, Mode::RWXU, rustix::fs::makedev(1, 3)).unwrap();
    drop(std::os::unix::net::UnixListener::bind(at.join("socket")).unwrap());
    let odd = std::ffi::OsStr::from_bytes(b"\xff%\n \"odd");
    fs::create_dir(at.join(odd)).unwrap();
    fs::write(at.join(odd).join(odd), "odd").unwrap();
    let sparse = fs::File::create(at.join("sparse")).unwrap();
    sparse.set_len(8 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"middle", 4 << 20).unwrap();
    for (path, owner) in [("etc/text", 1000), ("su", 0), ("etc", 0), ("tmp", 0), ("sparse", 65_535), ("pipe", 33)] {
        chown(at.join(path), own(owner), own(owner)).unwrap();
    }
    lchown(at.join("up"), own(33), own(34)).unwrap();
    chown(at, own(0), own(0)).unwrap();
    fs::set_permissions(at.join("su"), fs::Permissions::from_mode(0o6755)).unwrap();
    set(&at.join("su"), "security.capability", &capability(own(0)));
    set(&at.join("etc/text"), "user.note", b"\0\xff%");
    set(&at.join("etc/deep/big"), "system.posix_acl_access", &acl(own(1000).unwrap()));
    set(&at.join("etc"), "system.posix_acl_default", &acl(own(1001).unwrap()));
    set(&at.join("etc"), "trusted.overlay.opaque", b"y");
    for (path, second) in [("etc/text", 1_000_000_000), ("su", 1), ("etc/deep", 1_500_000_000)] {
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(second, 123_456_789);
        fs::File::open(at.join(path)).unwrap().set_modified(time).unwrap();
    }
}

#[test]
fn what_was_read_and_written_is_the_same() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    fill(from.path(), ids(1).unwrap());
    let (entries, stream) = read_all(&from, ids(1));
    let names: Vec<_> = entries.iter().map(|entry| (entry.depth, entry.name.as_slice())).collect();
    assert!(names.contains(&(3, b"big")) && !names.iter().any(|(_, name)| [&b"device"[..], b"socket"].contains(name)));
    let of = |name: &[u8]| entries.iter().find(|entry| entry.name == name).unwrap();
    assert_eq!((of(b"text").uid, of(b"sparse").gid, of(b"up").gid), (1000, 65_535, 34));
    assert_eq!(of(b"empty").uid, 65_534, "the node's root is nobody there");
    assert_eq!(of(b"su").attributes, [(b"security.capability".to_vec(), capability(None))]);
    assert_eq!(of(b"big").attributes, [(b"system.posix_acl_access".to_vec(), acl(1000))]);
    assert_eq!(of(b"etc").attributes.len(), 1, "what an overlay notes is none of the guest's");

    // What is there differs in each way that there is.
    let at = to.path();
    fs::create_dir_all(at.join("etc/deep/deeper/deepest")).unwrap();
    fs::create_dir(at.join("a-first-name")).unwrap();
    fs::write(at.join("a-first-name/x"), "x").unwrap();
    fs::create_dir(at.join("zz-last")).unwrap();
    fs::write(at.join("zz-last/x"), "x").unwrap();
    fs::write(at.join("etc/text"), "other text").unwrap();
    fs::write(at.join("tmp"), "no folder").unwrap();
    fs::write(at.join("su"), "program").unwrap();
    set(&at.join("su"), "user.old", b"old");
    symlink("/etc", at.join("pipe")).unwrap();
    symlink("/etc/passwd", at.join("absolute")).unwrap();
    assert_eq!(write_all(&to, ids(2), &stream).unwrap(), entries.len() as u64);
    let (again, second) = read_all(&to, ids(2));
    similar(&comparable(&again), &comparable(&entries));
    assert_eq!(fs::metadata(at.join("etc/text")).unwrap().uid(), ids(2).unwrap().outside(1000).unwrap());
    assert_eq!(fs::read(at.join("etc/deep/big")).unwrap(), fs::read(from.path().join("etc/deep/big")).unwrap());
    let sparse = fs::metadata(at.join("sparse")).unwrap();
    assert!(sparse.len() == 8 << 20 && sparse.blocks() * 512 < 1 << 20, "{} blocks", sparse.blocks());

    // Where all is so already, nothing is touched.
    let before = fs::metadata(at.join("su")).unwrap();
    write_all(&to, ids(2), &second).unwrap();
    let after = fs::metadata(at.join("su")).unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
    similar(&comparable(&read_all(&to, ids(2)).0), &comparable(&entries));
}

fn similar(one: &[TreeEntry], other: &[TreeEntry]) {
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
}

#[test]
fn a_file_that_differs_late_keeps_what_is_the_same() {
    for (there, comes) in [
        (vec![7; 700_000], [vec![7; 699_999], vec![8]].concat()),
        (vec![7; 700_000], vec![7; 10]),
        (vec![7; 10], vec![7; 700_000]),
        (vec![0; 300_000], vec![0; 300_001]),
        (vec![], vec![0; 70_000]),
        (vec![1], vec![]),
    ] {
        let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
        fs::write(from.path().join("file"), &comes).unwrap();
        fs::write(to.path().join("file"), &there).unwrap();
        // The length is believed only until the content comes.
        let (mut entries, _) = read_all(&from, None);
        entries[1].size = there.len() as u64;
        let mut stream = Vec::new();
        for entry in entries {
            pieces::say(&mut stream, &TreeLine::Entry(Box::new(entry))).unwrap();
        }
        for piece in comes.chunks(1000) {
            pieces::put(&mut stream, piece).unwrap();
        }
        pieces::put(&mut stream, b"").unwrap();
        pieces::say(&mut stream, &TreeLine::End { entries: 2 }).unwrap();
        write_all(&to, None, &stream).unwrap();
        assert!(fs::read(to.path().join("file")).unwrap() == comes, "{} and {}", there.len(), comes.len());
    }
}

#[test]
fn a_name_more_is_the_same_file() {
    let to = tempdir().unwrap();
    let named = |name: &[u8]| TreeEntry { links: 2, inode: 9, ..entry(1, name, TreeKind::File) };
    let pipe = TreeEntry { links: 2, inode: 9, ..entry(1, b"c", TreeKind::Pipe) };
    fs::write(to.path().join("b"), "content").unwrap();
    write_all(&to, None, &stream(&[named(b"a"), named(b"b"), pipe])).unwrap();
    let inode = |name| fs::symlink_metadata(to.path().join(name)).unwrap().ino();
    assert!(inode("a") == inode("b") && inode("b") != inode("c"));
    // And what the image has as one file may be two.
    let own = |name: &[u8], inode| TreeEntry { size: 7, inode, ..entry(1, name, TreeKind::File) };
    write_all(&to, None, &stream(&[own(b"a", 1), own(b"b", 2)])).unwrap();
    assert_ne!(inode("a"), inode("b"));
}

#[test]
fn what_is_asked_for_wrongly_is_broken() {
    let from = tempdir().unwrap();
    fs::write(from.path().join("a"), "content").unwrap();
    fs::create_dir(from.path().join("b")).unwrap();
    let mut reader = Reader::new(&root(&from, None)).unwrap();
    reader.list(&mut |_| Ok(())).unwrap();
    // What became shorter or longer since is told as it is.
    fs::write(from.path().join("a"), "longer content").unwrap();
    let mut told = |asked: &str| {
        let mut output = Vec::new();
        let ended = contents(&mut reader, &mut BufReader::new(asked.as_bytes()), &mut output);
        (ended.is_ok(), output)
    };
    let whole = b"\0\0\0\x0elonger content\0\0\0\0".to_vec();
    assert_eq!(told("1\n"), (true, whole.clone()));
    assert_eq!(told("1\n1\n"), (true, [whole.clone(), whole.clone()].concat()));
    for asked in ["2\n", "0\n", "3\n", "-1\n", "4294967296\n", "\n", "etc\n"] {
        let (ended, output) = told(asked);
        assert!(!ended && output.starts_with(&BROKEN.to_be_bytes()) && output.ends_with(b"\n"), "{asked}");
    }
    let (ended, output) = told("1\n2\n1\n");
    assert!(!ended && output.starts_with(&whole) && !output.ends_with(&whole));
    fs::remove_file(from.path().join("a")).unwrap();
    assert!(!told("1\n").0);
}

#[test]
fn over_an_image_only_what_differs_is_written() {
    use crate::guest_root::Durable;
    let (from, image, own) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let old = |at: &TempDir, path: &str| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
        fs::File::open(at.path().join(path)).unwrap().set_modified(time).unwrap();
    };
    for at in [&image, &from] {
        fs::create_dir_all(at.path().join("usr/gone")).unwrap();
        fs::create_dir(at.path().join("etc")).unwrap();
        fs::write(at.path().join("usr/same"), vec![1; 300_000]).unwrap();
        fs::write(at.path().join("usr/other"), at.path().as_os_str().as_bytes()).unwrap();
        set(&at.path().join("usr/same"), "security.capability", &capability(None));
        for path in ["usr/same", "usr", "etc", ""] {
            old(at, path);
        }
    }
    fs::remove_dir(from.path().join("usr/gone")).unwrap();
    fs::write(from.path().join("usr/new"), "new").unwrap();
    old(&from, "usr");
    let (entries, stream) = read_all(&from, None);
    let (upper, work) = (own.path().join("upper"), own.path().join("work"));
    for layer in [&upper, &work] {
        fs::create_dir(layer).unwrap();
        fs::set_permissions(layer, fs::metadata(image.path()).unwrap().permissions()).unwrap();
    }
    let overlay = GuestRoot::overlay(image.path(), &upper, &work, Durable::No, None).unwrap();
    Writer::new(&overlay).unwrap().run(&mut stream.as_slice()).unwrap();
    drop(overlay);
    let mut written: Vec<_> =
        fs::read_dir(upper.join("usr")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    written.sort();
    assert_eq!(written, ["gone", "new", "other"]);
    assert!(!upper.join("etc").exists(), "what is the same stays the image's");
    let mut reader = Reader::new(&GuestRoot::layers(image.path(), &upper, None).unwrap()).unwrap();
    let mut again = Vec::new();
    reader
        .list(&mut |line| {
            again.extend(if let TreeLine::Entry(entry) = line { Some((**entry).clone()) } else { None });
            Ok(())
        })
        .unwrap();
    similar(&comparable(&again), &comparable(&entries));
}
