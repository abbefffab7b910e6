//! The documents that are served: each is there, begins as it should, and leads nowhere wrong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag};

use super::*;
use crate::help::tests::ROUTES;
use crate::route::Route;

/// The folder of the documents.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// Where the links of a text lead.
fn links(source: &str) -> Vec<String> {
    let link = |event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.to_string()),
        _ => None,
    };
    Parser::new(source).filter_map(link).collect()
}

fn has_section(document: &Document, id: &str) -> bool {
    document.sections.iter().any(|section| section.id == id)
}

#[test]
fn every_document_is_served() {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|kind| kind == "md"));
    let names: BTreeSet<String> = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(all().map(|document| document.name.to_owned()).collect::<BTreeSet<_>>(), names);
}

#[test]
fn a_document_begins_with_its_title_and_what_it_is_about() {
    for document in all() {
        let levels: Vec<u8> = document.sections.iter().map(|section| section.level).collect();
        assert!(levels[0] == 1 && levels[1..].iter().all(|level| *level > 1), "{}: {levels:?}", document.name);
        let about = document.summary();
        assert!(about.ends_with('.') && (20..200).contains(&about.len()), "{}: {about}", document.name);
    }
}

/// Of all that a document links to: another document and its section are there, and so is any other file.
#[test]
fn every_link_of_a_document_resolves() {
    let mut seen = 0;
    let sources = SHELVES.iter().flat_map(|(_, sources)| sources.iter()).map(|(name, text)| (folder(), *name, *text));
    let sources = sources.map(|(folder, name, text)| (folder, name, text.to_owned()));
    let readme = folder().join("../README.md");
    let readme = (folder().join(".."), "README", std::fs::read_to_string(readme).unwrap());
    for (folder, name, source) in sources.chain([readme]) {
        for link in links(&source).iter().filter(|link| !link.contains("://")) {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { folder.join(format!("{name}.md")) } else { folder.join(file) };
            assert!(target.exists(), "{name}: {link}");
            let stem = target.file_stem().unwrap().to_str().unwrap();
            let there = section.is_empty() || has_section(find(stem).unwrap(), section);
            assert!(there, "{name}: {link}: no such section");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

/// The same of the rendered pages: whatever has an address of ours is a page, and its section is on it.
#[test]
fn every_link_of_a_page_resolves() {
    let mut seen = 0;
    for document in all() {
        for link in document.html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let (path, section) = link.split_once('#').unwrap_or((link, ""));
            if path.contains("://") {
                continue;
            }
            let on = if path.is_empty() { Some(document) } else { path.strip_prefix("/docs/").and_then(find) };
            let there = match on {
                Some(page) => section.is_empty() || has_section(page, section),
                None => section.is_empty() && !matches!(Route::of(path), Route::Unknown | Route::Document(_)),
            };
            assert!(there, "{}: {link}", document.name);
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn every_page_has_help_that_is_there() {
    for path in ROUTES {
        let help = Route::of(path).help();
        let document = find(help.document).unwrap_or_else(|| panic!("{path}: no document {}", help.document));
        assert!(has_section(document, help.section), "{path}: {}", help.path());
    }
}

#[test]
fn the_pages_bring_no_html_of_their_own() {
    for document in all() {
        for forbidden in ["<!--", "<script", "<img", " style=", " onclick="] {
            assert!(!document.html.contains(forbidden), "{}: {forbidden}", document.name);
        }
    }
}
