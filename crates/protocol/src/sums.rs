//! Whether two trees are the same, told in a few lines.
//!
//! Who brings all files of a backup to a node wants to know whether what lies there is what was saved. Both sides sum up
//! what they see, a sum for each folder below the root, and only the sums are compared: no content goes over the line a
//! second time, and where they differ it is known in which folder. A sum is that of the SHA-256 of each file, of what is
//! told of it and of its content with its path, so it does not matter in which order they come.
//!
//! Times are those of contents. What restoring can't give back is not summed: numbers of files, and the times at which
//! anything about them was changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::tree::{TreeEntry, TreeKind};

/// The most folders that have a sum of their own; those beyond are summed with the root.
const MOST_FOLDERS: usize = 64;

/// What there is in a folder below the root, with all that is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderSum {
    /// How many files of any kind.
    pub files: u64,
    /// How long the regular ones are together, in bytes.
    pub bytes: u64,
    /// The sum, 64 hexadecimal digits.
    pub sum: String,
}

/// The sums of a tree by the folders below its root; that of the root's own files, and of what has none of its own, is `/`.
pub type TreeSums = BTreeMap<String, FolderSum>;

/// The folders in which two trees differ.
pub fn differing<'a>(one: &'a TreeSums, other: &'a TreeSums) -> Vec<&'a str> {
    let mut folders: Vec<&str> =
        one.keys().chain(other.keys()).filter(|key| one.get(*key) != other.get(*key)).map(String::as_str).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

#[derive(Default)]
struct Sum {
    files: u64,
    bytes: u64,
    words: [u64; 4],
}

impl Sum {
    fn add(&mut self, hash: &[u8]) {
        for (word, part) in self.words.iter_mut().zip(hash.chunks_exact(8)) {
            *word = word.wrapping_add(part.iter().fold(0, |so_far, byte| so_far << 8 | u64::from(*byte)));
        }
    }
}

/// Sums up a tree that is told file by file.
#[derive(Default)]
pub struct TreeDigest {
    /// The folders that the next entry may be in.
    folders: Vec<Vec<u8>>,
    sums: BTreeMap<String, Sum>,
    /// The content that comes now: where it counts, and what of it came.
    content: Option<(String, Sha256)>,
}

impl TreeDigest {
    /// A file, after all that it is in. Tells where it is, which is what its content is called by.
    pub fn entry(&mut self, entry: &TreeEntry) -> Vec<u8> {
        self.folders.truncate(usize::try_from(entry.depth.saturating_sub(1)).unwrap_or(usize::MAX));
        let path = if entry.depth == 0 { Vec::new() } else { self.below(&entry.name) };
        if entry.depth > 0 && entry.kind == TreeKind::Folder {
            self.folders.push(entry.name.clone());
        }
        let place = self.place(&path);
        let sum = self.sums.entry(place).or_default();
        sum.files += 1;
        sum.bytes += entry.size;
        let hash = told(&path, entry);
        sum.add(&hash);
        path
    }

    /// The content of the file at this path begins.
    pub fn content_begins(&mut self, path: &[u8]) {
        let mut hash = Sha256::new();
        put(&mut hash, b"content");
        put(&mut hash, path);
        self.content = Some((self.place(path), hash));
    }

    /// More of it.
    pub fn content(&mut self, piece: &[u8]) {
        if let Some((_, hash)) = &mut self.content {
            hash.update(piece);
        }
    }

    /// That was all of it.
    pub fn content_ends(&mut self) {
        if let Some((place, hash)) = self.content.take() {
            self.sums.entry(place).or_default().add(&hash.finalize());
        }
    }

    /// What it all comes to.
    pub fn end(self) -> TreeSums {
        let told = self.sums.into_iter().map(|(place, Sum { files, bytes, words })| {
            let [a, b, c, d] = words;
            (place, FolderSum { files, bytes, sum: format!("{a:016x}{b:016x}{c:016x}{d:016x}") })
        });
        told.collect()
    }

    fn below(&self, name: &[u8]) -> Vec<u8> {
        let mut path = self.folders.join(b"/".as_slice());
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }

    /// Where what lies at a path counts.
    fn place(&self, path: &[u8]) -> String {
        let mut names = path.splitn(2, |byte| *byte == b'/');
        let (first, rest) = (names.next().unwrap_or_default(), names.next());
        let place = format!("/{}", String::from_utf8_lossy(first));
        let is_room = self.sums.contains_key(&place) || self.sums.len() < MOST_FOLDERS;
        if rest.is_some() && is_room { place } else { "/".to_owned() }
    }
}

/// Each part with its length, so that no two files are told alike.
fn put(hash: &mut Sha256, part: &[u8]) {
    hash.update((part.len() as u64).to_be_bytes());
    hash.update(part);
}

fn told(path: &[u8], entry: &TreeEntry) -> Vec<u8> {
    let mut hash = Sha256::new();
    put(&mut hash, b"entry");
    put(&mut hash, path);
    let (kind, target) = match &entry.kind {
        TreeKind::Folder => (0_u8, &[][..]),
        TreeKind::File => (1, &[][..]),
        TreeKind::Link(target) => (2, target.as_slice()),
        TreeKind::Pipe => (3, &[][..]),
    };
    put(&mut hash, &[kind]);
    put(&mut hash, target);
    for number in [entry.mode, entry.uid, entry.gid] {
        put(&mut hash, &number.to_be_bytes());
    }
    put(&mut hash, &entry.size.to_be_bytes());
    let (seconds, nanoseconds) = if kind < 2 { entry.modified } else { (0, 0) };
    put(&mut hash, &seconds.to_be_bytes());
    put(&mut hash, &nanoseconds.to_be_bytes());
    let mut attributes: Vec<_> = entry.attributes.iter().collect();
    attributes.sort_unstable();
    for (name, value) in attributes {
        put(&mut hash, name);
        put(&mut hash, value);
    }
    hash.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Vec<(TreeEntry, &'static str)>);

    fn entry(depth: u32, name: &str, kind: TreeKind) -> TreeEntry {
        TreeEntry {
            depth,
            name: name.into(),
            size: if kind == TreeKind::File { 3 } else { 0 },
            kind,
            mode: 0o644,
            uid: 0,
            gid: 0,
            modified: (1_790_000_000, 7),
            changed: (0, 0),
            inode: 1,
            links: 1,
            attributes: vec![(b"user.b".to_vec(), b"1".to_vec()), (b"user.a".to_vec(), b"2".to_vec())],
        }
    }

    fn tree() -> Vec<(TreeEntry, &'static str)> {
        vec![
            (entry(0, "", TreeKind::Folder), ""),
            (entry(1, "etc", TreeKind::Folder), ""),
            (entry(2, "a", TreeKind::File), "one"),
            (entry(2, "b", TreeKind::Folder), ""),
            (entry(3, "c", TreeKind::File), "two"),
            (entry(2, "d", TreeKind::Link(b"a".to_vec())), ""),
            (entry(1, "lonely", TreeKind::File), "six"),
            (entry(1, "var", TreeKind::Folder), ""),
            (entry(2, "p", TreeKind::Pipe), ""),
        ]
    }

    /// As who brings files sees them: each content behind its file.
    fn sums(tree: &[(TreeEntry, &str)]) -> TreeSums {
        let mut digest = TreeDigest::default();
        for (entry, content) in tree {
            let path = digest.entry(entry);
            if entry.kind == TreeKind::File {
                digest.content_begins(&path);
                content.as_bytes().chunks(2).for_each(|piece| digest.content(piece));
                digest.content_ends();
            }
        }
        digest.end()
    }

    /// As who reads them does: all are told, then their contents.
    #[test]
    fn the_order_of_contents_does_not_matter() {
        let mut digest = TreeDigest::default();
        let paths: Vec<_> = tree().iter().map(|(entry, _)| digest.entry(entry)).collect();
        assert_eq!(paths[4], b"etc/b/c");
        for ((entry, content), path) in tree().iter().zip(&paths).rev() {
            if entry.kind == TreeKind::File {
                digest.content_begins(path);
                digest.content(content.as_bytes());
                digest.content_ends();
            }
        }
        let (one, other) = (digest.end(), sums(&tree()));
        assert_eq!(one, other);
        assert!(differing(&one, &other).is_empty());
        let files: Vec<_> = one.iter().map(|(place, sum)| (place.as_str(), sum.files, sum.bytes)).collect();
        assert_eq!(files, [("/", 4, 3), ("/etc", 4, 6), ("/var", 1, 0)]);
    }

    #[test]
    fn what_differs_is_told_by_its_folder() {
        let whole = sums(&tree());
        let changes: [(Change, &[&str]); 12] = [
            (|tree| tree[4].1 = "twp", &["/etc"]),
            (|tree| tree[4].0.mode = 0o4644, &["/etc"]),
            (|tree| tree[4].0.uid = 1, &["/etc"]),
            (|tree| tree[4].0.gid = 1, &["/etc"]),
            (|tree| tree[4].0.modified.1 = 8, &["/etc"]),
            (|tree| tree[4].0.attributes[0].1 = b"3".to_vec(), &["/etc"]),
            (|tree| tree[5].0.kind = TreeKind::Link(b"b".to_vec()), &["/etc"]),
            (|tree| tree[6].1 = "siX", &["/"]),
            (|tree| drop(tree.remove(8)), &["/var"]),
            (|tree| tree[8].0.kind = TreeKind::File, &["/var"]),
            // Two that change places.
            (|tree| (tree[2].1, tree[4].1) = ("two", "one"), &["/etc"]),
            (|tree| tree[0].0.mode = 0o755, &["/"]),
        ];
        for (number, (alter, folders)) in changes.iter().enumerate() {
            let mut other = tree();
            alter(&mut other);
            assert_eq!(differing(&whole, &sums(&other)), *folders, "change {number}");
        }
        // What no restore gives back.
        let mut same = tree();
        for (entry, _) in &mut same {
            (entry.inode, entry.links, entry.changed) = (9, 2, (5, 5));
        }
        same[2].0.attributes.reverse();
        same[5].0.modified = (1, 1);
        assert_eq!(sums(&same), whole);
    }

    #[test]
    fn many_folders_are_told_in_few_lines() {
        let mut many = vec![(entry(0, "", TreeKind::Folder), "")];
        let names: Vec<String> = (0..200).map(|number| format!("{number:0>200}")).collect();
        for name in &names {
            many.push((entry(1, name, TreeKind::Folder), ""));
            many.push((entry(2, "x", TreeKind::File), "one"));
        }
        let all = sums(&many);
        assert_eq!((all.len(), all.values().map(|sum| sum.files).sum::<u64>()), (MOST_FOLDERS, 401));
        assert!(serde_json::to_vec(&all).unwrap().len() < crate::MAX_TREE_LINE / 2);
    }
}
