//! What is saved comes back as it was, and what was saved before is not read again.

use std::sync::{Arc, Barrier};

use corpus_protocol::{MAX_DEPTH, TreeKind};

use super::known::{Held, Taken, Tree, entry, noise};
use super::repository;
use crate::{BackupError, Reading};

fn all_kinds() -> Tree {
    let mut tree = Tree::new();
    let root = &mut tree.0[0].0;
    (root.mode, root.uid, root.attributes) = (0o1711, 7, vec![(b"user.root".to_vec(), b"yes".to_vec())]);
    let mut tree = tree
        .folder(1, "bin")
        .file(2, "su", b"#!/bin/true\n")
        .folder(1, "empty folder")
        .folder(1, "etc")
        .file(2, "empty", b"")
        .folder(2, "etc")
        .file(3, "hosts", b"127.0.0.1 localhost\n")
        .file(3, "hosts.link", b"127.0.0.1 localhost\n")
        .file(2, "etc.conf", b"after what is in etc, though its name begins so")
        .file(1, "large", &noise(1, 30 << 20))
        .add(entry(1, b"link", TreeKind::Link(b"../100%\\ \"\xff\n".to_vec())))
        .add(entry(1, b"link2", TreeKind::Link(b"/etc/\xc3\xa4".to_vec())))
        .add(entry(1, b"pipe", TreeKind::Pipe))
        .file(1, "sticky", b"x")
        .file(1, "\u{e4}", b"in UTF-8")
        .add(entry(1, b"\xff\\x \"'`\t\n\x01\x7f*[?$", TreeKind::Folder))
        .file(2, "\\", b"y");
    for name in ["hosts", "hosts.link"] {
        let (hosts, _) = tree.at(name);
        (hosts.inode, hosts.links) = (4_711, 2);
    }
    let (su, _) = tree.at("su");
    (su.mode, su.uid, su.gid) = (0o4755, 0, 0);
    su.attributes = vec![
        (b"security.capability".to_vec(), vec![1, 0, 0, 2, 255]),
        (b"user.empty".to_vec(), Vec::new()),
        (b"user.\xff\\".to_vec(), noise(2, 60_000)),
    ];
    tree.at("sticky").0.mode = 0o7000;
    tree.at("empty").0.modified = (-1, 999_999_999);
    tree.at("pipe").0.inode = u64::MAX;
    tree
}

#[test]
fn files_of_all_kinds_come_back_as_they_were() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    assert_eq!(ours.tagged("backup of guest, one").unwrap(), None);
    let tree = all_kinds();
    let saved = tree.save(&ours, "guest").unwrap();
    assert_eq!(saved.snapshot.label, "guest");
    assert_eq!(saved.snapshot.bytes, tree.0.iter().map(|(entry, _)| entry.size).sum::<u64>());
    let back = Tree::read(&ours, &saved.snapshot.id);
    for (back, saved) in back.0.iter().zip(&tree.0) {
        assert_eq!(back.0, saved.0);
        assert!(back.1 == saved.1, "the content of {:?}", saved.0);
    }
    assert_eq!(back.0.len(), tree.0.len());
    ours.check(Reading::All).unwrap();
    assert_eq!(ours.list("guest").unwrap(), std::slice::from_ref(&saved.snapshot));
    assert_eq!(ours.tagged("backup of guest, one").unwrap(), Some(saved.snapshot));
    assert_eq!(ours.tagged("one").unwrap(), None);
}

#[test]
fn one_file_and_one_folder_are_found() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let tree = all_kinds();
    let id = tree.save(&ours, "guest").unwrap().snapshot.id;
    let mut content = Vec::new();
    assert_eq!(ours.read_file(&id, &[b"etc", b"etc", b"hosts"], &mut content).unwrap(), 20);
    assert_eq!(content, b"127.0.0.1 localhost\n");
    content.clear();
    ours.read_file(&id, &[b"large"], &mut content).unwrap();
    assert!(content == noise(1, 30 << 20));
    assert_eq!(ours.read_file(&id, &[b"\xff\\x \"'`\t\n\x01\x7f*[?$", b"\\"], &mut Vec::new()).unwrap(), 1);
    assert_eq!(ours.read_file(&id, &[b"etc", b"empty"], &mut Vec::new()).unwrap(), 0);

    let root: Vec<_> = tree.0.iter().filter(|(entry, _)| entry.depth == 1).map(|(entry, _)| entry.clone()).collect();
    assert_eq!(ours.list_folder(&id, &[]).unwrap(), root);
    let names: Vec<_> = ours.list_folder(&id, &[b"etc", b"etc"]).unwrap();
    assert_eq!(
        names.iter().map(|one| (one.depth, one.name.as_slice())).collect::<Vec<_>>(),
        [(1, b"hosts".as_slice()), (1, b"hosts.link")]
    );
    assert_eq!(ours.list_folder(&id, &[b"empty folder"]).unwrap(), []);

    let read = |path: &[&[u8]]| ours.read_file(&id, path, &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(read(&[b"etc", b"shadow"]), "the backup holds no /etc/shadow");
    assert_eq!(read(&[b"etc", b"empty", b"x", b"y"]), "the backup holds no /etc/empty/x");
    assert_eq!(read(&[b".."]), "the backup holds no /..");
    assert_eq!(read(&[b"etc"]), "/etc is no regular file");
    assert_eq!(read(&[]), "/ is no regular file");
    assert_eq!(read(&[b"link"]), "/link is no regular file");
    assert_eq!(ours.list_folder(&id, &[b"large"]).unwrap_err().to_string(), "/large is no folder");
    for id in ["", "latest", &id[..8], &"0".repeat(64)] {
        let error = ours.list_folder(id, &[]).unwrap_err();
        assert!(matches!(error, BackupError::NoSnapshot { .. }), "{error}");
    }
}

#[test]
fn what_lies_at_a_path_comes_with_all_that_is_in_it() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let tree = all_kinds();
    let id = tree.save(&ours, "guest").unwrap().snapshot.id;
    let read = |path: &[&[u8]]| {
        let mut taken = Taken::default();
        ours.read_at(&id, path, &mut taken).map(|()| taken.tree)
    };
    assert!(read(&[]).unwrap() == tree);
    let etc = read(&[b"etc"]).unwrap();
    let names: Vec<_> = etc.0.iter().map(|(one, _)| (one.depth, String::from_utf8_lossy(&one.name))).collect();
    let wanted = [(0, ""), (1, "empty"), (1, "etc"), (2, "hosts"), (2, "hosts.link"), (1, "etc.conf")];
    assert_eq!(names, wanted.map(|(depth, name)| (depth, name.into())));
    assert_eq!(etc.0[3].1, b"127.0.0.1 localhost\n");
    let large = read(&[b"large"]).unwrap();
    assert_eq!((large.0.len(), large.0[0].0.depth, large.0[0].0.size), (1, 0, 30 << 20));
    assert!(large.0[0].1 == noise(1, 30 << 20));

    let entry = |path: &[&[u8]]| ours.entry_at(&id, path).unwrap();
    assert_eq!(entry(&[]), tree.0[0].0);
    assert_eq!((entry(&[b"etc", b"empty"]).size, entry(&[b"bin", b"su"]).mode), (0, 0o4755));
    assert!(matches!(entry(&[b"link2"]).kind, TreeKind::Link(_)));
    // It leads to a folder that is there.
    for path in [&[b"link2".as_slice()] as &[&[u8]], &[b"pipe"]] {
        let error = read(path).unwrap_err().to_string();
        assert!(error.ends_with("is no regular file or folder"), "{error}");
    }
    for path in [&[b"link2".as_slice(), b"hosts"] as &[&[u8]], &[b"..", b"etc"], &[b"etc", b".", b"empty"]] {
        let error = read(path).unwrap_err();
        assert!(matches!(error, BackupError::NoFile(_)), "{error}");
        assert!(matches!(ours.entry_at(&id, path).unwrap_err(), BackupError::NoFile(_)));
    }
}

/// A guest makes folders as large as it likes, and who looks for a file has one in memory.
#[test]
fn a_folder_of_too_many_files_is_not_looked_through() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let mut tree = Tree::new().folder(1, "large");
    for number in 0..1_100 {
        let mut one = entry(2, format!("{number:04}").as_bytes(), TreeKind::Folder);
        one.attributes = vec![(b"user.note".to_vec(), noise(number, 50_000))];
        tree = tree.add(one);
    }
    let tree = tree.file(1, "small", b"x");
    let id = tree.save(&ours, "guest").unwrap().snapshot.id;
    assert_eq!(ours.list_folder(&id, &[]).unwrap().len(), 2);
    assert_eq!(ours.read_file(&id, &[b"small"], &mut Vec::new()).unwrap(), 1);
    let mut taken = Taken::default();
    for error in [
        ours.list_folder(&id, &[b"large"]).unwrap_err(),
        ours.entry_at(&id, &[b"large", b"0000"]).unwrap_err(),
        ours.read_at(&id, &[], &mut taken).unwrap_err(),
    ] {
        assert!(matches!(error, BackupError::TooMuch), "{error}");
    }
    // All of it comes back nevertheless.
    assert!(Tree::read(&ours, &id) == tree);
}

#[test]
fn only_what_changed_is_opened() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let mut tree = all_kinds();
    tree.save(&ours, "guest").unwrap();
    let again = |tree: &Tree, label: &str| {
        let contents = Arc::new(Held::of(tree));
        let saved = tree.save_from(&ours, label, &contents).unwrap();
        (contents.names(tree), saved.added_bytes)
    };
    let (opened, added) = again(&tree, "guest");
    assert_eq!((opened.as_slice(), added), ([].as_slice(), 0));

    // Who owns a file is in the tree, and nothing to open it for.
    tree.at("etc.conf").0.uid = 5;
    tree.at("su").0.modified.1 += 1;
    tree.at("hosts").0.changed.0 += 1;
    tree.at("sticky").0.inode += 1;
    let (large, content) = tree.at("large");
    content.extend_from_slice(b"a line\n");
    large.size += 7;
    let (opened, added) = again(&tree, "guest");
    assert_eq!(opened, ["su", "hosts", "large", "sticky"]);
    // One piece at most is new, which has 8 MiB at most; where pieces end is by chance.
    assert!(added < 9 << 20, "{added} bytes more");
    let last = ours.list("guest").unwrap().remove(0);
    assert!(Tree::read(&ours, &last.id) == tree);

    // Nothing that another guest saved is taken for the same, and yet it is held once.
    let (opened, added) = again(&tree, "another");
    assert_eq!(opened.len(), tree.0.iter().filter(|(entry, _)| entry.kind == TreeKind::File).count());
    assert_eq!(added, 0);
}

#[test]
fn two_save_at_the_same_time_and_both_are_kept() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let trees: Vec<_> = (0..4)
        .map(|seed| Tree::new().file(1, "mine", &noise(seed, 3 << 20)).file(1, "shared", &noise(9, 3 << 20)))
        .collect();
    let begin = Barrier::new(trees.len());
    std::thread::scope(|scope| {
        for (number, tree) in trees.iter().enumerate() {
            let (ours, begin) = (&ours, &begin);
            scope.spawn(move || {
                begin.wait();
                tree.save(ours, &number.to_string()).unwrap();
            });
        }
    });
    ours.check(Reading::All).unwrap();
    for (number, tree) in trees.iter().enumerate() {
        let [saved] = ours.list(&number.to_string()).unwrap().try_into().unwrap();
        assert!(Tree::read(&ours, &saved.id) == *tree);
    }
}

#[test]
fn a_tree_may_be_as_deep_as_any() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let name = "n".repeat(255);
    let mut tree = (1..MAX_DEPTH).fold(Tree::new(), |tree, depth| tree.folder(depth, &name));
    tree = tree.file(MAX_DEPTH, "bottom", b"reached");
    let saved = tree.save(&ours, "guest").unwrap();
    assert!(Tree::read(&ours, &saved.snapshot.id) == tree);
    ours.check(Reading::All).unwrap();
    ours.prune().unwrap();
    let contents = Arc::new(Held::of(&tree));
    tree.save_from(&ours, "guest", &contents).unwrap();
    assert_eq!(contents.names(&tree), Vec::<String>::new());
}

#[test]
fn a_folder_that_was_saved_from_here_comes_as_a_tree_too() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let from = at.path().join("from");
    super::write(&from.join("b"), "file", "content");
    super::write(&from, "a", "");
    super::write(&from, "b.c", "");
    let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
    let id = ours.save(&from, "controller", "here").unwrap().snapshot.id;
    let back = Tree::read(&ours, &id);
    let names: Vec<_> = back.0.iter().map(|(one, _)| (one.depth, String::from_utf8_lossy(&one.name))).collect();
    assert_eq!(names, [(0, "".into()), (1, "a".into()), (1, "b".into()), (2, "file".into()), (1, "b.c".into())]);
    assert_eq!(back.0[3].1, b"content");
    assert_eq!((back.0[0].0.mode, back.0[0].0.uid), (0o755, 0));
}

#[test]
fn who_takes_no_more_is_told_why() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let id = all_kinds().save(&ours, "guest").unwrap().snapshot.id;
    let mut taken = Taken { full_after: Some(5), ..Taken::default() };
    let error = ours.read_tree(&id, &mut taken).unwrap_err();
    assert!(matches!(&error, BackupError::Taking(why) if why.kind() == std::io::ErrorKind::StorageFull), "{error:?}");
}
