//! What is removed is gone, and its room is free again.

use super::known::{Tree, noise};
use super::{files, repository};
use crate::{Keep, Reading, Which};

#[test]
fn what_no_backup_holds_takes_no_room() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let size = || files(&at.path().join("repository")).iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    let with = |seed: u64| {
        // Small files lie together in a pack, so what is left of it has to be written anew.
        let kept = Tree::new().file(1, "kept", &noise(1, 2 << 20));
        (0..40).fold(kept, |tree, file| tree.file(1, &format!("one{file:02}"), &noise(100 * seed + file, 100_000)))
    };
    let first = with(2).save(&ours, "guest").unwrap().snapshot;
    let second = with(3).save(&ours, "guest").unwrap().snapshot;
    let other = Tree::new().file(1, "other", &noise(205, 100_000)).save(&ours, "other").unwrap().snapshot;
    let full = size();
    assert!(full > 9 << 20, "{full}");

    ours.remove(&[first.id.clone(), "0".repeat(64), "no id".to_owned()]).unwrap();
    ours.remove(&[first.id]).unwrap();
    ours.remove(&[]).unwrap();
    assert_eq!(ours.list("guest").unwrap(), std::slice::from_ref(&second));
    let removed = size();
    assert!(full - removed < 2_000, "only snapshots are gone");
    ours.prune().unwrap();
    let pruned = size();
    assert!(pruned + (3 << 20) < full, "{pruned} of {full}");
    ours.check(Reading::All).unwrap();
    assert!(Tree::read(&ours, &second.id) == with(3));
    let mut content = Vec::new();
    ours.read_file(&other.id, &[b"other"], &mut content).unwrap();
    assert!(content == noise(205, 100_000));

    ours.remove(&[second.id, other.id]).unwrap();
    ours.prune().unwrap();
    assert!(size() < 100_000, "{}", size());
    // And it is one still.
    let saved = with(4).save(&ours, "guest").unwrap();
    assert!(Tree::read(&ours, &saved.snapshot.id) == with(4));
}

#[test]
fn thinning_frees_room_at_once() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    for seed in 0..3 {
        Tree::new().file(1, "file", &noise(seed, 3 << 20)).save(&ours, "guest").unwrap();
    }
    let keep = Keep { daily: 1, weekly: 0, monthly: 0 };
    assert_eq!(ours.thin("guest", keep).unwrap(), 2);
    let packs = files(&at.path().join("repository/data"));
    let size = packs.iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    assert!(size < 4 << 20, "{size}");
    ours.check(Reading::All).unwrap();
    ours.restore("guest", &Which::Latest, &at.path().join("to")).unwrap();
    assert!(std::fs::read(at.path().join("to/file")).unwrap() == noise(2, 3 << 20));
}
