//! Tells of all files below a root, and reads what is in them.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use corpus_domain::IdRange;
use corpus_protocol::{MAX_DEPTH, MAX_ENTRIES, MAX_PIECE, TreeDigest, TreeEntry, TreeKind, TreeLine, TreeSums};
use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::folder::{LOOK, READ, WALK, names, open, open_to_read};
use super::places::{Chain, Places, ROOT};
use super::{attributes, pieces};
use crate::failure::{At, Failure};
use crate::guest_root::{GuestRoot, NOBODY};

/// Reads a tree.
pub struct Reader {
    ids: Option<IdRange>,
    places: Places,
    chain: Chain,
    piece: Vec<u8>,
}

/// A folder whose entries are being told.
struct Frame {
    folder: OwnedFd,
    number: u32,
    names: std::vec::IntoIter<CString>,
}

/// Whether a content was told whole.
pub enum Told {
    /// It was.
    Whole,
    /// Not all of it.
    Broken(Failure),
}

impl Reader {
    /// One of this root.
    pub fn new(root: &GuestRoot) -> Result<Self, Failure> {
        let piece = vec![0; usize::try_from(MAX_PIECE).unwrap_or_default()];
        Ok(Self { ids: root.ids(), places: Places::default(), chain: Chain::new(root.folder_itself()?), piece })
    }

    /// Says a line for each file, and tells how many there are.
    pub fn list(&mut self, say: &mut dyn FnMut(&TreeLine) -> Result<(), Failure>) -> Result<u64, Failure> {
        let root = self.chain.to(&self.places, ROOT).and_then(walk).at("open the guest's", "/")?;
        let root = File::from(root);
        let entry = self.entry(&root, 0, b"").at("look at the guest's", "/")?;
        let entry = entry.ok_or_else(|| Failure::Invalid("the guest's root is no folder".into()))?;
        say(&TreeLine::Entry(Box::new(entry)))?;
        self.places.add(ROOT, b"")?;
        let mut stack = vec![Frame::new(root.into(), ROOT).at("list the guest's", "/")?];
        let mut entries: u64 = 1;
        while let Some(frame) = stack.last_mut() {
            let Some(name) = frame.names.next() else {
                stack.pop();
                continue;
            };
            let (number, name) = (frame.number, name.as_bytes());
            let found = match open(&frame.folder, name, LOOK) {
                // Another file system is none of the guest's.
                Err(Errno::XDEV) => continue,
                other => other.map(File::from).at("open the guest's", self.places.path(number, name))?,
            };
            let depth = u32::try_from(stack.len()).unwrap_or(u32::MAX);
            let entry = self.entry(&found, depth, name).at("look at the guest's", self.places.path(number, name))?;
            let Some(entry) = entry else { continue };
            if depth > MAX_DEPTH || entries >= MAX_ENTRIES {
                return Err(too_much(self, number, name));
            }
            entries += 1;
            let added = self.places.add(number, name)?;
            let is_folder = entry.kind == TreeKind::Folder;
            say(&TreeLine::Entry(Box::new(entry)))?;
            if is_folder {
                let below = walk(&found.into()).and_then(|folder| Frame::new(folder, added));
                stack.push(below.at("list the guest's", self.places.path(number, name))?);
            }
        }
        Ok(entries)
    }

    /// What is told of a file; nothing where it is of no kind that is told.
    fn entry(&self, file: &File, depth: u32, name: &[u8]) -> Result<Option<TreeEntry>, Errno> {
        let stat = file.metadata().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let Some(kind) = kind(file, &stat)? else { return Ok(None) };
        let inside = |id| self.ids.map_or(id, |ids| ids.inside(id).unwrap_or(NOBODY));
        let of_a_link = matches!(kind, TreeKind::Link(_));
        let attributes = if of_a_link { Vec::new() } else { attributes::read(file, self.ids)? };
        Ok(Some(TreeEntry {
            depth,
            name: name.to_owned(),
            mode: stat.mode() & 0o7777,
            uid: inside(stat.uid()),
            gid: inside(stat.gid()),
            modified: (stat.mtime(), u32::try_from(stat.mtime_nsec()).unwrap_or_default()),
            changed: (stat.ctime(), u32::try_from(stat.ctime_nsec()).unwrap_or_default()),
            inode: stat.ino(),
            links: stat.nlink(),
            size: if kind == TreeKind::File { stat.len() } else { 0 },
            kind,
            attributes,
        }))
    }

    /// Tells what all of it comes to.
    pub fn sums(&mut self) -> Result<TreeSums, Failure> {
        let mut digest = TreeDigest::default();
        // A file is found again by its number: paths are not kept.
        let (mut files, mut number) = (Vec::new(), 0_u32);
        self.list(&mut |line| {
            if let TreeLine::Entry(entry) = line {
                digest.entry(entry);
                if entry.kind == TreeKind::File {
                    files.push(number);
                }
                number = number.saturating_add(1);
            }
            Ok(())
        })?;
        for number in files {
            let path = self.places.get(number).map(|(folder, name)| self.places.path(folder, name)).unwrap_or_default();
            digest.content_begins(path.as_os_str().as_bytes().strip_prefix(b"/").unwrap_or_default());
            let told = self.pieces(number, &mut |piece| {
                digest.content(piece);
                Ok(())
            })?;
            if let Told::Broken(failure) = told {
                return Err(failure);
            }
            digest.content_ends();
        }
        Ok(digest.end())
    }

    /// Writes the content of the file that was told as this number.
    pub fn content(&mut self, number: u32, output: &mut impl Write) -> Result<Told, Failure> {
        self.pieces(number, &mut |piece| pieces::put(output, piece))
    }

    /// Gives the content of that file piece by piece; an empty one ends it.
    fn pieces(&mut self, number: u32, give: &mut dyn FnMut(&[u8]) -> Result<(), Failure>) -> Result<Told, Failure> {
        let Some((folder, name)) = self.places.get(number) else {
            return Ok(Told::Broken(Failure::Invalid(format!("there is no file of the number {number}"))));
        };
        let path = || self.places.path(folder, name);
        let opened = self.chain.to(&self.places, folder).and_then(|folder| open_to_read(folder, name, READ));
        let mut file = match opened.at("open the guest's", path()) {
            Ok(file) => File::from(file),
            Err(failure) => return Ok(Told::Broken(failure)),
        };
        if !file.metadata().is_ok_and(|stat| stat.is_file()) {
            let message = format!("the guest's {} is no regular file", path().display());
            return Ok(Told::Broken(Failure::Invalid(message)));
        }
        loop {
            let read = match file.read(&mut self.piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                other => other.at("read the guest's", path()),
            };
            match read {
                Ok(length) => give(self.piece.get(..length).unwrap_or_default())?,
                Err(failure) => return Ok(Told::Broken(failure)),
            }
            if matches!(read, Ok(0)) {
                return Ok(Told::Whole);
            }
        }
    }
}

impl Frame {
    fn new(folder: OwnedFd, number: u32) -> Result<Self, Errno> {
        let names = names(&folder)?.into_iter();
        Ok(Self { folder, number, names })
    }
}

/// Opens a folder that was looked at.
fn walk(folder: &OwnedFd) -> Result<OwnedFd, Errno> {
    openat(folder, ".", WALK | OFlags::NOATIME | OFlags::CLOEXEC, Mode::empty())
}

fn kind(file: &File, stat: &Metadata) -> Result<Option<TreeKind>, Errno> {
    let is = stat.file_type();
    Ok(match () {
        () if is.is_dir() => Some(TreeKind::Folder),
        () if is.is_file() => Some(TreeKind::File),
        () if is.is_symlink() => Some(TreeKind::Link(readlinkat(file, "", Vec::new())?.into_bytes())),
        () if is.is_fifo() => Some(TreeKind::Pipe),
        () => None,
    })
}

fn too_much(reader: &Reader, folder: u32, name: &[u8]) -> Failure {
    let path = reader.places.path(folder, name);
    let from: String = path.display().to_string().chars().take(200).collect();
    Failure::Invalid(format!(
        "the guest has more than {MAX_ENTRIES} files, or they lie deeper than {MAX_DEPTH} folders; see {from}"
    ))
}
