//! A folder of a backup as a tar archive, written while it is read: of it a header and a piece of a content are in memory.
//!
//! It is of the form of GNU, which holds names of any bytes and any length. Extended attributes, and parts of a second, it
//! does not hold: they come back with the whole guest. A file of several names comes with its content under each of them.

use std::io::{self, Write};

use corpus_backup::TreeSink;
use corpus_protocol::{TreeEntry, TreeKind};
use tar::{EntryType, Header};

/// What an archive is made of.
const BLOCK: u64 = 512;
/// How long a name is that stands in a header.
const IN_HEADER: usize = 100;

/// An archive on its way.
pub(super) struct Archive<W> {
    out: W,
    /// The folders that the next entry may be in, from the first on.
    folders: Vec<Vec<u8>>,
    /// What the first is called: a backup's root has no name.
    top: Vec<u8>,
    /// How much of a content was written.
    written: u64,
}

impl<W: Write> Archive<W> {
    /// One whose first folder is called so.
    pub(super) const fn new(out: W, top: Vec<u8>) -> Self {
        Self { out, folders: Vec::new(), top, written: 0 }
    }

    /// That was all.
    pub(super) fn end(mut self) -> io::Result<W> {
        self.zeros(2 * BLOCK)?;
        Ok(self.out)
    }

    fn zeros(&mut self, count: u64) -> io::Result<()> {
        io::copy(&mut io::Read::take(io::repeat(0), count), &mut self.out).map(drop)
    }

    /// Fills the last block of what has this length.
    fn fill(&mut self, length: u64) -> io::Result<()> {
        self.zeros(length.next_multiple_of(BLOCK) - length)
    }

    /// A name that no header has room for comes before it, as an entry of its own.
    fn long(&mut self, kind: EntryType, name: &[u8]) -> io::Result<()> {
        if name.len() <= IN_HEADER {
            return Ok(());
        }
        let length = name.len() as u64 + 1;
        let mut header = Header::new_gnu();
        put(&mut header.as_old_mut().name, b"././@LongLink");
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(kind);
        self.header(header, length)?;
        self.out.write_all(name)?;
        self.zeros(1)?;
        self.fill(length)
    }

    fn header(&mut self, mut header: Header, size: u64) -> io::Result<()> {
        header.set_size(size);
        header.set_cksum();
        self.out.write_all(header.as_bytes())
    }

    /// The path of an entry, in folders that are open.
    fn path(&mut self, entry: &TreeEntry) -> Vec<u8> {
        let depth = usize::try_from(entry.depth).unwrap_or(usize::MAX);
        self.folders.truncate(depth);
        let name = if depth == 0 { self.top.clone() } else { entry.name.clone() };
        let mut path = self.folders.join(b"/".as_slice());
        if depth > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(&name);
        if entry.kind == TreeKind::Folder {
            path.push(b'/');
            self.folders.push(name);
        }
        path
    }
}

impl<W: Write> TreeSink for Archive<W> {
    fn entry(&mut self, entry: &TreeEntry) -> io::Result<()> {
        let path = self.path(entry);
        self.long(EntryType::GNULongName, &path)?;
        let mut header = Header::new_gnu();
        put(&mut header.as_old_mut().name, &path);
        header.set_mode(entry.mode);
        header.set_uid(entry.uid.into());
        header.set_gid(entry.gid.into());
        // Before 1970 there is none.
        header.set_mtime(u64::try_from(entry.modified.0).unwrap_or_default());
        header.set_entry_type(match &entry.kind {
            TreeKind::Folder => EntryType::Directory,
            TreeKind::File => EntryType::Regular,
            TreeKind::Link(_) => EntryType::Symlink,
            TreeKind::Pipe => EntryType::Fifo,
        });
        if let TreeKind::Link(target) = &entry.kind {
            self.long(EntryType::GNULongLink, target)?;
            put(&mut header.as_old_mut().linkname, target);
        }
        self.header(header, if entry.kind == TreeKind::File { entry.size } else { 0 })
    }

    fn content(&mut self, piece: &[u8]) -> io::Result<()> {
        self.written += piece.len() as u64;
        self.out.write_all(piece)
    }

    fn content_ends(&mut self) -> io::Result<()> {
        let written = std::mem::take(&mut self.written);
        self.fill(written)
    }
}

/// As much of a name as there is room for.
fn put(room: &mut [u8; IN_HEADER], name: &[u8]) {
    room.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn entry(depth: u32, name: &[u8], kind: TreeKind) -> TreeEntry {
        TreeEntry {
            depth,
            name: name.to_vec(),
            kind,
            mode: 0o4750,
            uid: 3_000_000_000,
            gid: 7,
            modified: (1_790_000_000, 5),
            changed: (0, 0),
            inode: 1,
            links: 1,
            size: 0,
            attributes: Vec::new(),
        }
    }

    /// Any reader of such archives finds what was put there, long names and odd ones too.
    #[test]
    fn all_of_it_is_read_again() {
        let mut archive = Archive::new(Vec::new(), b"etc".to_vec());
        let long = [b'n'; 255];
        let target = [b't'; 300];
        archive.entry(&entry(0, b"", TreeKind::Folder)).unwrap();
        archive.entry(&entry(1, &long, TreeKind::Folder)).unwrap();
        let file = TreeEntry { size: 513, ..entry(2, b"\xff\n'x", TreeKind::File) };
        archive.entry(&file).unwrap();
        archive.content(&[1; 500]).unwrap();
        archive.content(&[2; 13]).unwrap();
        archive.content_ends().unwrap();
        archive.entry(&entry(1, b"empty", TreeKind::File)).unwrap();
        archive.content_ends().unwrap();
        archive.entry(&TreeEntry { modified: (-5, 0), ..entry(1, b"link", TreeKind::Link(target.to_vec())) }).unwrap();
        archive.entry(&entry(1, b"pipe", TreeKind::Pipe)).unwrap();
        let bytes = archive.end().unwrap();
        assert_eq!(bytes.len() % 512, 0);

        let mut read = tar::Archive::new(bytes.as_slice());
        let mut found = Vec::new();
        for one in read.entries().unwrap() {
            let mut one = one.unwrap();
            let mut content = Vec::new();
            one.read_to_end(&mut content).unwrap();
            let header = one.header();
            assert_eq!(
                (header.mode().unwrap(), header.uid().unwrap(), header.gid().unwrap()),
                (0o4750, 3_000_000_000, 7)
            );
            let link = one.link_name_bytes().map(std::borrow::Cow::into_owned);
            found.push((one.path_bytes().into_owned(), header.mtime().unwrap(), link, content));
        }
        let of = |name: &[u8]| [b"etc/".as_slice(), name].concat();
        let at = 1_790_000_000;
        let content = [[1; 500].as_slice(), &[2; 13]].concat();
        let inner = [long.as_slice(), b"/\xff\n'x"].concat();
        assert_eq!(found[0], (of(b""), at, None, Vec::new()));
        assert_eq!(found[1], (of(&[long.as_slice(), b"/"].concat()), at, None, Vec::new()));
        assert_eq!(found[2], (of(&inner), at, None, content));
        assert_eq!(found[3], (of(b"empty"), at, None, Vec::new()));
        assert_eq!(found[4], (of(b"link"), 0, Some(target.to_vec()), Vec::new()));
        assert_eq!((&found[5].0, found.len()), (&of(b"pipe"), 6));
    }
}
