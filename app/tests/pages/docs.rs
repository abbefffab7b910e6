//! The documentation as pages, and the way to it from every other page.

use std::collections::BTreeMap;

use corpus_api::search::Found;
use corpus_app::layout::{Page, framed};
use corpus_app::pages::{docs, search};
use corpus_app::route::Route;
use leptos::prelude::*;

use crate::{html, samples};

fn asked(question: &str) -> String {
    html(|| docs::load(&BTreeMap::from([("q".to_owned(), question.to_owned())])).body)
}

fn document(name: &str) -> String {
    html(|| docs::load_one(name).unwrap().body)
}

fn in_frame(path: &str) -> String {
    let page = Page::new("test", "Test", ().into_any());
    html(|| framed(page, &Route::of(path), path, &samples::operator(), &samples::counts()))
}

#[test]
fn the_index_says_what_each_document_is_about() {
    let page = asked("");
    for document in corpus_app::docs::all() {
        assert!(page.contains(&format!("href=\"/docs/{}\"", document.name)), "{}: {page}", document.name);
        assert!(page.contains(&format!("<p class=\"quiet\">{}</p>", document.summary())), "{}", document.name);
    }
    assert!(page.contains("<form method=\"get\" action=\"/docs\"") && page.contains("role=\"search\""), "{page}");
    assert_eq!(asked(" \t"), page, "a question without words asks nothing");
}

#[test]
fn a_document_has_its_contents_beside_it() {
    let page = document("deploying");
    for part in ["<span id=\"deploying-with-git-push\">Deploying with ", "<h2 id=\"rollback\">Rollback</h2>"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("<a href=\"#rollback\">Rollback</a></li>").count(), 2, "beside it, or above it: {page}");
    assert_eq!(page.matches("<h1>").count(), 1);
    assert!(document("operating").contains("<li class=\"below\"><a href=\"#upgrade\">Upgrade</a></li>"));
    assert!(document("first-steps").contains("<a href=\"/guests/new\"><code>/guests/new</code></a>"));
    let nothing = docs::load_one("../README").err().unwrap();
    assert_eq!((nothing.status, nothing.title.as_str()), (404, "Not found"));
}

#[test]
fn a_search_marks_what_it_found_and_leads_there() {
    let page = asked("Overcommit");
    assert!(page.contains("href=\"/docs/operating#compute-nodes\""), "{page}");
    assert!(page.contains("<mark>overcommit</mark>") && page.contains("in Operating Corpus"), "{page}");
    assert!(page.contains("value=\"Overcommit\""), "{page}");
    assert!(asked("xyzzy").contains("No section has all these words"));
}

#[test]
fn a_hostile_question_stays_text() {
    let page = asked("\"><script>alert(1)</script>");
    assert!(page.contains("value=\"&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\""), "{page}");
    let long = asked(&"é".repeat(5_000));
    assert!(long.contains(&format!("value=\"{}\"", "é".repeat(100))), "{long}");
}

#[test]
fn many_sections_are_told_in_part() {
    let page = asked("guest");
    assert_eq!(page.matches("/docs/").count(), 20, "{page}");
    assert!(page.contains("20 of ") && page.contains("the best first"), "{page}");
}

#[test]
fn the_search_for_names_tells_what_is_written_too() {
    let found = |question: &str| {
        let query = BTreeMap::from([("q".to_owned(), question.to_owned())]);
        html(|| search::search_view(&query, Some(&Found::default())))
    };
    let page = found("seal key");
    assert!(page.contains("Nothing is called so") && page.contains("href=\"/docs?q=seal+key\""), "{page}");
    assert_eq!(page.matches("/docs/").count(), 3, "{page}");
    assert!(!found("xyzzy").contains("In the documentation"));
}

#[test]
fn every_page_has_a_way_to_what_is_written_about_it() {
    let page = in_frame("/nodes/0199d3c0-0000-7000-8000-000000000001");
    assert!(page.contains("href=\"/docs/operating#compute-nodes\"") && page.contains(">Help<"), "{page}");
    assert!(in_frame("/tokens").contains("href=\"/docs/api#tokens\""));
    assert!(in_frame("/docs/api").contains("<a href=\"/docs\" aria-current=\"page\">Documentation"));
    assert!(
        page.contains("&quot;/docs&quot;") && page.contains("&quot;/docs/first-steps&quot;"),
        "in the palette: {page}"
    );
}

#[test]
fn no_page_of_it_has_an_inline_style_or_handler() {
    let all: String = corpus_app::docs::all().map(|one| document(one.name)).collect();
    for forbidden in [" style=", " onclick=", "<script", "<img"] {
        assert!(!all.contains(forbidden), "{forbidden}");
    }
}
