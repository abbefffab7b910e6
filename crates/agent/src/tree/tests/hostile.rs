//! Trees that nobody honest tells.

use corpus_protocol::{MAX_DEPTH, MAX_ENTRIES, MAX_TREE_LINE};

use super::*;

pub fn entry(depth: u32, name: &[u8], kind: TreeKind) -> TreeEntry {
    let time = (1_000_000_000, 0);
    let (name, attributes) = (name.to_owned(), Vec::new());
    let (uid, gid, inode, links, size) = (0, 0, 1, 1, 0);
    TreeEntry {
        depth,
        name,
        kind,
        mode: 0o755,
        uid,
        gid,
        modified: time,
        changed: time,
        inode,
        links,
        size,
        attributes,
    }
}

pub fn stream(entries: &[TreeEntry]) -> Vec<u8> {
    let mut stream = Vec::new();
    for entry in [&[entry(0, b"", TreeKind::Folder)], entries].concat() {
        let is_file = entry.kind == TreeKind::File;
        pieces::say(&mut stream, &TreeLine::Entry(Box::new(entry))).unwrap();
        if is_file {
            pieces::put(&mut stream, b"content").unwrap();
            pieces::put(&mut stream, b"").unwrap();
        }
    }
    pieces::say(&mut stream, &TreeLine::End { entries: entries.len() as u64 + 1 }).unwrap();
    stream
}

fn refused(ids: Option<IdRange>, entries: &[TreeEntry]) -> String {
    let to = tempdir().unwrap();
    match write_all(&to, ids, &stream(entries)) {
        Err(failure @ Failure::Invalid(_)) => failure.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_nobody_honest_tells_is_refused() {
    use TreeKind::{File, Folder, Link, Pipe};
    for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0b"] {
        for kind in [Folder, File, Pipe, Link(b"x".to_vec())] {
            assert!(refused(None, &[entry(1, name, kind)]).contains("is no name"), "{name:?}");
        }
    }
    let text = refused(None, &[entry(2, b"a", File)]);
    assert!(text.contains("was not told"), "{text}");
    let text = refused(None, &[entry(1, b"a", Folder), entry(3, b"b", File)]);
    assert!(text.contains("was not told"), "{text}");
    for kind in [File, Pipe, Link(b"/".to_vec())] {
        let text = refused(None, &[entry(1, b"a", kind), entry(2, b"b", File)]);
        assert!(text.contains("in something that is no folder"), "{text}");
    }
    assert!(refused(None, &[entry(0, b"", Folder)]).contains("second root"));
    for second in [&b"b"[..], b"a"] {
        let text = refused(None, &[entry(1, b"b", File), entry(1, second, File)]);
        assert!(text.contains("not in order"), "{text}");
    }
    assert!(refused(None, &[entry(1, b"a", Link(vec![]))]).contains("can't lead"));
    let odd = |change: &dyn Fn(&mut TreeEntry)| {
        let mut odd = entry(1, b"a", File);
        change(&mut odd);
        refused(ids(0), &[odd])
    };
    assert!(odd(&|entry| entry.uid = 65_536).contains("no id 65536"));
    assert!(odd(&|entry| entry.mode = 0o10_755).contains("no permissions"));
    assert!(odd(&|entry| entry.modified.1 = 0x3fff_ffff).contains("ns"));
    for name in ["trusted.overlay.opaque", "security.selinux", "user", "system.other"] {
        assert!(odd(&|entry| entry.attributes = vec![(name.into(), vec![])]).contains("no attribute"), "{name}");
    }
    for value in [acl(65_536), vec![1], capability(Some(65_536))] {
        let name = if value.len() == 24 { "security.capability" } else { "system.posix_acl_access" };
        assert!(
            odd(&|entry| entry.attributes = vec![(name.into(), value.clone())]).contains("the guest does not have")
        );
    }
}

#[test]
fn what_is_too_much_is_refused() {
    let to = tempdir().unwrap();
    let mut writer = Writer::new(&root(&to, None)).unwrap();
    writer.entries = MAX_ENTRIES;
    let text = writer.run(&mut stream(&[]).as_slice()).unwrap_err().to_string();
    assert!(text.contains("more than 10000000 files"), "{text}");

    let long = format!("{}\n", "x".repeat(MAX_TREE_LINE + 1));
    let text = write_all(&to, None, long.as_bytes()).unwrap_err().to_string();
    assert!(text.contains("longer than"), "{text}");
    let piece = [&stream(&[entry(1, b"a", TreeKind::File)])[..], &[]].concat();
    let at = piece.windows(11).position(|window| window == b"\0\0\0\x07content").unwrap();
    let huge = [&piece[..at], &u32::MAX.to_be_bytes()].concat();
    let text = write_all(&to, None, &huge).unwrap_err().to_string();
    assert!(text.contains("more than 262144"), "{text}");

    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let deep: Vec<_> = (1..=MAX_DEPTH + 1).map(|depth| entry(depth, b"a", TreeKind::Folder)).collect();
    assert!(refused(None, &deep).contains("deeper than 2048"));
    // As deep as may be comes back as it is.
    write_all(&to, None, &stream(&deep[..deep.len() - 1])).unwrap();
    let (entries, _) = read_all(&to, None);
    assert_eq!(entries.len(), deep.len());
    write_all(&to, None, &stream(&[])).unwrap();
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
}

#[test]
fn no_link_of_the_image_is_followed() {
    let (to, outside) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), to.path().join("etc")).unwrap();
    symlink(outside.path().join("secret"), to.path().join("file")).unwrap();
    symlink(outside.path(), to.path().join("gone")).unwrap();
    let entries = [
        entry(1, b"etc", TreeKind::Folder),
        entry(2, b"secret", TreeKind::File),
        entry(1, b"file", TreeKind::File),
        entry(1, b"link", TreeKind::Link(outside.path().as_os_str().as_bytes().to_vec())),
    ];
    write_all(&to, None, &stream(&entries)).unwrap();
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(fs::symlink_metadata(to.path().join("etc")).unwrap().is_dir());
    assert_eq!(fs::read_to_string(to.path().join("etc/secret")).unwrap(), "content");
    assert_eq!(fs::read_to_string(to.path().join("file")).unwrap(), "content");
    assert!(!to.path().join("gone").exists());
}
