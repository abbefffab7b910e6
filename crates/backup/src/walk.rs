//! The order of a tree, held to.
//!
//! Entries come from a node that a guest may have taken over. A name such as `..` would lead whoever brings a backup back
//! out of its folder, and an entry out of its order would be left out of the next comparison, or hide another. So each
//! entry is judged by those before it: a folder comes before what is in it, and names of a folder in the order of their
//! bytes, none twice.

use corpus_protocol::{MAX_DEPTH, MAX_ENTRIES, TreeEntry, TreeKind};

/// What the folders that are open at one time may hold together: their entries are kept until a folder ends.
const MAX_OPEN_BYTES: u64 = 2 << 30;
/// What one entry takes besides its names and attributes, about.
const ENTRY_BYTES: u64 = 512;
/// How long the paths of all folders may be together: the library keeps those that it has not visited yet when it looks for
/// what is held, and a guest may make them as long as it likes.
const MAX_PATH_BYTES: u64 = 2 << 30;
/// So many bytes of a path are shown, and the name that they end in.
const MAX_SHOWN: usize = 512;

/// A walk through a tree, at one of its entries.
#[derive(Debug, Default)]
pub struct Walk {
    folders: Vec<Folder>,
    entries: u64,
    open_bytes: u64,
    path_bytes: u64,
}

#[derive(Debug)]
struct Folder {
    name: Vec<u8>,
    /// The number that its entry has.
    number: u64,
    /// The last name in it so far.
    last: Option<Vec<u8>>,
    /// What is in it takes so much, without what is below.
    bytes: u64,
    /// How long its path is.
    path: u64,
}

impl Walk {
    /// Goes to the next entry, and gives its number; or says what is wrong with it.
    pub fn step(&mut self, entry: &TreeEntry) -> Result<u64, &'static str> {
        let depth = usize::try_from(entry.depth).map_err(|_| "it is too deep")?;
        if self.entries == 0 {
            at_root(entry)?;
        } else {
            self.leave(depth)?;
            self.place(entry)?;
        }
        let number = self.entries;
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err("it is one of too many");
        }
        if entry.kind == TreeKind::Folder {
            self.descend(entry, number)?;
        }
        Ok(number)
    }

    /// The numbers of the folders that the last entry is in, without the root; of a folder, its own too.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.folders.iter().skip(1).map(|folder| folder.number)
    }

    /// Where an entry is that comes next, for people.
    pub fn path(&self, entry: &TreeEntry) -> String {
        let depth = usize::try_from(entry.depth).unwrap_or_default();
        let folders = self.folders.iter().take(depth).map(|folder| folder.name.as_slice());
        shown(folders.skip(1).chain([entry.name.as_slice()]))
    }

    /// Closes the folders that an entry of this depth is not in.
    fn leave(&mut self, depth: usize) -> Result<(), &'static str> {
        if depth == 0 {
            return Err("it is a second root");
        }
        if depth > self.folders.len() {
            return Err("it is in no folder");
        }
        let left = self.folders.drain(depth..).map(|folder| folder.bytes).sum::<u64>();
        self.open_bytes -= left;
        Ok(())
    }

    fn descend(&mut self, entry: &TreeEntry, number: u64) -> Result<(), &'static str> {
        let above = self.folders.last().map_or(0, |folder| folder.path);
        let path = above.saturating_add(1).saturating_add(u64::try_from(entry.name.len()).unwrap_or(u64::MAX));
        self.path_bytes = self.path_bytes.saturating_add(path);
        if self.path_bytes > MAX_PATH_BYTES {
            return Err("the paths of all folders are too long together");
        }
        self.folders.push(Folder { name: entry.name.clone(), number, last: None, bytes: 0, path });
        Ok(())
    }

    fn place(&mut self, entry: &TreeEntry) -> Result<(), &'static str> {
        if entry.depth > MAX_DEPTH {
            return Err("it is too deep");
        }
        if matches!(entry.name.as_slice(), b"" | b"." | b"..") || entry.name.iter().any(|byte| matches!(byte, b'/' | 0))
        {
            return Err("it has a name that no file can have");
        }
        let folder = self.folders.last_mut().ok_or("it is in no folder")?;
        if folder.last.as_ref().is_some_and(|last| *last >= entry.name) {
            return Err("it is not in the order of names");
        }
        folder.last = Some(entry.name.clone());
        let bytes = weight(entry);
        folder.bytes += bytes;
        self.open_bytes += bytes;
        if self.open_bytes > MAX_OPEN_BYTES { Err("its folder holds too much") } else { Ok(()) }
    }
}

/// A path for people: as much of it as one reads, and nothing that a terminal would obey.
pub(crate) fn shown<'a>(names: impl Iterator<Item = &'a [u8]>) -> String {
    let mut path = String::new();
    for name in names {
        if path.len() > MAX_SHOWN {
            path.push('\u{2026}');
            break;
        }
        path.push('/');
        path.extend(String::from_utf8_lossy(name).escape_debug());
    }
    if path.is_empty() { "/".to_owned() } else { path }
}

fn at_root(entry: &TreeEntry) -> Result<(), &'static str> {
    match entry.kind {
        TreeKind::Folder if entry.depth == 0 && entry.name.is_empty() => Ok(()),
        _ => Err("the root does not come first"),
    }
}

fn weight(entry: &TreeEntry) -> u64 {
    let target = if let TreeKind::Link(target) = &entry.kind { target.len() } else { 0 };
    let attributes = entry.attributes.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    // A byte takes up to six as it is stored.
    let text = (entry.name.len() + target + attributes).saturating_mul(6);
    ENTRY_BYTES.saturating_add(u64::try_from(text).unwrap_or(u64::MAX))
}
