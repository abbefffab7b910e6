//! Makes the files below a root exactly those that are told.
//!
//! What is told comes a folder before what is in it, and names in order; so what a folder has and was not told goes as its
//! names pass by, and a folder is as it should be when it is left. Nothing of the input is believed: it was made by a
//! guest once, and went through the hands of whoever keeps backups.
//!
//! A content that is left out is that of a file which was written here before, which its size and time must tell.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io::BufRead;
use std::iter::Peekable;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use corpus_domain::IdRange;
use corpus_protocol::{MAX_DEPTH, MAX_ENTRIES, TreeEntry, TreeKind, TreeLine};
use rustix::fs::{AtFlags, Mode, linkat, mkdirat, mkfifoat, readlinkat, symlinkat};
use rustix::io::Errno;

use super::content::{self, Place};
use super::folder::{LOOK, READ, WALK, names, open, remove};
use super::metadata;
use super::pieces::{self, First};
use super::places::{Chain, Places, ROOT};
use crate::failure::{At, Failure};
use crate::guest_root::GuestRoot;

/// Writes a tree.
pub struct Writer {
    ids: Option<IdRange>,
    /// The root first, and each folder in the one before it.
    stack: Vec<Frame>,
    /// Folders, and files that have more than one name.
    places: Places,
    chain: Chain,
    /// What has more names: which file it is.
    firsts: HashMap<(u64, u8), u32>,
    pub(super) entries: u64,
    root: Option<OwnedFd>,
    piece: Vec<u8>,
    last_was_folder: bool,
    keeps: bool,
}

/// A folder that is being filled.
struct Frame {
    folder: OwnedFd,
    number: u32,
    entry: TreeEntry,
    /// What was in it and was not passed yet.
    had: Peekable<std::vec::IntoIter<CString>>,
    last: Vec<u8>,
}

impl Writer {
    /// One that writes below this root.
    pub fn new(root: &GuestRoot) -> Result<Self, Failure> {
        Ok(Self {
            ids: root.ids(),
            stack: Vec::new(),
            places: Places::default(),
            chain: Chain::new(root.folder_itself()?),
            firsts: HashMap::new(),
            entries: 0,
            root: Some(root.folder_itself()?),
            piece: Vec::new(),
            last_was_folder: false,
            keeps: false,
        })
    }

    /// The same where files were written before, whose contents may be left out.
    pub fn keeping(self) -> Self {
        Self { keeps: true, ..self }
    }

    /// Takes all that is told, and tells how many files there were.
    pub fn run(mut self, input: &mut impl BufRead) -> Result<u64, Failure> {
        let mut buffer = Vec::new();
        loop {
            match pieces::tree_line(input, &mut buffer)? {
                TreeLine::Entry(entry) => self.entry(*entry, input)?,
                TreeLine::End { entries } if entries == self.entries && entries > 0 => break,
                TreeLine::End { entries } => {
                    let message = format!("{entries} files are said to be all, and {} came", self.entries);
                    return Err(Failure::Invalid(message));
                }
                TreeLine::Sums(_) => return Err(Failure::Invalid("sums are no files".into())),
                TreeLine::Failed(reason) => return Err(Failure::Invalid(reason)),
            }
        }
        self.leave(0)?;
        Ok(self.entries)
    }

    fn entry(&mut self, entry: TreeEntry, input: &mut impl BufRead) -> Result<(), Failure> {
        if self.entries >= MAX_ENTRIES {
            return Err(Failure::Invalid(format!("there are more than {MAX_ENTRIES} files")));
        }
        metadata::require_possible(&entry, self.ids)?;
        self.entries += 1;
        if let Some(root) = self.root.take() {
            return self.begin(root, entry);
        }
        self.require_depth(&entry)?;
        let depth = usize::try_from(entry.depth).unwrap_or(usize::MAX);
        self.leave(depth)?;
        let had = self.pass(&entry.name)?;
        self.last_was_folder = entry.kind == TreeKind::Folder;
        if self.last_was_folder {
            return self.folder(entry, had);
        }
        let key = (entry.inode, discriminant(&entry.kind));
        match self.firsts.get(&key) {
            Some(first) if entry.links > 1 => self.link_to(*first, &entry, had, input)?,
            _ => {
                self.file(&entry, had, input)?;
                if entry.links > 1 {
                    let folder = self.stack.last().map_or(ROOT, |frame| frame.number);
                    self.firsts.insert(key, self.places.add(folder, &entry.name)?);
                }
            }
        }
        Ok(())
    }

    /// The root, which is there.
    fn begin(&mut self, root: OwnedFd, entry: TreeEntry) -> Result<(), Failure> {
        if entry.depth != 0 || !entry.name.is_empty() || entry.kind != TreeKind::Folder {
            return Err(Failure::Invalid("the first file is not the root, a folder without a name".into()));
        }
        self.last_was_folder = true;
        let number = self.places.add(ROOT, b"")?;
        self.stack.push(Frame::new(root, number, entry).at("list", "a guest's root")?);
        Ok(())
    }

    fn require_depth(&self, entry: &TreeEntry) -> Result<(), Failure> {
        let name = String::from_utf8_lossy(&entry.name);
        let folders = u32::try_from(self.stack.len()).unwrap_or(u32::MAX);
        let wrong = match entry.depth {
            0 => "is a second root".to_owned(),
            depth if depth > MAX_DEPTH => format!("lies deeper than {MAX_DEPTH} folders"),
            depth if depth <= folders => return require_name(&entry.name),
            depth if depth == folders + 1 && !self.last_was_folder => "lies in something that is no folder".to_owned(),
            _ => "lies in a folder that was not told".to_owned(),
        };
        Err(Failure::Invalid(format!("{name:?} {wrong}")))
    }

    /// Leaves folders until this many are left: what was not told of them goes, and they are as their entries say.
    fn leave(&mut self, depth: usize) -> Result<(), Failure> {
        while self.stack.len() > depth {
            let Some(frame) = self.stack.pop() else { break };
            let path = || self.places.path(frame.number, b"");
            for name in frame.had {
                remove(&frame.folder, name.as_bytes()).at("empty the guest's", path())?;
            }
            metadata::apply(&File::from(frame.folder), &frame.entry, self.ids)?;
        }
        Ok(())
    }

    /// Goes on to a name in the folder: what comes before it and was not told goes. Tells whether there is such a file.
    fn pass(&mut self, name: &[u8]) -> Result<bool, Failure> {
        let path = self.path(name);
        let frame = self.stack.last_mut().ok_or_else(|| Failure::Invalid("there is no root".into()))?;
        if name <= frame.last.as_slice() {
            let (name, last) = (String::from_utf8_lossy(name), String::from_utf8_lossy(&frame.last));
            return Err(Failure::Invalid(format!("{name:?} comes behind {last:?}: the names are not in order")));
        }
        name.clone_into(&mut frame.last);
        while let Some(old) = frame.had.next_if(|old| old.as_bytes() < name) {
            remove(&frame.folder, old.as_bytes()).at("remove what lies beside the guest's", &path)?;
        }
        Ok(frame.had.next_if(|old| old.as_bytes() == name).is_some())
    }

    fn folder(&mut self, entry: TreeEntry, had: bool) -> Result<(), Failure> {
        let path = self.path(&entry.name);
        let (above, place) = self.place(&entry.name)?;
        let there = if had { open(place.folder, place.name, WALK) } else { Err(Errno::NOENT) };
        let opened = there.or_else(|_| {
            make_way(place, had)?;
            mkdirat(place.folder, place.name, Mode::RWXU)?;
            open(place.folder, place.name, WALK)
        });
        let folder = opened.at("make the guest's folder", &path)?;
        let number = self.places.add(above, &entry.name)?;
        self.stack.push(Frame::new(folder, number, entry).at("list the guest's", &path)?);
        Ok(())
    }

    /// One more name of a file that is there.
    fn link_to(&mut self, first: u32, entry: &TreeEntry, had: bool, input: &mut impl BufRead) -> Result<(), Failure> {
        let path = self.path(&entry.name);
        let frame = self.stack.last().ok_or_else(|| Failure::Invalid("there is no root".into()))?;
        let place = Place { folder: &frame.folder, name: &entry.name };
        let (folder, name) = self.places.get(first).unwrap_or_default();
        let linked = make_way(place, had).and_then(|()| {
            let folder = self.chain.to(&self.places, folder)?;
            linkat(folder, name, place.folder, place.name, AtFlags::empty())
        });
        linked.at("make the guest's", &path)?;
        if entry.kind == TreeKind::File {
            let First::Piece(mut is_more) = pieces::first(input, &mut self.piece)? else {
                return Err(at(not_kept(), &path));
            };
            // It may be told again.
            while is_more {
                is_more = pieces::take(input, &mut self.piece)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, entry: &TreeEntry, had: bool, input: &mut impl BufRead) -> Result<(), Failure> {
        let path = self.path(&entry.name);
        let mut piece = std::mem::take(&mut self.piece);
        let (_, place) = self.place(&entry.name)?;
        let there = if had { look(place).at("look at the guest's", &path)? } else { None };
        // What has other names would change under those, too.
        let stays = there.filter(|(_, stat)| stat.nlink() == 1 && entry.links <= 1);
        match &entry.kind {
            TreeKind::Folder => {}
            TreeKind::File => {
                let same = stays.filter(|(_, stat)| stat.is_file() && stat.len() == entry.size);
                let is_right = |(_, stat): &(File, Metadata)| self.keeps && !metadata::is_of_another_time(stat, entry);
                let may_be_kept = same.as_ref().is_some_and(is_right);
                let same = same.map(|_| open(place.folder, place.name, READ).map(File::from));
                let same = same.transpose().at("open the guest's", &path)?;
                let file = match (pieces::first(input, &mut piece)?, same) {
                    (First::Kept, Some(file)) if may_be_kept => file,
                    (First::Kept, _) => return Err(at(not_kept(), &path)),
                    (First::Piece(is_one), same) => {
                        if same.is_none() {
                            make_way(place, had).at("remove the guest's", &path)?;
                        }
                        let taken = content::take(place, same, (input, &mut piece), is_one);
                        taken.map_err(|failure| at(failure, &path))?
                    }
                };
                metadata::apply(&file, entry, self.ids).map_err(|failure| at(failure, &path))?;
            }
            TreeKind::Link(to) => {
                require_target(to)?;
                let is_same = |(file, stat): &(File, Metadata)| {
                    stat.is_symlink() && readlinkat(file, "", Vec::new()).is_ok_and(|there| there.as_bytes() == to)
                };
                if !stays.is_some_and(|there| is_same(&there)) {
                    let made = make_way(place, had).and_then(|()| symlinkat(to.as_slice(), place.folder, place.name));
                    made.at("make the guest's", &path)?;
                }
                let stat = look(place).at("look at the guest's", &path)?.map(|(_, stat)| stat);
                let stat = stat.ok_or(Errno::NOENT).at("look at the guest's", &path)?;
                metadata::apply_to_link(place, &stat, entry, self.ids).map_err(|failure| at(failure, &path))?;
            }
            TreeKind::Pipe => {
                if !stays.is_some_and(|(_, stat)| stat.file_type().is_fifo()) {
                    let own = Mode::RUSR | Mode::WUSR;
                    let made = make_way(place, had).and_then(|()| mkfifoat(place.folder, place.name, own));
                    made.at("make the guest's", &path)?;
                }
                let pipe = open(place.folder, place.name, READ).at("open the guest's", &path)?;
                metadata::apply(&File::from(pipe), entry, self.ids).map_err(|failure| at(failure, &path))?;
            }
        }
        self.piece = piece;
        Ok(())
    }

    /// The place of a name in the folder that is being filled, and the number of that one.
    fn place<'a>(&'a self, name: &'a [u8]) -> Result<(u32, Place<'a>), Failure> {
        let frame = self.stack.last().ok_or_else(|| Failure::Invalid("there is no root".into()))?;
        Ok((frame.number, Place { folder: &frame.folder, name }))
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        self.places.path(self.stack.last().map_or(ROOT, |frame| frame.number), name)
    }
}

impl Frame {
    fn new(folder: OwnedFd, number: u32, entry: TreeEntry) -> Result<Self, Errno> {
        let had = names(&folder)?.into_iter().peekable();
        Ok(Self { folder, number, entry, had, last: Vec::new() })
    }
}

/// Nothing is there any more.
fn make_way(place: Place<'_>, had: bool) -> Result<(), Errno> {
    if had { remove(place.folder, place.name) } else { Ok(()) }
}

/// What is there, whatever it is.
fn look(place: Place<'_>) -> std::io::Result<Option<(File, Metadata)>> {
    let file = File::from(open(place.folder, place.name, LOOK)?);
    let stat = file.metadata()?;
    Ok(Some((file, stat)))
}

fn require_name(name: &[u8]) -> Result<(), Failure> {
    let is_one = !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0);
    let wrong = || Failure::Invalid(format!("{:?} is no name of a file in a folder", String::from_utf8_lossy(name)));
    if is_one { Ok(()) } else { Err(wrong()) }
}

fn require_target(to: &[u8]) -> Result<(), Failure> {
    let is_one = !to.is_empty() && !to.contains(&0);
    let wrong = || Failure::Invalid(format!("a link can't lead to {:?}", String::from_utf8_lossy(to)));
    if is_one { Ok(()) } else { Err(wrong()) }
}

/// There is nothing that a content which was left out could be.
fn not_kept() -> Failure {
    Failure::Invalid(
        "its content was left out, and no file of one name, of its size and time was written there before".into(),
    )
}

const fn discriminant(kind: &TreeKind) -> u8 {
    match kind {
        TreeKind::Folder => 0,
        TreeKind::File => 1,
        TreeKind::Link(_) => 2,
        TreeKind::Pipe => 3,
    }
}

/// Says on which file of the guest it failed.
fn at(failure: Failure, path: &std::path::Path) -> Failure {
    match failure {
        Failure::Io { action, source, .. } => Failure::Io { action, path: path.to_owned(), source },
        Failure::Invalid(text) => Failure::Invalid(format!("{}: {text}", path.display())),
        other => other,
    }
}
