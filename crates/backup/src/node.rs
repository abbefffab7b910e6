//! Files of a guest as restic keeps them, and back.
//!
//! Restic's words are Go's: a mode has the bits of Go's `FileMode`, names and times are text. What a guest says that Go
//! has no word for is brought into what any restic still reads: times before the year 1 and after 9999 become the first and
//! the last of them, and names of attributes that are no text are escaped as restic escapes names of files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use corpus_protocol::{TreeEntry, TreeKind};
use rustic_core::jiff::Timestamp;
use rustic_core::repofile::{Metadata, Node, NodeType};
use serde_json::json;

/// Go's `io/fs.FileMode`.
const GO_FOLDER: u32 = 1 << 31;
const GO_LINK: u32 = 1 << 27;
const GO_PIPE: u32 = 1 << 25;
/// Set-user-ID, set-group-ID, sticky: in a mode of Unix, and in one of Go.
const SPECIAL: [(u32, u32); 3] = [(0o4000, 1 << 23), (0o2000, 1 << 22), (0o1000, 1 << 20)];
const PERMISSIONS: u32 = 0o777;

/// 0001-01-02 and 9999-12-30: with any offset from UTC the year has four digits and is none before the first.
const TIMES: (i64, i64) = (-62_135_510_400, 253_402_128_000);

/// As restic keeps it; or why it can't.
pub(crate) fn to_node(entry: &TreeEntry) -> Result<Node, &'static str> {
    let (node_type, kind) = match &entry.kind {
        TreeKind::Folder => (NodeType::Dir, GO_FOLDER),
        TreeKind::File => (NodeType::File, 0),
        TreeKind::Link(target) => (NodeType::from_link(Path::new(OsStr::from_bytes(target))), GO_LINK),
        TreeKind::Pipe => (NodeType::Fifo, GO_PIPE),
    };
    let special = SPECIAL.iter().filter(|(unix, _)| entry.mode & unix != 0).map(|(_, go)| go).sum::<u32>();
    let mut meta = Metadata {
        mode: Some(kind | special | (entry.mode & PERMISSIONS)),
        mtime: to_time(entry.modified),
        // When it was read last says nothing, and would make each tree another.
        atime: to_time(entry.modified),
        ctime: to_time(entry.changed),
        uid: Some(entry.uid),
        gid: Some(entry.gid),
        inode: entry.inode,
        links: entry.links,
        size: if entry.kind == TreeKind::File { entry.size } else { 0 },
        ..Metadata::default()
    };
    let attributes = entry.attributes.iter().map(|(name, value)| {
        // Their type has no name outside of the library; this is their form in the repository.
        serde_json::from_value(json!({ "name": attribute_to_text(name), "value": STANDARD.encode(value) }))
    });
    let attributes: Result<_, serde_json::Error> = attributes.collect();
    meta.extended_attributes = attributes.map_err(|_| "its attributes can't be kept")?;
    Ok(Node::new_node(OsStr::from_bytes(&entry.name), node_type, meta))
}

/// As a guest has it, unless it is a socket or a device.
pub(crate) fn to_entry(node: &Node, depth: u32) -> Option<TreeEntry> {
    let kind = match &node.node_type {
        NodeType::Dir => TreeKind::Folder,
        NodeType::File => TreeKind::File,
        link @ NodeType::Symlink { .. } => TreeKind::Link(link.to_link().as_os_str().as_bytes().to_vec()),
        NodeType::Fifo => TreeKind::Pipe,
        NodeType::Socket | NodeType::Dev { .. } | NodeType::Chardev { .. } => return None,
    };
    let meta = &node.meta;
    let mode = meta.mode.unwrap_or(0o755);
    let special = SPECIAL.iter().filter(|(_, go)| mode & go != 0).map(|(unix, _)| unix).sum::<u32>();
    let attributes = meta.extended_attributes.iter();
    Some(TreeEntry {
        depth,
        name: node.name().as_bytes().to_vec(),
        mode: special | (mode & PERMISSIONS),
        uid: meta.uid.unwrap_or_default(),
        gid: meta.gid.unwrap_or_default(),
        modified: from_time(meta.mtime),
        changed: from_time(meta.ctime),
        inode: meta.inode,
        links: meta.links,
        size: if kind == TreeKind::File { meta.size } else { 0 },
        attributes: attributes
            .map(|one| (attribute_from_text(&one.name), one.value.clone().unwrap_or_default()))
            .collect(),
        kind,
    })
}

fn to_time((seconds, nanoseconds): (i64, u32)) -> Option<Timestamp> {
    let nanoseconds = i32::try_from(nanoseconds.min(999_999_999)).ok()?;
    Timestamp::new(seconds.clamp(TIMES.0, TIMES.1), nanoseconds).ok()
}

fn from_time(time: Option<Timestamp>) -> (i64, u32) {
    let Some(time) = time else { return (0, 0) };
    // Before 1970 both parts count backwards; of a guest's times only the seconds do.
    match u32::try_from(time.subsec_nanosecond()) {
        Ok(nanoseconds) => (time.as_second(), nanoseconds),
        Err(_) => (time.as_second() - 1, 1_000_000_000 - time.subsec_nanosecond().unsigned_abs()),
    }
}

fn attribute_to_text(name: &[u8]) -> String {
    match str::from_utf8(name) {
        Ok(text) if !text.contains('\\') => text.to_owned(),
        _ => Node::new_node(OsStr::from_bytes(name), NodeType::File, Metadata::default()).name,
    }
}

fn attribute_from_text(text: &str) -> Vec<u8> {
    let escaped = Node { name: text.to_owned(), ..Node::default() };
    escaped.name().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_and_any_attribute_is_kept_as_far_as_it_can_be() {
        for time in [(-1, 999_999_999), (0, 0), (-5, 0), (TIMES.0, 1), (TIMES.1, 999_999_999), (1_795_000_000, 7)] {
            assert_eq!(from_time(to_time(time)), time);
        }
        assert_eq!(from_time(to_time((i64::MIN, 0))), (TIMES.0, 0));
        assert_eq!(from_time(to_time((i64::MAX, u32::MAX))), (TIMES.1, 999_999_999));
        for name in [b"user.note".as_slice(), b"user.\xff\\x", b"user.\\xff", b"user.\"\n", "user.\u{e4}".as_bytes()] {
            assert_eq!(attribute_from_text(&attribute_to_text(name)), name);
        }
        assert_eq!(attribute_to_text(b"user.\"note\""), "user.\"note\"");
    }
}
