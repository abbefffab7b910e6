//! What is in an image, and what is not.

use std::collections::BTreeMap;

use super::*;

/// Contents that are as long as is asked for.
struct Letters(BTreeMap<u64, &'static str>);

impl Contents for Letters {
    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.0.get(&number).copied().unwrap_or_default().as_bytes()))
    }
}

fn entry(depth: u32, name: &str, kind: TreeKind, size: usize) -> TreeEntry {
    TreeEntry {
        depth,
        name: name.into(),
        kind,
        mode: 0o640,
        uid: 3_000,
        gid: 7,
        modified: (1_790_000_000, 5),
        changed: (0, 0),
        inode: 0,
        links: 1,
        size: size as u64,
        attributes: Vec::new(),
    }
}

fn folder(depth: u32, name: &str) -> TreeEntry {
    entry(depth, name, TreeKind::Folder, 0)
}

fn file(depth: u32, name: &str, size: usize) -> TreeEntry {
    entry(depth, name, TreeKind::File, size)
}

fn what(folder: &[&str], most: u64) -> What {
    What { folder: folder.iter().map(|name| name.as_bytes().to_vec()).collect(), mark: "an image".to_owned(), most }
}

/// What is in the archive: paths, with content or where a link leads.
fn packed(
    what: &What,
    entries: Vec<TreeEntry>,
    contents: &[(u64, &'static str)],
) -> Result<BTreeMap<String, String>, CarryError> {
    let place = tempfile::NamedTempFile::new().unwrap();
    let letters: Arc<dyn Contents> = Arc::new(Letters(contents.iter().copied().collect()));
    write(what, place.path(), Listed::of(entries), &letters)?;
    let mut archive = tar::Archive::new(zstd::stream::read::Decoder::new(File::open(place.path()).unwrap()).unwrap());
    let mut found = BTreeMap::new();
    for one in archive.entries().unwrap() {
        let mut one = one.unwrap();
        if one.header().entry_type() == EntryType::XGlobalHeader {
            continue;
        }
        let mut content = String::new();
        one.read_to_string(&mut content).unwrap();
        if let Some(target) = one.link_name_bytes() {
            content = format!("-> {}", String::from_utf8_lossy(&target));
        }
        found.insert(String::from_utf8(one.path_bytes().into_owned()).unwrap(), content);
    }
    Ok(found)
}

fn map(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect()
}

#[test]
fn what_a_guest_is_like_is_kept_and_who_it_is_is_not() {
    let entries = vec![
        folder(0, ""),
        folder(1, "etc"),
        file(2, "hostname", 3),
        file(2, "machine-id", 3),
        file(2, "passwd", 3),
        folder(2, "ssh"),
        file(3, "ssh_host_ed25519_key", 3),
        file(3, "sshd_config", 3),
        folder(1, "home"),
        folder(2, "bob"),
        folder(3, ".ssh"),
        file(4, "id_ed25519", 3),
        file(3, "notes", 3),
        folder(1, "proc"),
        file(2, "left", 3),
        folder(1, "root"),
        file(2, ".bash_history", 3),
        entry(1, "sbin", TreeKind::Link(b"usr/sbin".to_vec()), 0),
        folder(1, "srv"),
        folder(2, "projects"),
        folder(3, "atlas"),
        file(4, "pillar", 3),
        folder(1, "var"),
        folder(2, "log"),
        file(3, "auth.log", 3),
        folder(3, "nginx"),
    ];
    let contents: Vec<(u64, &str)> = (0..entries.len() as u64).map(|number| (number, "abc")).collect();
    let found = packed(&what(&[], 1_000), entries, &contents).unwrap();
    assert_eq!(
        found,
        map(&[
            ("etc", ""),
            ("etc/machine-id", ""),
            ("etc/passwd", "abc"),
            ("etc/ssh", ""),
            ("etc/ssh/sshd_config", "abc"),
            ("home", ""),
            ("home/bob", ""),
            ("home/bob/notes", "abc"),
            ("proc", ""),
            ("root", ""),
            ("sbin", "-> usr/sbin"),
            ("srv", ""),
            ("srv/projects", ""),
            ("var", ""),
            ("var/log", ""),
            ("var/log/nginx", ""),
        ])
    );
}

#[test]
fn a_folder_becomes_an_image_as_it_is() {
    let entries = vec![
        folder(0, ""),
        folder(1, "etc"),
        file(2, "hostname", 2),
        folder(1, "srv"),
        folder(2, "image"),
        folder(3, "etc"),
        file(4, "hostname", 3),
        folder(2, "image2"),
    ];
    let found = packed(&what(&["srv", "image"], 100), entries.clone(), &[(6, "abc")]).unwrap();
    assert_eq!(found, map(&[("etc", ""), ("etc/hostname", "abc")]));
    let error = packed(&what(&["srv", "no"], 100), entries, &[]).unwrap_err();
    assert!(error.to_string().contains("no such folder"), "{error}");
}

#[test]
fn a_file_of_several_names_is_told_once() {
    let linked = |name| TreeEntry { inode: 9, links: 2, ..file(1, name, 3) };
    let entries = vec![folder(0, ""), linked("a"), file(1, "b", 0), linked("c")];
    let found = packed(&what(&[], 3), entries, &[(1, "abc")]).unwrap();
    assert_eq!(found, map(&[("a", "abc"), ("b", ""), ("c", "-> a")]));
}

#[test]
fn more_files_than_wait_come_in_their_order() {
    let mut entries = vec![folder(0, "")];
    entries.extend((0..3 * AHEAD).map(|number| file(1, &format!("f{number:05}"), 3)));
    let contents: Vec<(u64, &str)> = (0..).zip(["abc", "def", "ghi"].into_iter().cycle().take(entries.len())).collect();
    let found = packed(&what(&[], u64::MAX), entries, &contents).unwrap();
    assert_eq!(found.len(), 3 * AHEAD);
    assert_eq!((found["f00000"].as_str(), found["f00001"].as_str()), ("def", "ghi"));
}

#[test]
fn what_is_no_tree_or_too_much_becomes_no_image() {
    let refused = |entries: Vec<TreeEntry>, most| packed(&what(&[], most), entries, &[(1, "abcd")]).unwrap_err();
    for (name, said) in [("..", "a name that no file can have"), ("a/b", "a name that no file can have")] {
        let error = refused(vec![folder(0, ""), file(1, name, 0)], 100);
        assert!(error.to_string().contains(said), "{error}");
    }
    let error = refused(vec![folder(0, ""), file(1, "a", 11)], 10);
    assert!(error.to_string().contains("too large"), "{error}");
    // One that grew or shrank since it was listed.
    for size in [3, 5] {
        let error = refused(vec![folder(0, ""), file(1, "a", size)], 100);
        assert!(matches!(error, CarryError::Spool(_)), "{error}");
    }
}
