//! Imports of this crate go one way: a file uses what is in its own layer, or below it.
//!
//! The store knows no job and no operation; jobs know no operation and no controller. So each can be
//! read, and changed, without what is above it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The modules of the crate, from the lowest layer to the highest.
const LAYERS: [&[&str]; 6] = [
    &[
        "access_followers",
        "groups",
        "hooks",
        "intrusion",
        "job_errors",
        "junit",
        "looked_at",
        "project_settings",
        "rules",
        "seal",
        "ssh_keys",
        "surroundings",
    ],
    // A letter is kept as a row until it is sent.
    &["events", "mail", "store", "webhooks"],
    &[
        "acme",
        "certificates",
        "changed",
        "drift",
        "guest_backups",
        "images",
        "own_backups",
        "quotas",
        "readiness",
        "server_keys",
        "services",
        "spread",
        "uploads",
    ],
    &["sagas"],
    &["controller"],
    &["background", "git", "handlers", "kept_forms", "people"],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// Where each name that `lib.rs` gives to something is from: a module, or another crate.
fn exports(lib: &str) -> BTreeMap<&str, &str> {
    let uses = lib.split(';').filter_map(|statement| statement.trim().trim_start_matches("pub ").strip_prefix("use "));
    let from = uses.map(|path| path.split_once("::").unwrap_or(("", path)));
    from.flat_map(|(from, names)| {
        let names = names.trim_matches(['{', '}']).split(',').filter_map(|name| name.rsplit([' ', ':']).next());
        names.map(move |name| (name.trim(), from))
    })
    .collect()
}

/// The first words of all paths from the root of the crate.
fn roots(text: &str) -> Vec<&str> {
    text.split("crate::")
        .skip(1)
        .flat_map(|rest| if rest.starts_with('{') { group(rest) } else { vec![word(rest)] })
        .collect()
}

/// The first words of the paths in braces.
fn group(text: &str) -> Vec<&str> {
    let (mut depth, mut words) = (0_u32, Vec::new());
    for (at, c) in text.char_indices() {
        let begins = depth == 1 && matches!(c, ',') || depth == 0;
        depth = match c {
            '{' => depth + 1,
            '}' => depth - 1,
            _ => depth,
        };
        if begins {
            words.push(word(text[at + 1..].trim_start()));
        }
        if depth == 0 {
            break;
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// The sources below a folder, but those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_test = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().ends_with("tests");
    let own = entries.filter(|path| !is_test(path));
    own.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The code of a file: no comments, and no tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_uses_what_is_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = std::fs::read_to_string(root.join("lib.rs")).unwrap();
    let exports = exports(&lib);
    let (mut files, mut wrong) = (0, Vec::new());
    for path in sources(&root) {
        let file = path.strip_prefix(&root).unwrap();
        let module = Path::new(file.iter().next().unwrap()).file_stem().unwrap().to_str().unwrap();
        if ["lib", "layers", "snapshots"].contains(&module) {
            continue;
        }
        let Some(own) = layer(module) else { panic!("{module} is in no layer: say in which it is") };
        let mut text = code(&std::fs::read_to_string(&path).unwrap());
        // There the parent is the root.
        if file.iter().count() == 1 || file.ends_with(Path::new(module).join("mod.rs")) {
            text = text.replace("super::", "crate::");
        }
        files += 1;
        for name in roots(&text) {
            let from = exports.get(name).copied().unwrap_or(name);
            let known = exports.contains_key(name) || layer(name).is_some();
            assert!(known, "{}: crate::{name} is in no layer: say in which it is", file.display());
            if layer(from) > Some(own) {
                wrong.push(format!("{} uses {from} by crate::{name}", file.display()));
            }
        }
    }
    assert!(files > 80, "only {files} files were looked at");
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn all_ways_to_use_something_are_seen() {
    assert_eq!(roots("use crate::ops::git;\nfn f() { crate::sagas::registry() }"), ["ops", "sagas"]);
    assert_eq!(
        roots("use crate::{\n    Error, ops::{a, b}, store::{\n c::{d}},\n};\nuse x::{y};"),
        ["Error", "ops", "store"]
    );
    let exported = exports("mod a;\npub use a::{B, c::D};\nuse {other as short};\npub use store::keys::Holder;\n");
    assert_eq!(exported, BTreeMap::from([("B", "a"), ("D", "a"), ("Holder", "store"), ("short", "")]));
}
