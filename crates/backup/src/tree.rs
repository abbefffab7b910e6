//! Saving files that are not on this machine.
//!
//! The files of a guest come from its node: all of them are told first, then the contents that are asked for are sent. What
//! is as it was in the last backup of the same guest is not asked for, so a backup costs what changed. And a backup is
//! whole or is none: whatever goes wrong on the way ends it, and no snapshot is made.
//!
//! The tree in the repository begins at the root of the guest, as any restic writes it that saves `/`. Of the root itself
//! restic keeps nothing, so what is known of it is kept in the snapshot's description.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use corpus_protocol::{TreeEntry, TreeKind};
use rustic_core::repofile::SnapshotFile;
use rustic_core::{
    BackupOptions, ParentOptions, ReadSource, ReadSourceEntry, RusticResult, SnapshotGroupCriterion, SnapshotOptions,
};

use crate::BackupError;
use crate::contents::{Contents, Opening};
use crate::fault::Fault;
use crate::node::to_node;
use crate::repository::{Repository, Result, Saved};
use crate::walk::Walk;

/// Of what a backup is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Of what: backups of the same label are compared with each other.
    pub label: String,
    /// Where it ran.
    pub host: String,
    /// The backup's own name, to [find it](Repository::tagged) by.
    pub tag: String,
}

impl Repository {
    /// Saves a tree; the first time it makes the repository.
    ///
    /// The entries are in the order of the protocol's trees, the root first. Where they end the tree ends: who can't tell
    /// all of them ends with an error. Contents are opened while entries are still asked for, so neither may wait for the
    /// other: of one line the entries have to be taken first.
    ///
    /// A file is opened unless its size, times and number are those that the newest backup of the label knows; its content
    /// has to be as long as its entry says.
    pub fn save_tree(
        &self,
        about: &About,
        mut entries: impl Iterator<Item = std::result::Result<TreeEntry, String>> + Send + 'static,
        contents: Arc<dyn Contents>,
    ) -> Result<Saved> {
        let fault = Fault::default();
        let mut walk = Walk::default();
        let root = entries.next().unwrap_or_else(|| Err("there are none".to_owned())).map_err(BackupError::Listing)?;
        enter(&mut walk, &root)?;
        let repository = self.open_or_make(&fault)?;
        let repository = repository.to_indexed_ids().map_err(BackupError::of("reading the repository's index"))?;
        let source = Entries { told: entries, walk, contents, fault: fault.clone() };
        let source = Source(Mutex::new(Some(source)));
        let snapshot = snapshot(about, &root)?;
        let saved = repository.archive(&options(), &source, snapshot, &[PathBuf::from("/")]);
        // The first fault says more than what came of it.
        if let Some(first) = fault.take() {
            return Err(first);
        }
        Ok(Saved::of(&saved.map_err(BackupError::of("saving"))?))
    }
}

/// What is told of the root of a saved tree.
pub(crate) fn root_of(file: &SnapshotFile) -> TreeEntry {
    let told = file.description.as_deref().and_then(|text| serde_json::from_str::<TreeEntry>(text).ok());
    told.filter(|root| Walk::default().step(root).is_ok()).unwrap_or_else(|| {
        let time = (file.time.timestamp().as_second(), 0);
        TreeEntry {
            depth: 0,
            name: Vec::new(),
            kind: TreeKind::Folder,
            mode: 0o755,
            uid: 0,
            gid: 0,
            modified: time,
            changed: time,
            inode: 0,
            links: 1,
            size: 0,
            attributes: Vec::new(),
        }
    })
}

fn snapshot(about: &About, root: &TreeEntry) -> Result<SnapshotFile> {
    let root = serde_json::to_string(root).map_err(|error| BackupError::Listing(error.to_string()))?;
    let options = SnapshotOptions::default().label(about.label.clone()).host(about.host.clone());
    // How this program was called is nobody's business who reads a backup.
    let options = options.command(String::new()).description(root);
    let mut snapshot = options.to_snapshot().map_err(BackupError::of("saving"))?;
    snapshot.tags.add(about.tag.clone());
    Ok(snapshot)
}

fn options() -> BackupOptions {
    // A guest may move to another host. And `ignore_inode` is turned round in this version of the library: only with it are
    // inodes compared.
    let parent = ParentOptions::default().group_by(SnapshotGroupCriterion::new().label(true)).ignore_inode(true);
    BackupOptions::default().parent_opts(parent).no_scan(true)
}

fn enter(walk: &mut Walk, entry: &TreeEntry) -> Result<u64> {
    walk.step(entry).map_err(|fault| BackupError::Entry { path: walk.path(entry), fault })
}

/// Gives its entries away, once.
struct Source<I>(Mutex<Option<Entries<I>>>);

impl<I> ReadSource for Source<I>
where
    I: Iterator<Item = std::result::Result<TreeEntry, String>> + Send,
{
    type Open = Opening;
    type Iter = std::iter::Flatten<std::option::IntoIter<Entries<I>>>;

    fn size(&self) -> RusticResult<Option<u64>> {
        Ok(None)
    }

    fn entries(&self) -> Self::Iter {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().into_iter().flatten()
    }
}

/// What is below the root; it ends where it ends or is wrong.
struct Entries<I> {
    told: I,
    walk: Walk,
    contents: Arc<dyn Contents>,
    fault: Fault,
}

impl<I> Iterator for Entries<I>
where
    I: Iterator<Item = std::result::Result<TreeEntry, String>>,
{
    type Item = RusticResult<ReadSourceEntry<Opening>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.fault.is_set() {
            return None;
        }
        let next = self.told.next()?.map_err(BackupError::Listing);
        next.and_then(|entry| self.read(&entry)).map_err(|error| self.fault.set(error)).ok().map(Ok)
    }
}

impl<I> Entries<I> {
    fn read(&mut self, entry: &TreeEntry) -> Result<ReadSourceEntry<Opening>> {
        let number = enter(&mut self.walk, entry)?;
        // The library finds the folders by paths and the names in nodes. Paths of numbers are short, however deep a guest
        // has made its own.
        let mut path: PathBuf = self.walk.numbers().map(|number| number.to_string()).collect();
        let open = (entry.kind == TreeKind::File).then(|| self.opening(number, entry));
        if entry.kind != TreeKind::Folder {
            path.push(number.to_string());
        }
        let node = to_node(entry).map_err(|fault| BackupError::Entry { path: self.walk.path(entry), fault })?;
        Ok(ReadSourceEntry { path, node, open })
    }

    fn opening(&self, number: u64, entry: &TreeEntry) -> Opening {
        let path = self.walk.path(entry);
        Opening { contents: self.contents.clone(), fault: self.fault.clone(), number, path, size: entry.size }
    }
}
