//! A backup is whole or there is none.

use std::sync::Arc;

use corpus_protocol::{MAX_DEPTH, TreeEntry, TreeKind};

use super::known::{Held, Tree, about, entry, noise};
use super::repository;
use crate::{BackupError, Reading};

fn folder(depth: u32, name: &[u8]) -> TreeEntry {
    entry(depth, name, TreeKind::Folder)
}

fn file(depth: u32, name: &[u8]) -> TreeEntry {
    entry(depth, name, TreeKind::File)
}

#[test]
fn what_is_no_tree_is_not_saved() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let root = || folder(0, b"");
    let mut deep = vec![root()];
    deep.extend((1..=MAX_DEPTH + 1).map(|depth| folder(depth, b"d")));
    let cases: Vec<(&str, Vec<TreeEntry>)> = vec![
        ("a name", vec![root(), file(1, b"")]),
        ("a name", vec![root(), file(1, b".")]),
        ("a name", vec![root(), folder(1, b"a"), folder(2, b"..")]),
        ("a name", vec![root(), file(1, b"a/b")]),
        ("a name", vec![root(), file(1, b"/")]),
        ("a name", vec![root(), file(1, b"a\0b")]),
        ("in no folder", vec![root(), file(2, b"a")]),
        ("in no folder", vec![root(), folder(1, b"a"), file(3, b"b")]),
        ("in no folder", vec![root(), file(1, b"a"), file(2, b"b")]),
        ("in no folder", vec![root(), entry(1, b"a", TreeKind::Link(b"/".to_vec())), file(2, b"b")]),
        ("in no folder", vec![root(), folder(1, b"a"), file(1, b"b"), file(2, b"c")]),
        ("in no folder", vec![root(), file(u32::MAX, b"a")]),
        ("second root", vec![root(), root()]),
        ("order", vec![root(), file(1, b"b"), file(1, b"a")]),
        ("order", vec![root(), file(1, b"a"), file(1, b"a")]),
        ("order", vec![root(), folder(1, b"a"), file(2, b"z"), folder(1, b"a"), file(2, b"z2")]),
        ("does not come first", vec![file(0, b"")]),
        ("does not come first", vec![folder(1, b"a")]),
        ("does not come first", vec![folder(0, b"a")]),
        ("too deep", deep),
    ];
    for (wanted, entries) in cases {
        let said = format!("{:?}", entries.last());
        let contents = Arc::new(Held::of(&Tree(entries.iter().map(|one| (one.clone(), Vec::new())).collect())));
        let error = ours.save_tree(&about("guest"), entries.into_iter().map(Ok), contents).unwrap_err();
        assert!(matches!(error, BackupError::Entry { .. }) && error.to_string().contains(wanted), "{error}: {said}");
    }
    let none = ours.save_tree(&about("guest"), std::iter::empty(), Arc::new(Held::default())).unwrap_err();
    assert_eq!(none.to_string(), "the files that are to be saved can't be listed: there are none");

    Tree::new().file(1, "file", b"good").save(&ours, "guest").unwrap();
    assert_eq!(ours.list("guest").unwrap().len(), 1);
    ours.check(Reading::All).unwrap();
}

#[test]
fn what_can_not_be_read_to_its_end_is_not_saved() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let tree = (0..50).fold(Tree::new(), |tree, number| tree.file(1, &format!("{number:02}"), &noise(number, 200_000)));
    let tree = tree.file(1, "large", &noise(77, 9 << 20)).folder(1, "last").file(2, "z", b"z");
    let broken = |number, after| Held { breaks: Some((number, after)), ..Held::of(&tree) };
    for (number, after) in [(1, 0), (1, 100), (1, 200_000), (30, 199_999), (51, 8 << 20), (53, 1)] {
        let error = tree.save_from(&ours, "guest", &Arc::new(broken(number, after))).unwrap_err();
        assert!(
            matches!(&error, BackupError::Content { source, .. } if source.to_string() == "the line broke"),
            "{error}"
        );
        assert_eq!(ours.list("guest").unwrap(), [], "{number} {after}");
    }
    // It can't be opened at all; it is shorter than was said; it is longer.
    let mut less = tree.clone();
    less.0.truncate(20);
    let error = tree.save_from(&ours, "guest", &Arc::new(Held::of(&less))).unwrap_err();
    assert!(matches!(error, BackupError::Content { .. }), "{error}");
    for change in [|size| size + 1, |size: u64| size - 1] {
        let mut other = tree.clone();
        let (entry, _) = other.at("large");
        entry.size = change(entry.size);
        let error = other.save(&ours, "guest").unwrap_err();
        assert!(matches!(&error, BackupError::Content { path, .. } if path == "/large"), "{error}");
    }
    // The list breaks off, at its begin, in the middle, and when all was told but its end.
    for after in [0, 1, 25, tree.0.len()] {
        let entries: Vec<_> = tree.0.iter().take(after).map(|(entry, _)| Ok(entry.clone())).collect();
        let entries = entries.into_iter().chain([Err("the line broke".to_owned())]);
        let error = ours.save_tree(&about("guest"), entries, Arc::new(Held::of(&tree))).unwrap_err();
        assert!(matches!(&error, BackupError::Listing(why) if why == "the line broke"), "{error}");
    }
    assert_eq!(ours.list("guest").unwrap(), []);
    assert_eq!(ours.tagged(&about("guest").tag).unwrap(), None);

    let saved = tree.save(&ours, "guest").unwrap();
    assert!(Tree::read(&ours, &saved.snapshot.id) == tree);
    // What was written before a save failed was of use to the next.
    assert!(saved.added_bytes < 9 << 20, "{} bytes", saved.added_bytes);
    ours.prune().unwrap();
    ours.check(Reading::All).unwrap();
}

#[test]
fn what_the_repository_does_not_take_is_not_saved() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    Tree::new().file(1, "file", b"good").save(&ours, "guest").unwrap();
    // Where packs begin with such digits lies something else.
    let data = at.path().join("repository/data");
    std::fs::rename(&data, at.path().join("data")).unwrap();
    std::fs::write(&data, "no folder").unwrap();
    let error = Tree::new().file(1, "other", b"good").save(&ours, "guest").unwrap_err();
    assert!(matches!(error, BackupError::Storage { .. }), "{error}");
    assert_eq!(ours.list("guest").unwrap().len(), 1);
    std::fs::remove_file(&data).unwrap();
    std::fs::rename(at.path().join("data"), &data).unwrap();
    ours.check(Reading::All).unwrap();
}
