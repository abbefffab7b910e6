//! From a snapshot on a node into an archive that guests can be made of.
//!
//! What a guest is like is wanted again, who it is is not: its host keys, its name, whom it lets in, what it logged, and what
//! projects keep in it (their secrets and data) stay behind. Nor is the guest trusted: its root decides what there is to
//! tell, so names, order and amount are judged as those of a backup are, and the archive is written here. Nodes unpack no
//! byte that somebody else made into a header.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus_backup::{Contents, Walk};
use corpus_protocol::{TreeEntry, TreeKind};
use tar::{Builder, EntryType, Header};

use super::incoming::Listed;
use super::save::carry;
use super::{CarryError, Limits, Program};

/// So many contents are asked for ahead: a line may be long.
const AHEAD: usize = 256;
/// How hard it is pressed: three times smaller in a time that nobody minds.
const LEVEL: i32 = 6;
/// How long the names together are by which files of several names are known again, in bytes. What comes after that is told
/// again under each of its names.
const LINKED: usize = 64 << 20;
/// The one attribute that an image keeps: without its capability `ping` works for root only.
pub(super) const CAPABILITY: &[u8] = b"security.capability";

/// Which files become an image.
#[derive(Debug, Clone)]
pub(crate) struct What {
    /// The names that lead to the folder; none: all of the guest, without what is only its own.
    pub folder: Vec<Vec<u8>>,
    /// What tells this image from the same files in another one: two projects share none.
    pub mark: String,
    /// How much there may be in it, in bytes.
    pub most: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed {
    /// How much is in them, in bytes.
    pub unpacked: u64,
    pub files: u64,
}

/// Brings files of a snapshot into a new archive. `progress` is told how much of how much has come.
pub(crate) async fn pack(
    program: &Program<'_>,
    (what, to): (What, PathBuf),
    limits: Limits,
    progress: impl Fn(u64, u64) + Send + Sync,
    cancelled: impl Future<Output = ()>,
) -> Result<Packed, CarryError> {
    let work = move |listed: Listed, contents| write(&what, &to, listed, &contents);
    carry(program, limits, work, progress, cancelled).await
}

fn write(what: &What, to: &Path, listed: Listed, contents: &Arc<dyn Contents>) -> Result<Packed, CarryError> {
    let mut out = Archive::at(to, &what.mark)?;
    let (mut walk, mut sieve) = (Walk::default(), Sieve::new(&what.folder));
    let (mut waiting, mut unpacked) = (VecDeque::<(Kept, TreeEntry, Option<Box<dyn Read + Send>>)>::new(), 0_u64);
    for entry in listed.entries() {
        let entry = entry.map_err(CarryError::Unclear)?;
        let number =
            walk.step(&entry).map_err(|fault| CarryError::Unclear(format!("{}: {fault}", walk.path(&entry))))?;
        let Some(kept) = sieve.keeps(&entry) else { continue };
        let entry = if kept.is_empty { TreeEntry { size: 0, ..entry } } else { entry };
        let is_told = out.is_told(&entry);
        unpacked = unpacked.saturating_add(if is_told { 0 } else { entry.size });
        if unpacked > what.most {
            let most = corpus_domain::Bytes(what.most).gb();
            return Err(CarryError::Told(format!("there are more than {most} in its files: it would be too large")));
        }
        // An empty file is not asked for, and what was told under another name is not told again.
        let wanted = entry.kind == TreeKind::File && entry.size > 0 && !is_told;
        out.note(&kept, &entry);
        let content = if wanted { Some(contents.open(number)?) } else { None };
        waiting.push_back((kept, entry, content));
        if waiting.len() > AHEAD {
            waiting.pop_front().map_or(Ok(()), |(kept, entry, content)| out.waited(&kept, &entry, content))?;
        }
    }
    for (kept, entry, content) in waiting {
        out.waited(&kept, &entry, content)?;
    }
    if out.files == 0 {
        return Err(CarryError::Told("there is no such folder in it".to_owned()));
    }
    Ok(Packed { unpacked, files: out.end()? })
}

/// A file that is kept.
pub(super) struct Kept {
    pub path: PathBuf,
    /// Whether what is in it is not.
    pub is_empty: bool,
}

/// Decides which files are kept, in the order of a list.
struct Sieve<'a> {
    folder: &'a [Vec<u8>],
    names: Vec<Vec<u8>>,
}

impl<'a> Sieve<'a> {
    const fn new(folder: &'a [Vec<u8>]) -> Self {
        Self { folder, names: Vec::new() }
    }

    /// Where the file is in the archive, if it is kept. What was judged by a [`Walk`] is in folders that were told.
    fn keeps(&mut self, entry: &TreeEntry) -> Option<Kept> {
        let depth = usize::try_from(entry.depth).unwrap_or(usize::MAX);
        let above = depth.checked_sub(1)?;
        self.names.truncate(above);
        self.names.push(entry.name.clone());
        let inside = self.names.strip_prefix(self.folder).filter(|inside| !inside.is_empty())?;
        let fate = if self.folder.is_empty() { fate(inside, entry.kind == TreeKind::Folder) } else { Fate::Kept };
        let path = PathBuf::from(OsString::from_vec(inside.join(b"/".as_slice())));
        (fate != Fate::Gone).then_some(Kept { path, is_empty: fate == Fate::Empty })
    }
}

/// What becomes of a file of a guest in its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Empty,
    Gone,
}

/// What is a guest's own goes: who it is, whom it lets in, what it did, and what projects have in it.
fn fate(path: &[Vec<u8>], is_folder: bool) -> Fate {
    let names: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
    let goes = match names.as_slice() {
        [b"etc", b"machine-id"] => return if is_folder { Fate::Gone } else { Fate::Empty },
        [b"proc" | b"sys" | b"dev" | b"run" | b"tmp", _, ..]
        | [b"var", b"tmp", _, ..]
        | [b"srv", b"projects", _, ..]
        | [b"etc", b"corpus", _, ..]
        | [b"var", b"lib", b"corpus", _, ..]
        | [b"root", b".ssh", ..]
        | [b"home", _, b".ssh", ..]
        | [b"etc", b"hostname" | b"hosts" | b"resolv.conf"]
        | [b"var", b"lib", b"dbus", b"machine-id"]
        | [b"var", b"lib", b"systemd", b"random-seed"]
        | [b"lost+found", ..] => true,
        [b"etc", b"ssh", name] => name.starts_with(b"ssh_host_"),
        [b"root", name] | [b"home", _, name] => !is_folder && name.ends_with(b"_history"),
        [b"var", b"log", _, ..] | [b"var", b"cache", b"apt", _, ..] | [b"var", b"lib", b"apt", b"lists", _, ..] => {
            !is_folder
        }
        _ => false,
    };
    if goes { Fate::Gone } else { Fate::Kept }
}

/// The archive on its way.
pub(super) struct Writer<W: Write> {
    builder: Builder<W>,
    /// Files of several names, by their number: where each is first.
    linked: HashMap<u64, PathBuf>,
    linked_bytes: usize,
    pub files: u64,
}

/// Such an archive in a file.
pub(super) type Archive = Writer<zstd::stream::write::Encoder<'static, BufWriter<File>>>;

impl Archive {
    /// A new one.
    pub fn at(to: &Path, mark: &str) -> io::Result<Self> {
        let file = BufWriter::new(File::create(to)?);
        Self::new(zstd::stream::write::Encoder::new(file, LEVEL)?, mark)
    }

    /// All of it is on disk; how many files it has.
    pub fn end(self) -> io::Result<u64> {
        let file = self.builder.into_inner()?.finish()?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        Ok(self.files)
    }
}

impl<W: Write> Writer<W> {
    fn new(out: W, mark: &str) -> io::Result<Self> {
        let mut builder = Builder::new(out);
        let data = pax("comment", mark.as_bytes());
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::XGlobalHeader);
        header.set_size(data.len() as u64);
        header.set_cksum();
        builder.append(&header, data.as_slice())?;
        Ok(Self { builder, linked: HashMap::new(), linked_bytes: 0, files: 0 })
    }

    /// Whether its content comes under another name.
    fn is_told(&self, entry: &TreeEntry) -> bool {
        entry.kind == TreeKind::File && entry.links > 1 && self.linked.contains_key(&entry.inode)
    }

    /// A file of several names is known again by its first one.
    fn note(&mut self, kept: &Kept, entry: &TreeEntry) {
        let length = kept.path.as_os_str().len();
        let is_new = entry.kind == TreeKind::File && entry.links > 1 && !self.is_told(entry);
        if is_new && self.linked_bytes + length <= LINKED {
            self.linked_bytes += length;
            self.linked.insert(entry.inode, kept.path.clone());
        }
    }

    /// A file is another name of one that was told.
    pub fn is_another_name(&mut self, inode: u64, first: PathBuf) {
        self.linked.insert(inode, first);
    }

    fn waited(&mut self, kept: &Kept, entry: &TreeEntry, content: Option<Box<dyn Read + Send>>) -> io::Result<()> {
        let mut content = content;
        self.entry(kept, entry, content.as_mut().map(|content| content as &mut dyn Read))
    }

    /// Adds a file. Without a content it is empty.
    pub fn entry(&mut self, kept: &Kept, entry: &TreeEntry, content: Option<&mut dyn Read>) -> io::Result<()> {
        self.files += 1;
        let mut header = Header::new_gnu();
        header.set_mode(entry.mode);
        header.set_uid(entry.uid.into());
        header.set_gid(entry.gid.into());
        // Before 1970 there is none.
        header.set_mtime(u64::try_from(entry.modified.0).unwrap_or_default());
        header.set_size(0);
        if let (TreeKind::File, Some(first)) = (&entry.kind, self.linked.get(&entry.inode))
            && entry.links > 1
            && *first != kept.path
        {
            header.set_entry_type(EntryType::Link);
            return self.builder.append_link(&mut header, &kept.path, first.clone());
        }
        let capability = entry.attributes.iter().find(|(name, _)| name == CAPABILITY);
        if let (TreeKind::File, Some((_, value))) = (&entry.kind, capability) {
            self.builder.append_pax_extensions([("SCHILY.xattr.security.capability", value.as_slice())])?;
        }
        header.set_entry_type(match &entry.kind {
            TreeKind::Folder => EntryType::Directory,
            TreeKind::File => EntryType::Regular,
            TreeKind::Pipe => EntryType::Fifo,
            TreeKind::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                let target = PathBuf::from(OsString::from_vec(target.clone()));
                return self.builder.append_link(&mut header, &kept.path, target);
            }
        });
        let Some(mut content) = content else {
            return self.builder.append_data(&mut header, &kept.path, io::empty());
        };
        header.set_size(entry.size);
        let mut counted = Counted { from: Read::by_ref(&mut content).take(entry.size), read: 0 };
        self.builder.append_data(&mut header, &kept.path, &mut counted)?;
        // One that became shorter since it was listed would move all that comes after it.
        if counted.read != entry.size || content.read(&mut [0])? > 0 {
            return Err(io::Error::other(format!("{} is not as long as was listed", kept.path.display())));
        }
        Ok(())
    }
}

/// Counts what is read.
struct Counted<R> {
    from: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(to)?;
        self.read += count as u64;
        Ok(count)
    }
}

/// A record as such archives hold it: its own length, a name, and a value.
fn pax(name: &str, value: &[u8]) -> Vec<u8> {
    let rest = name.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    [format!("{length} {name}=").as_bytes(), value, b"\n"].concat()
}

#[cfg(test)]
mod tests;
