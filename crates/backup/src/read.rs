//! Bringing back files that will not be on this machine.
//!
//! A backup goes to a node as it came from one, file by file in the same order, and one file of it or the names of one
//! folder go to a person who looks for what was lost. Nothing of it lies on this machine's disk on the way, and of a large
//! file only a few blobs are in memory at a time.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use corpus_protocol::{MAX_PIECE, TreeEntry, TreeKind};
use rustic_core::repofile::{Node, SnapshotFile, SnapshotId};
use rustic_core::{IndexedFullStatus, Repository as Rustic, TreeId};

use crate::BackupError;
use crate::node::to_entry;
use crate::repository::{Repository, Result, Snapshot};
use crate::tree::root_of;
use crate::walk::{Walk, shown};

const READING: &str = "reading a backup";
/// How long what is told of the folders that are open at one time may be together, in bytes as a repository holds it, for
/// who looks for a few files: some 150,000 files in one folder. It is in memory, and a guest makes its folders as large as
/// it likes.
const MAX_LOOKED_AT: u64 = 64 << 20;

/// Who takes a tree that is brought back.
pub trait TreeSink {
    /// The next entry; the root is the first.
    fn entry(&mut self, entry: &TreeEntry) -> io::Result<()>;
    /// More of the content of the regular file that was the last entry, at most [`MAX_PIECE`] bytes and at least one.
    fn content(&mut self, piece: &[u8]) -> io::Result<()>;
    /// That was all of it. Comes for each regular file, for an empty one too.
    fn content_ends(&mut self) -> io::Result<()>;
}

impl Repository {
    /// Brings a whole backup back, in the order in which a tree is saved.
    ///
    /// A file of several names comes with its content under each of them. What was not saved as a tree has a root that
    /// everybody may read and root owns, and lacks its sockets and devices.
    pub fn read_tree(&self, id: &str, to: &mut dyn TreeSink) -> Result<Snapshot> {
        let backup = self.backup(id, u64::MAX)?;
        backup.tree_to(&root_of(&backup.file), backup.file.tree, to)?;
        Ok(Snapshot::of(&backup.file))
    }

    /// Brings back what lies at a path: a folder with all that is in it, or one regular file. It comes first, of the depth
    /// 0 and without a name, and a link is not followed.
    pub fn read_at(&self, id: &str, path: &[&[u8]], to: &mut dyn TreeSink) -> Result<()> {
        let backup = self.backup(id, MAX_LOOKED_AT)?;
        let Some(node) = backup.find(path)? else {
            return backup.tree_to(&root_of(&backup.file), backup.file.tree, to);
        };
        let is_either = node.is_dir() || node.is_file();
        let entry = to_entry(&node, 0).filter(|_| is_either);
        let entry = entry.ok_or_else(|| BackupError::Kind { path: named(path), wanted: "regular file or folder" })?;
        let entry = TreeEntry { name: Vec::new(), ..entry };
        if node.is_dir() {
            return backup.tree_to(&entry, backup.tree_of(&node)?, to);
        }
        to.entry(&entry).map_err(BackupError::Taking)?;
        backup.content_to(&node, &named(path), to)
    }

    /// What is told of what lies at a path, of the depth 0; the root has no name.
    pub fn entry_at(&self, id: &str, path: &[&[u8]]) -> Result<TreeEntry> {
        let backup = self.backup(id, MAX_LOOKED_AT)?;
        let Some(node) = backup.find(path)? else { return Ok(root_of(&backup.file)) };
        to_entry(&node, 0).ok_or_else(|| BackupError::Kind { path: named(path), wanted: "regular file or folder" })
    }

    /// Brings the content of one regular file back, which lies in these folders; how many bytes it has.
    pub fn read_file(&self, id: &str, path: &[&[u8]], to: &mut dyn Write) -> Result<u64> {
        let backup = self.backup(id, MAX_LOOKED_AT)?;
        let node = backup.find(path)?.filter(Node::is_file);
        let node = node.ok_or_else(|| BackupError::Kind { path: named(path), wanted: "regular file" })?;
        backup.dump(&node, &named(path), |piece| to.write_all(piece))
    }

    /// What is in one folder, in the order of names; no path is the root. Each has the depth 1.
    pub fn list_folder(&self, id: &str, path: &[&[u8]]) -> Result<Vec<TreeEntry>> {
        let backup = self.backup(id, MAX_LOOKED_AT)?;
        let nodes = match backup.find(path)? {
            None => backup.folder(backup.file.tree)?.nodes,
            Some(node) if node.is_dir() => backup.folder(backup.tree_of(&node)?)?.nodes,
            Some(_) => return Err(BackupError::Kind { path: named(path), wanted: "folder" }),
        };
        Ok(nodes.iter().filter_map(|node| to_entry(node, 1)).collect())
    }

    fn backup(&self, id: &str, most: u64) -> Result<Backup<'_>> {
        let repository = self.open()?;
        let mut held = repository.list::<SnapshotId>().map_err(BackupError::of("listing backups"))?;
        let missing = || BackupError::NoSnapshot { place: self.name(), which: id.to_owned() };
        let found = held.find(|one| one.to_hex().as_str() == id).ok_or_else(missing)?;
        drop(held);
        let mut file: SnapshotFile = repository.get_file(&found).map_err(BackupError::of(READING))?;
        file.id = found;
        let from = repository.to_indexed().map_err(BackupError::of("reading the repository's index"))?;
        Ok(Backup { repository: self, from, file, most })
    }
}

/// One backup, opened.
struct Backup<'a> {
    repository: &'a Repository,
    from: Rustic<IndexedFullStatus>,
    file: SnapshotFile,
    /// What is told of the folders that are open at one time is no longer together.
    most: u64,
}

/// What is in a folder.
struct Folder {
    nodes: Vec<Node>,
    /// How long it is where it lies.
    length: u64,
}

impl Backup<'_> {
    /// A folder and all that is in it.
    fn tree_to(&self, root: &TreeEntry, tree: TreeId, to: &mut dyn TreeSink) -> Result<()> {
        let mut walk = Walk::default();
        self.judged(&mut walk, root)?;
        to.entry(root).map_err(BackupError::Taking)?;
        // On a stack of its own: a guest decides how deep it is.
        let first = self.folder(tree)?;
        let mut length = first.length;
        let mut open = vec![(first.nodes.into_iter(), first.length)];
        while let Some((folder, own)) = open.last_mut() {
            let Some(node) = folder.next() else {
                length -= *own;
                open.pop();
                continue;
            };
            let depth = u32::try_from(open.len()).unwrap_or(u32::MAX);
            let Some(entry) = to_entry(&node, depth) else { continue };
            self.judged(&mut walk, &entry)?;
            to.entry(&entry).map_err(BackupError::Taking)?;
            match entry.kind {
                TreeKind::Folder => {
                    let next = self.folder_beside(self.tree_of(&node)?, length)?;
                    length += next.length;
                    open.push((next.nodes.into_iter(), next.length));
                }
                TreeKind::File => self.content_to(&node, &walk.path(&entry), to)?,
                TreeKind::Link(_) | TreeKind::Pipe => {}
            }
        }
        Ok(())
    }

    /// The node there; the root has none.
    fn find(&self, path: &[&[u8]]) -> Result<Option<Node>> {
        let mut found: Option<Node> = None;
        for (at, name) in path.iter().enumerate() {
            let missing = || BackupError::NoFile(named(path.get(..=at).unwrap_or(path)));
            let nodes = match &found {
                None => self.folder(self.file.tree)?.nodes,
                Some(node) if node.is_dir() => self.folder(self.tree_of(node)?)?.nodes,
                Some(_) => return Err(missing()),
            };
            found = nodes.into_iter().find(|node| *node.name() == *OsStr::from_bytes(name));
            if found.is_none() {
                return Err(missing());
            }
        }
        Ok(found)
    }

    fn tree_of(&self, folder: &Node) -> Result<TreeId> {
        folder.subtree.ok_or_else(|| self.damaged(format!("the folder {} has no tree", folder.name)))
    }

    fn folder(&self, tree: TreeId) -> Result<Folder> {
        self.folder_beside(tree, 0)
    }

    /// What is in a folder, while others of this length are open.
    fn folder_beside(&self, tree: TreeId, open: u64) -> Result<Folder> {
        let held = self.from.get_index_entry(&tree).map_err(BackupError::of(READING))?;
        let length = u64::from(held.data_length());
        if open.saturating_add(length) > self.most {
            return Err(BackupError::TooMuch);
        }
        Ok(Folder { nodes: self.from.get_tree(&tree).map_err(BackupError::of(READING))?.nodes, length })
    }

    fn content_to(&self, node: &Node, path: &str, to: &mut dyn TreeSink) -> Result<()> {
        self.dump(node, path, |blob| blob.chunks(MAX_PIECE as usize).try_for_each(|piece| to.content(piece)))?;
        to.content_ends().map_err(BackupError::Taking)
    }

    fn dump(&self, node: &Node, path: &str, take: impl FnMut(&[u8]) -> io::Result<()>) -> Result<u64> {
        let mut taker = Taker { take, taken: 0, refused: None };
        let dumped = self.from.dump(node, &mut taker);
        if let Some(refused) = taker.refused {
            return Err(BackupError::Taking(refused));
        }
        dumped.map_err(BackupError::of(READING))?;
        if taker.taken != node.meta.size {
            return Err(self.damaged(format!("{path} is {} bytes long, not {}", taker.taken, node.meta.size)));
        }
        Ok(taker.taken)
    }

    /// Holds what was saved to the same as what is saved: it may be of another restic.
    fn judged(&self, walk: &mut Walk, entry: &TreeEntry) -> Result<()> {
        let step = walk.step(entry);
        step.map(|_| ()).map_err(|fault| self.damaged(format!("{}: {fault}", walk.path(entry))))
    }

    fn damaged(&self, found: String) -> BackupError {
        BackupError::Damaged { place: self.repository.name(), found }
    }
}

/// Hands on what the library writes, and remembers why it was not taken.
struct Taker<F> {
    take: F,
    taken: u64,
    refused: Option<io::Error>,
}

impl<F: FnMut(&[u8]) -> io::Result<()>> Write for Taker<F> {
    fn write(&mut self, blob: &[u8]) -> io::Result<usize> {
        if let Err(error) = (self.take)(blob) {
            self.refused = Some(error);
            return Err(io::Error::other("it was not taken"));
        }
        self.taken += blob.len() as u64;
        Ok(blob.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn named(path: &[&[u8]]) -> String {
    shown(path.iter().copied())
}
