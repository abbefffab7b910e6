//! Contents that are left out, where files were written before.

use corpus_protocol::KEPT;
use rustix::fs::{AtFlags, Timespec, Timestamps, utimensat};

use super::hostile::entry;
use super::*;

const NAME: &[u8] = b"file";

/// What the tests' entries say.
fn kept() -> TreeEntry {
    TreeEntry { size: 7, modified: (1_600_000_000, 123_456_789), ..entry(1, NAME, TreeKind::File) }
}

fn dated(path: &Path, (seconds, nanoseconds): (i64, u32)) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// All regular files' contents are left out.
fn stream(entries: &[TreeEntry]) -> Vec<u8> {
    let mut stream = Vec::new();
    for entry in [&[entry(0, b"", TreeKind::Folder)], entries].concat() {
        let is_file = entry.kind == TreeKind::File;
        pieces::say(&mut stream, &TreeLine::Entry(Box::new(entry))).unwrap();
        if is_file {
            stream.extend(KEPT.to_be_bytes());
        }
    }
    pieces::say(&mut stream, &TreeLine::End { entries: entries.len() as u64 + 1 }).unwrap();
    stream
}

fn keep(to: &TempDir, entries: &[TreeEntry]) -> Result<u64, Failure> {
    Writer::new(&root(to, ids(0))).unwrap().keeping().run(&mut stream(entries).as_slice())
}

/// What is there.
fn there() -> TempDir {
    let to = tempdir().unwrap();
    let path = to.path().join("file");
    fs::write(&path, "content").unwrap();
    dated(&path, kept().modified);
    to
}

#[test]
fn what_is_right_stays_and_is_as_its_entry_says() {
    let to = there();
    let path = to.path().join("file");
    let inode = fs::metadata(&path).unwrap().ino();
    let attributes = vec![(b"security.capability".to_vec(), capability(None))];
    keep(&to, &[TreeEntry { uid: 1000, mode: 0o4711, attributes: attributes.clone(), ..kept() }]).unwrap();
    let stat = fs::metadata(&path).unwrap();
    assert_eq!((stat.ino(), stat.uid()), (inode, ids(0).unwrap().outside(1000).unwrap()));
    let (entries, _) = read_all(&to, ids(0));
    assert_eq!((entries[1].mode, &entries[1].attributes), (0o4711, &attributes));
    assert_eq!(entries[1].modified, kept().modified);
    assert_eq!(fs::read(&path).unwrap(), b"content");
}

#[test]
fn what_is_not_right_is_refused() {
    let refused = |what: &str, to: &TempDir, entries: &[TreeEntry]| {
        let failure = keep(to, entries).unwrap_err();
        assert!(matches!(failure, Failure::Invalid(_)), "{what}: {failure}");
        let text = failure.to_string();
        assert!(text.starts_with("/f") && text.contains("its content was left out"), "{what}: {text}");
    };
    let of_size = |size| TreeEntry { size, ..kept() };
    refused("shorter", &there(), &[of_size(6)]);
    refused("longer", &there(), &[of_size(8)]);
    let of_time = |modified| TreeEntry { modified, ..kept() };
    refused("a nanosecond later", &there(), &[of_time((1_600_000_000, 123_456_790))]);
    refused("a second earlier", &there(), &[of_time((1_599_999_999, 123_456_789))]);
    refused("another name", &there(), &[TreeEntry { name: b"fil".to_vec(), ..kept() }]);

    let with = |made: &dyn Fn(&Path)| {
        let to = tempdir().unwrap();
        made(&to.path().join("file"));
        dated(&to.path().join("file"), kept().modified);
        to
    };
    let empty = [of_size(0)];
    refused("a folder", &with(&|path| fs::create_dir(path).unwrap()), &empty);
    refused("a pipe", &with(&|path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap()), &empty);
    for size in [0, 7] {
        refused("a link", &with(&|path| symlink("content", path).unwrap()), &[of_size(size)]);
    }

    let named = |name: &[u8]| TreeEntry { name: name.to_vec(), links: 2, ..kept() };
    refused("two names are to come", &there(), &[named(b"file")]);
    let two = there();
    fs::hard_link(two.path().join("file"), two.path().join("file2")).unwrap();
    refused("it has two names", &two, &[kept()]);
    refused("both have two names", &two, &[named(b"file"), named(b"file2")]);
    // The first name's content came, that of the second one is left out.
    let first = super::hostile::stream(&[named(b"file")]);
    let end = first.windows(6).rposition(|window| window == b"{\"end\"").unwrap();
    let second = stream(&[named(b"file2")]);
    let start = second.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let both = [&first[..end], &second[start..]].concat();
    let text = Writer::new(&root(&two, None)).unwrap().keeping().run(&mut both.as_slice()).unwrap_err().to_string();
    assert!(text.starts_with("/file2: its content was left out"), "{text}");
}

#[test]
fn where_nothing_was_written_before_none_is_left_out() {
    let to = there();
    let text = write_all(&to, None, &stream(&[kept()])).unwrap_err().to_string();
    assert!(text.starts_with("/file: its content was left out"), "{text}");
    // It stands only where a content begins.
    let mut stream = super::hostile::stream(&[kept()]);
    let at = stream.windows(7).rposition(|window| window == b"content").unwrap() + 7;
    stream.splice(at..at + 4, KEPT.to_be_bytes());
    let text = Writer::new(&root(&to, None)).unwrap().keeping().run(&mut stream.as_slice()).unwrap_err().to_string();
    assert!(text.contains("a piece has 4294967294 bytes"), "{text}");
}
