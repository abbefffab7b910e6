//! From an archive that somebody sent into one that guests can be made of.
//!
//! An archive is a program for whoever unpacks it, and nodes unpack as root. What a header may say is more than any system
//! needs: names that lead out, files behind a link, the same name twice, owners of other guests, devices, sizes that never
//! end. So what came is read here, by a thread that can do nothing but read and write these two files, and what is
//! understood of it is written anew, as it is written of a guest's own files. What is not understood is refused: nodes get no
//! byte that somebody else made into a header.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use corpus_protocol::{MAX_DEPTH, TreeEntry, TreeKind};
use tar::{Entry, EntryType};

use super::CarryError;
use super::pack::{Archive, CAPABILITY, Kept, Packed};

/// How many files there may be.
const FILES: u64 = 2_000_000;
/// How long all their names may be together, in bytes: they are kept to know what lies in what.
const NAMES: usize = 128 << 20;
/// The longest name of a file, and the longest path that a link leads to, in bytes.
const NAME: usize = 255;
const TARGET: usize = 4_095;
/// Owners are those of a guest, which has so many.
const OWNERS: u64 = 1 << 16;
/// The longest capability, in bytes.
const LONGEST_CAPABILITY: usize = 64;
/// What is written anew where a guest runs, and stays behind: folders of these names stay, empty.
const EMPTY: [&[u8]; 3] = [b"dev", b"proc", b"sys"];

/// Reads a tar that is compressed by zstd, and writes what is in it into a new archive: `most` bytes at most in its files.
/// `mark` tells it from the same files in another image.
pub(crate) fn repack(sent: impl Read, mark: &str, most: u64, to: &Path) -> Result<Packed, CarryError> {
    let mut out = Archive::at(to, mark)?;
    let sent =
        zstd::stream::read::Decoder::new(Sent { from: sent, left: u64::MAX }).map_err(|error| damaged(&error))?;
    // Headers and what fills blocks up are not counted below, and may not go on for ever either.
    let left = most.saturating_mul(2).saturating_add(1 << 20);
    let mut archive = tar::Archive::new(Sent { from: sent, left });
    let mut system = System { most, ..System::default() };
    for entry in archive.entries().map_err(|error| damaged(&error))? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        system.add(&mut entry, &mut out)?;
    }
    // One that was cut behind its last file is known by that.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|error| damaged(&error))?;
    Ok(Packed { unpacked: system.bytes, files: out.end()? })
}

/// What came can't be read.
fn damaged(error: &io::Error) -> CarryError {
    CarryError::Unclear(format!("it is no whole tar compressed by zstd: {error}"))
}

fn refused(path: &[u8], why: &str) -> CarryError {
    CarryError::Unclear(format!("{}: {why}", String::from_utf8_lossy(path).escape_debug()))
}

/// What is read. That it can't be is told from that something can't be written.
struct Sent<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Sent<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let unreadable = |error: io::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let count = self.from.read(to).map_err(unreadable)?;
        let left = self.left.checked_sub(u64::try_from(count).unwrap_or(u64::MAX));
        self.left = left.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "there is too much in it"))?;
        Ok(count)
    }
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Folder,
    /// With a number of its own, by which its other names are known.
    File(u64),
    Other,
}

/// What was read so far.
#[derive(Default)]
struct System {
    known: HashMap<Vec<u8>, Is>,
    names: usize,
    bytes: u64,
    most: u64,
}

impl System {
    fn add<R: Read>(&mut self, entry: &mut Entry<'_, R>, out: &mut Archive) -> Result<(), CarryError> {
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader | EntryType::Char | EntryType::Block) {
            return Ok(());
        }
        let told = entry.path_bytes().into_owned();
        let names = names(&told)?;
        let Some((first, inside)) = names.split_first() else { return Ok(()) };
        if !inside.is_empty() && EMPTY.contains(first) {
            return Ok(());
        }
        let path = names.join(b"/".as_slice());
        self.folders(&names, out)?;
        let is_folder = kind == EntryType::Directory;
        match self.known.get(&path) {
            // Layers that were put together name their folders again.
            Some(Is::Folder) if is_folder => return Ok(()),
            Some(_) => return Err(refused(&told, "it is there twice")),
            None => {}
        }
        let mut file = TreeEntry { ..self.about(entry, &told)? };
        let is = match kind {
            EntryType::Directory => Is::Folder,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => Is::File(self.number()),
            EntryType::Fifo | EntryType::Symlink => Is::Other,
            EntryType::Link => return self.another_name(entry, (&told, path), file, out),
            _ => return Err(refused(&told, "what it is, no file of a system is")),
        };
        match (kind, is) {
            (_, Is::Folder) => file.kind = TreeKind::Folder,
            (EntryType::Fifo, _) => file.kind = TreeKind::Pipe,
            (EntryType::Symlink, _) => file.kind = TreeKind::Link(target(entry, &told)?),
            _ => file.size = entry.size(),
        }
        self.bytes = self.bytes.saturating_add(file.size);
        if self.bytes > self.most {
            let most = corpus_domain::Bytes(self.most).gb();
            return Err(CarryError::Told(format!("there are more than {most} in its files: it would be too large")));
        }
        self.keep(path.clone(), is)?;
        let content = (file.size > 0).then_some(entry as &mut dyn Read);
        write(out, path, &file, content)
    }

    /// A file under one more name.
    fn another_name<R: Read>(
        &mut self,
        entry: &Entry<'_, R>,
        (told, path): (&[u8], Vec<u8>),
        file: TreeEntry,
        out: &mut Archive,
    ) -> Result<(), CarryError> {
        let target = target(entry, told)?;
        let first = names(&target)?.join(b"/".as_slice());
        let Some(Is::File(number)) = self.known.get(&first).copied() else {
            return Err(refused(told, "it is another name of a file that did not come before it"));
        };
        out.is_another_name(number, place(first));
        self.keep(path.clone(), Is::File(number))?;
        write(out, path, &TreeEntry { inode: number, links: 2, ..file }, None)
    }

    /// The folders that a file is in: those that were not told are root's, as `tar` would make them.
    fn folders(&mut self, names: &[&[u8]], out: &mut Archive) -> Result<(), CarryError> {
        for depth in 1..names.len() {
            let path = names.get(..depth).unwrap_or_default().join(b"/".as_slice());
            match self.known.get(&path) {
                Some(Is::Folder) => {}
                Some(_) => return Err(refused(&names.join(b"/".as_slice()), "it is in what is no folder")),
                None => {
                    self.keep(path.clone(), Is::Folder)?;
                    write(out, path, &TreeEntry { kind: TreeKind::Folder, mode: 0o755, ..blank() }, None)?;
                }
            }
        }
        Ok(())
    }

    fn number(&self) -> u64 {
        u64::try_from(self.known.len()).unwrap_or(u64::MAX)
    }

    fn keep(&mut self, path: Vec<u8>, is: Is) -> Result<(), CarryError> {
        self.names = self.names.saturating_add(path.len());
        if self.names > NAMES || self.number() >= FILES {
            return Err(CarryError::Told("there are too many files in it".to_owned()));
        }
        self.known.insert(path, is);
        Ok(())
    }

    /// What a header says of a file besides what it is.
    fn about<R: Read>(&self, entry: &mut Entry<'_, R>, told: &[u8]) -> Result<TreeEntry, CarryError> {
        let capability = capability(entry).map_err(|error| damaged(&error))?;
        let header = entry.header();
        let owner = |number: io::Result<u64>| {
            let number = number.map_err(|error| damaged(&error))?;
            let is_one = |number: &u64| *number < OWNERS;
            let number = Some(number).filter(is_one).and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| refused(told, "its owner or group is none that a guest has"))
        };
        Ok(TreeEntry {
            mode: header.mode().map_err(|error| damaged(&error))? & 0o7777,
            uid: owner(header.uid())?,
            gid: owner(header.gid())?,
            modified: (header.mtime().ok().and_then(|at| i64::try_from(at).ok()).unwrap_or_default(), 0),
            inode: self.number(),
            attributes: capability.into_iter().map(|value| (CAPABILITY.to_vec(), value)).collect(),
            ..blank()
        })
    }
}

fn blank() -> TreeEntry {
    TreeEntry {
        depth: 1,
        name: Vec::new(),
        kind: TreeKind::File,
        mode: 0,
        uid: 0,
        gid: 0,
        modified: (0, 0),
        changed: (0, 0),
        inode: 0,
        links: 1,
        size: 0,
        attributes: Vec::new(),
    }
}

fn write(out: &mut Archive, path: Vec<u8>, file: &TreeEntry, content: Option<&mut dyn Read>) -> Result<(), CarryError> {
    let kept = Kept { path: place(path), is_empty: false };
    out.entry(&kept, file, content).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::Other => damaged(&error),
        _ => CarryError::Spool(error),
    })
}

fn place(path: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(path))
}

/// The names that a path is made of; none leads up, and none is one that no file can have.
fn names(path: &[u8]) -> Result<Vec<&[u8]>, CarryError> {
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    if names.contains(&b"..".as_slice()) {
        return Err(refused(path, "it leads out of the system"));
    }
    if names.iter().any(|name| name.len() > NAME || name.contains(&0)) {
        return Err(refused(path, "it has a name that no file can have"));
    }
    if names.len() > usize::try_from(MAX_DEPTH).unwrap_or(usize::MAX) {
        return Err(refused(path, "it is too deep"));
    }
    Ok(names)
}

/// Where a link leads.
fn target<R: Read>(entry: &Entry<'_, R>, told: &[u8]) -> Result<Vec<u8>, CarryError> {
    let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
    let can_be = (1..=TARGET).contains(&target.len()) && !target.contains(&0);
    can_be.then_some(target).ok_or_else(|| refused(told, "it leads to what can be no path"))
}

/// The capability of a file.
fn capability<R: Read>(entry: &mut Entry<'_, R>) -> io::Result<Option<Vec<u8>>> {
    let Some(extensions) = entry.pax_extensions()? else { return Ok(None) };
    let mut found = None;
    for extension in extensions {
        let extension = extension?;
        if extension.key_bytes().strip_prefix(b"SCHILY.xattr.") == Some(CAPABILITY) {
            found = Some(extension.value_bytes().to_vec()).filter(|value| value.len() <= LONGEST_CAPABILITY);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
