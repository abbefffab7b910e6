//! All files of a guest, on a line of their own.
//!
//! A backup reads them and bringing one back writes them, and what moves a guest does both: gigabytes, which would hold up
//! whatever else is said on a node's line, and bytes, which are no text. So each has a channel of its own, with a program of
//! the agent at its end.
//!
//! Each program is for a job in a generation of its lease, and ends when a later one of that job was on the host: whoever
//! lost the lease may stand still with the line open.
//!
//! **Reading** (`corpus-agent read-tree GUEST JOB GENERATION FILES`): first the program writes a [`TreeLine`] for each file, a folder
//! before what is in it and names of a folder in the order of their bytes, and [`TreeLine::End`]. Then it reads lines, each
//! the number of an entry (the first is 0), and answers each in turn with the content of that file, in
//! [pieces](MAX_PIECE). It ends when its input does. Nothing about the files changes by it, their times neither. `FILES` is
//! one of
//! - `SNAPSHOT`, the id of a snapshot: the files in it;
//! - `own`: what the guest has now. It is refused while the guest runs, and until the program ends Corpus neither starts
//!   the guest nor does anything else with it: such requests are [busy](crate::ErrorKind::Busy);
//! - `written`: what was written for the job and did not take the place of the guest's files yet. It is refused where
//!   that is not there, and until the program ends nobody else writes or takes it.
//!
//! **Summing up** (`corpus-agent sum-tree GUEST JOB GENERATION FILES`): the program reads all of the same files itself, and writes one
//! [`TreeLine::Sums`].
//!
//! **Writing** (`corpus-agent write-tree GUEST JOB GENERATION BYTES [onto]`): the program reads a [`TreeLine`] for each file
//! in the same order, and behind each regular file its content in pieces; at [`TreeLine::End`] it makes sure that all of it
//! is on disk and writes [`TreeLine::End`] itself. What was not ended so is not there. `BYTES` is about how much all files
//! hold, in bytes; the node must have room for what of it is not there yet.
//!
//! Without `onto` it begins with what the guest was made from, and what was written before goes. With `onto` it begins with
//! what was written for the same job before, and is refused where that is not there: then nothing has changed. All files
//! are told as ever, but a content that is there may be left out: [`KEPT`]. Once it has begun, what was there counts as
//! nothing until all is written, and is gone if that fails.
//!
//! Whatever fails is told as a [`TreeLine::Failed`], before [`TreeLine::End`].
//!
//! A **piece** is its length in four bytes, the highest first, and so many bytes; a piece of no bytes ends a content. In
//! reading, [`BROKEN`] in place of a length ends the whole line: a line of text behind it says why.
//!
//! What is in a tree was made by whoever is root in a guest: names are bytes, and lead nowhere by themselves.

use serde::{Deserialize, Serialize};

use crate::sums::TreeSums;

/// The longest piece of a content, in bytes.
pub const MAX_PIECE: u32 = 256 << 10;
/// What stands in place of a length where a content can't be had.
pub const BROKEN: u32 = u32::MAX;
/// What stands in place of a content's first length, and of all the rest of it, where what is there is right: in writing
/// `onto`, for a regular file of one name, whose entry says the size and the time of change, to the nanosecond, of the
/// regular file that has its name there, and no other name. Anything else fails the whole of it, with the file's path. What
/// the entry says besides is given to the file. Who says it has seen that what changes these contents changes their times.
pub const KEPT: u32 = u32::MAX - 1;
/// The longest line of a tree, in bytes: a name, where a link leads, and attributes.
pub const MAX_TREE_LINE: usize = 256 << 10;
/// How many entries a tree may have.
pub const MAX_ENTRIES: u64 = 10_000_000;
/// How deep a tree may be.
pub const MAX_DEPTH: u32 = 2_048;

/// One line of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeLine {
    /// A file of any kind.
    Entry(Box<TreeEntry>),
    /// All were said.
    End {
        /// How many.
        entries: u64,
    },
    /// What all of it comes to.
    Sums(TreeSums),
    /// There is no more, because of this.
    Failed(String),
}

/// Names and values.
pub type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// One file of a guest, as the guest sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// How many folders it is in; 0 is the root itself, which comes first.
    pub depth: u32,
    /// Its name in the last of them, without any `/`; the root has none.
    #[serde(with = "bytes")]
    pub name: Vec<u8>,
    /// What it is.
    pub kind: TreeKind,
    /// Its permissions, the lowest 12 bits of its mode.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// When its content was changed: seconds since 1970, nanoseconds.
    pub modified: (i64, u32),
    /// When anything about it was changed.
    pub changed: (i64, u32),
    /// Its number; what has the same number and more than one name is one file.
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// How long it is, in bytes; 0 for what is no regular file.
    pub size: u64,
    /// Its extended attributes, those of access lists and capabilities among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "attributes")]
    pub attributes: Attributes,
}

/// What a file is. Sockets and devices are left out: a guest's programs make the former anew, and the latter are not its
/// own to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeKind {
    /// A folder.
    Folder,
    /// A regular file.
    File,
    /// A symbolic link.
    Link(#[serde(with = "bytes")] Vec<u8>),
    /// A named pipe.
    Pipe,
}

/// Bytes as text: what is no printable character of ASCII is `%` and two digits, and so is `%` itself.
mod bytes {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    const DIGITS: &[u8; 16] = b"0123456789abcdef";

    pub fn to_text(bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        for &byte in bytes {
            if (byte.is_ascii_graphic() && byte != b'%') || byte == b' ' {
                text.push(byte.into());
            } else {
                text.push('%');
                for digit in [byte >> 4, byte & 15] {
                    text.push(DIGITS.get(usize::from(digit)).copied().unwrap_or_default().into());
                }
            }
        }
        text
    }

    pub fn from_text(text: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            let byte = if byte == b'%' {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            } else {
                byte
            };
            bytes.push(byte);
        }
        Some(bytes)
    }

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&to_text(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        from_text(&text).ok_or_else(|| D::Error::custom("a `%` without two digits"))
    }
}

mod attributes {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Attributes;
    use super::bytes::{from_text, to_text};

    pub fn serialize<S: Serializer>(all: &[(Vec<u8>, Vec<u8>)], to: S) -> Result<S::Ok, S::Error> {
        all.iter().map(|(name, value)| (to_text(name), to_text(value))).collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Attributes, D::Error> {
        let all = Vec::<(String, String)>::deserialize(from)?;
        let bytes = all.iter().map(|(name, value)| from_text(name).zip(from_text(value)));
        bytes.collect::<Option<_>>().ok_or_else(|| D::Error::custom("a `%` without two digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_said_and_understood() {
        let entry = TreeEntry {
            depth: 3,
            name: (1..=255).filter(|byte| *byte != b'/').collect(),
            kind: TreeKind::Link(b"../100%\xff\n".to_vec()),
            mode: 0o777,
            uid: 0,
            gid: 65_534,
            modified: (-1, 999_999_999),
            changed: (1_795_000_000, 1),
            inode: u64::MAX,
            links: 1,
            size: 0,
            attributes: vec![(b"user.note".to_vec(), vec![0, 1, b'%', 255])],
        };
        let text = serde_json::to_string(&TreeLine::Entry(Box::new(entry.clone()))).unwrap();
        assert!(text.is_ascii(), "{text}");
        assert_eq!(serde_json::from_str::<TreeLine>(&text).unwrap(), TreeLine::Entry(Box::new(entry)));
        for bad in [r#""%""#, r#""%4""#, r#""%zz""#] {
            let line = format!(r#"{{"entry":{{"depth":0,"name":{bad},"kind":"file"}}}}"#);
            assert!(serde_json::from_str::<TreeLine>(&line).unwrap_err().to_string().contains("two digits"), "{bad}");
        }
    }
}
