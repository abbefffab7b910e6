//! Trees that are known: made here, saved as if they came from a node, and taken as if they went to one.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use corpus_protocol::{MAX_PIECE, TreeEntry, TreeKind};

use crate::{About, BackupError, Contents, Repository, Saved, TreeSink};

/// Entries with their contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(pub Vec<(TreeEntry, Vec<u8>)>);

pub fn entry(depth: u32, name: &[u8], kind: TreeKind) -> TreeEntry {
    TreeEntry {
        depth,
        name: name.to_vec(),
        mode: if kind == TreeKind::Folder { 0o755 } else { 0o644 },
        kind,
        uid: 1_000,
        gid: 100,
        modified: (1_790_000_000, 123_456_789),
        changed: (1_790_000_001, 987_654_321),
        inode: name.iter().fold(7 + u64::from(depth), |sum, byte| sum * 31 % 1_000_003 + u64::from(*byte)),
        links: 1,
        size: 0,
        attributes: Vec::new(),
    }
}

impl Tree {
    /// A root.
    pub fn new() -> Self {
        Self(vec![(entry(0, b"", TreeKind::Folder), Vec::new())])
    }

    pub fn add(mut self, entry: TreeEntry) -> Self {
        self.0.push((entry, Vec::new()));
        self
    }

    pub fn folder(self, depth: u32, name: &str) -> Self {
        self.add(entry(depth, name.as_bytes(), TreeKind::Folder))
    }

    pub fn file(mut self, depth: u32, name: &str, content: &[u8]) -> Self {
        let mut file = entry(depth, name.as_bytes(), TreeKind::File);
        file.size = content.len() as u64;
        // What is in another content was written at another time.
        file.modified.1 = content.iter().fold(1, |sum, byte| (sum * 31 + u32::from(*byte)) % 1_000_003);
        self.0.push((file, content.to_vec()));
        self
    }

    /// Where its files are, as a path.
    pub fn at(&mut self, name: &str) -> &mut (TreeEntry, Vec<u8>) {
        self.0.iter_mut().find(|(entry, _)| entry.name == name.as_bytes()).unwrap()
    }

    pub fn save(&self, to: &Repository, label: &str) -> Result<Saved, BackupError> {
        self.save_from(to, label, &Arc::new(Held::of(self)))
    }

    pub fn save_from(&self, to: &Repository, label: &str, contents: &Arc<Held>) -> Result<Saved, BackupError> {
        let entries: Vec<_> = self.0.iter().map(|(entry, _)| Ok(entry.clone())).collect();
        to.save_tree(&about(label), entries.into_iter(), contents.clone())
    }

    pub fn read(from: &Repository, id: &str) -> Self {
        let mut taken = Taken::default();
        from.read_tree(id, &mut taken).unwrap();
        assert!(!taken.open, "the last content ended");
        taken.tree
    }
}

pub fn about(label: &str) -> About {
    About { label: label.to_owned(), host: "node".to_owned(), tag: format!("backup of {label}, one") }
}

/// Contents that note which of them were opened.
#[derive(Debug, Default)]
pub struct Held {
    pub contents: HashMap<u64, Vec<u8>>,
    pub opened: Mutex<Vec<u64>>,
    /// The number of a content, and after how many bytes it breaks.
    pub breaks: Option<(u64, usize)>,
}

impl Held {
    pub fn of(tree: &Tree) -> Self {
        let files = (0..).zip(&tree.0).filter(|(_, (entry, _))| entry.kind == TreeKind::File);
        Self { contents: files.map(|(number, (_, content))| (number, content.clone())).collect(), ..Self::default() }
    }

    /// The names of those that were opened.
    pub fn names(&self, tree: &Tree) -> Vec<String> {
        let mut numbers = self.opened.lock().unwrap().clone();
        numbers.sort_unstable();
        let names = numbers.iter().map(|number| &tree.0[usize::try_from(*number).unwrap()].0.name);
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }
}

impl Contents for Held {
    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>> {
        self.opened.lock().unwrap().push(number);
        let content = self.contents.get(&number).ok_or(io::ErrorKind::NotFound)?.clone();
        match self.breaks {
            Some((broken, after)) if broken == number => {
                let begin = io::Cursor::new(content).take(after as u64);
                Ok(Box::new(begin.chain(Broken)))
            }
            _ => Ok(Box::new(io::Cursor::new(content))),
        }
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(io::ErrorKind::ConnectionReset, "the line broke"))
    }
}

/// What a backup brought.
#[derive(Debug, Default)]
pub struct Taken {
    pub tree: Tree,
    pub open: bool,
    /// After so many pieces no more is taken.
    pub full_after: Option<usize>,
    pub pieces: usize,
}

impl TreeSink for Taken {
    fn entry(&mut self, entry: &TreeEntry) -> io::Result<()> {
        assert!(!self.open, "an entry comes in the middle of a content");
        self.open = entry.kind == TreeKind::File;
        self.tree.0.push((entry.clone(), Vec::new()));
        Ok(())
    }

    fn content(&mut self, piece: &[u8]) -> io::Result<()> {
        assert!(self.open && !piece.is_empty() && piece.len() <= MAX_PIECE as usize);
        if self.full_after.is_some_and(|full| self.pieces >= full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.pieces += 1;
        self.tree.0.last_mut().unwrap().1.extend_from_slice(piece);
        Ok(())
    }

    fn content_ends(&mut self) -> io::Result<()> {
        assert!(std::mem::take(&mut self.open));
        Ok(())
    }
}

/// Bytes that nothing makes smaller, always the same for a seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
