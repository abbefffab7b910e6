//! What an archive may say, and what becomes of it.

use std::fs::File;
use std::io::Write;

use tar::{Builder, Header};

use super::*;

/// A header as any program may write it, with a path that is looked at by nobody.
fn header(path: &str, kind: EntryType, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o4751);
    header.set_uid(33);
    header.set_gid(44);
    header.set_mtime(1_790_000_000);
    header.set_size(size as u64);
    header.set_cksum();
    header
}

fn linked(path: &str, kind: EntryType, to: &str) -> Header {
    let mut header = header(path, kind, 0);
    header.as_mut_bytes()[157..157 + to.len()].copy_from_slice(to.as_bytes());
    header.set_cksum();
    header
}

fn file(path: &str, content: &'static str) -> (Header, &'static [u8]) {
    (header(path, EntryType::Regular, content.len()), content.as_bytes())
}

fn empty(header: Header) -> (Header, &'static [u8]) {
    (header, b"")
}

fn tar(entries: Vec<(Header, &'static [u8])>) -> Vec<u8> {
    let mut out = Builder::new(Vec::new());
    for (header, content) in entries {
        out.append(&header, content).unwrap();
    }
    out.into_inner().unwrap()
}

fn pressed(tar: &[u8]) -> Vec<u8> {
    zstd::encode_all(tar, 1).unwrap()
}

/// What is in the archive that is made of it, a line each.
fn anew(sent: &[u8], most: u64) -> Result<Vec<String>, CarryError> {
    let place = tempfile::NamedTempFile::new().unwrap();
    let packed = repack(sent, "mark", most, place.path())?;
    let mut archive = tar::Archive::new(zstd::stream::read::Decoder::new(File::open(place.path()).unwrap()).unwrap());
    let mut found = Vec::new();
    for one in archive.entries().unwrap() {
        let mut one = one.unwrap();
        if one.header().entry_type() == EntryType::XGlobalHeader {
            continue;
        }
        let capability = one
            .pax_extensions()
            .unwrap()
            .map(|all| all.map(|one| one.unwrap().value_bytes().to_vec()).collect::<Vec<_>>());
        let (head, path) = (one.header().clone(), String::from_utf8(one.path_bytes().into_owned()).unwrap());
        let link = one.link_name_bytes().map(|to| format!(" -> {}", String::from_utf8_lossy(&to)));
        let mut content = String::new();
        one.read_to_string(&mut content).unwrap();
        let (mode, owner) = (head.mode().unwrap(), (head.uid().unwrap(), head.gid().unwrap()));
        let kind = char::from(head.entry_type().as_byte());
        found.push(format!(
            "{kind} {path} {mode:o} {}:{}{}{}{}",
            owner.0,
            owner.1,
            link.unwrap_or_default(),
            if content.is_empty() { String::new() } else { format!(" {content:?}") },
            capability.map(|value| format!(" {value:?}")).unwrap_or_default()
        ));
    }
    assert_eq!(packed.files, found.len() as u64);
    Ok(found)
}

fn refusal(entries: Vec<(Header, &'static [u8])>) -> String {
    match anew(&pressed(&tar(entries)), 1_000) {
        Err(CarryError::Unclear(why) | CarryError::Told(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_system_is_written_anew() {
    let capability = b"\x01\x00\x00\x02\x00\x20\x00\x00".as_slice();
    let mut out = Builder::new(Vec::new());
    let mut put = |header: &Header, content: &[u8]| out.append(header, content).unwrap();
    put(&header("./", EntryType::Directory, 0), b"");
    put(&header("./etc/", EntryType::Directory, 0), b"");
    put(&header("./etc/passwd", EntryType::Regular, 4), b"root");
    put(&header("etc", EntryType::Directory, 0), b"");
    put(&linked("./etc/same", EntryType::Link, "./etc/passwd"), b"");
    put(&linked("/bin", EntryType::Symlink, "usr/bin"), b"");
    put(&header("./dev/null", EntryType::Char, 0), b"");
    put(&header("./dev/shm/x", EntryType::Regular, 1), b"x");
    put(&header("./run/pipe", EntryType::Fifo, 0), b"");
    out.append_pax_extensions([("SCHILY.xattr.security.capability", capability), ("SCHILY.xattr.user.x", b"y")])
        .unwrap();
    out.append(&header("usr/bin/ping", EntryType::Regular, 2), b"hi".as_slice()).unwrap();
    let sent = pressed(&out.into_inner().unwrap());
    let expected = [
        "5 etc 4751 33:44".to_owned(),
        "0 etc/passwd 4751 33:44 \"root\"".to_owned(),
        "1 etc/same 4751 33:44 -> etc/passwd".to_owned(),
        "2 bin 4751 33:44 -> usr/bin".to_owned(),
        "5 run 755 0:0".to_owned(),
        "6 run/pipe 4751 33:44".to_owned(),
        "5 usr 755 0:0".to_owned(),
        "5 usr/bin 755 0:0".to_owned(),
        format!("0 usr/bin/ping 4751 33:44 \"hi\" [{capability:?}]"),
    ];
    assert_eq!(anew(&sent, 1_000).unwrap(), expected);
    // It is the same archive for the same files, and another one in another image.
    let made = |mark: &str| {
        let place = tempfile::NamedTempFile::new().unwrap();
        repack(sent.as_slice(), mark, 1_000, place.path()).unwrap();
        std::fs::read(place.path()).unwrap()
    };
    assert_eq!(made("one"), made("one"));
    assert_ne!(made("one"), made("two"));
}

#[test]
fn what_leads_elsewhere_is_refused() {
    let up = |path| vec![file(path, "x")];
    for path in ["../x", "a/../../x", "./a/..", "..", "/../etc/passwd"] {
        assert!(refusal(up(path)).contains("leads out"), "{path}");
    }
    let behind = vec![empty(linked("srv", EntryType::Symlink, "/etc")), file("srv/passwd", "x")];
    assert_eq!(refusal(behind), "srv/passwd: it is in what is no folder");
    assert!(refusal(vec![file("a", "x"), file("a/b", "y")]).contains("in what is no folder"));
    assert!(refusal(vec![file("a", "x"), file("./a", "y")]).contains("there twice"));
    assert!(refusal(vec![file("a/b", "x"), empty(linked("a", EntryType::Symlink, "/"))]).contains("there twice"));
    for to in ["/etc/passwd", "../../etc/passwd", "b", "srv", ""] {
        let other = vec![empty(linked("srv", EntryType::Symlink, "/")), empty(linked("a", EntryType::Link, to))];
        let why = refusal(other);
        assert!(why.contains("another name of") || why.contains("leads out") || why.contains("no path"), "{to}: {why}");
    }
}

#[test]
fn what_no_guest_has_is_refused() {
    let mut stranger = header("a", EntryType::Regular, 0);
    stranger.set_uid(65_536);
    stranger.set_cksum();
    assert!(refusal(vec![empty(stranger)]).contains("owner or group"));
    let odd = header("a", EntryType::new(b'Z'), 0);
    assert!(refusal(vec![empty(odd)]).contains("no file of a system"));
    assert!(refusal(vec![file("a", "x"), (header("b", EntryType::Regular, 1_000), &[0; 1_000])]).contains("too large"));
    assert!(anew(&pressed(&tar(vec![(header("b", EntryType::Regular, 1_000), &[0; 1_000])])), 1_000).is_ok());
}

#[test]
fn what_is_cut_or_damaged_is_no_image() {
    let whole = tar(vec![file("a", "some text"), file("b", "more")]);
    let sent = pressed(&whole);
    for cut in [0, 1, 4, sent.len() / 2, sent.len() - 1] {
        let told = anew(&sent[..cut], 1_000);
        assert!(matches!(&told, Err(CarryError::Unclear(why)) if why.contains("no whole tar")), "{cut}: {told:?}");
    }
    for cut in [700, 512 + 5] {
        let told = anew(&pressed(&whole[..cut]), 1_000);
        assert!(matches!(&told, Err(CarryError::Unclear(why)) if why.contains("no whole tar")), "{cut}: {told:?}");
    }
    let told = anew(&whole, 1_000);
    assert!(matches!(told, Err(CarryError::Unclear(_))), "{told:?}");
    // What never ends ends here: a terabyte of nothing is some kilobytes on the line.
    let mut endless = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    endless.write_all(&whole).unwrap();
    endless.write_all(&vec![0; 4 << 20]).unwrap();
    let told = anew(&endless.finish().unwrap(), 1_000_000);
    assert!(matches!(&told, Err(CarryError::Unclear(why)) if why.contains("too much")), "{told:?}");
}
