//! The documentation: the list of documents, a document, and what a search finds in them.
//!
//! The search is a plain form with GET; its answer and every section have an address of their own.

use leptos::prelude::*;

use crate::asked::Query;
use crate::components::{card, count, empty, head};
use crate::docs::search::{Hit, Hits, LETTERS, SHOWN, asked, search};
use crate::docs::{Document, Piece, Shelf, all, find, shelves};
use crate::form::{Failure, Result};
use crate::layout::Page;

/// The list of documents, or what a search finds in them.
pub fn load(query: &Query) -> Page {
    let question = query.get("q").map(|text| asked(text)).unwrap_or_default();
    let body = if question.is_empty() {
        let below = format!("Of the version that this server is: {}", env!("CARGO_PKG_VERSION"));
        view! { {top("Documentation", below, "")}<div class="stack">{shelves().iter().map(shelf).collect_view()}</div> }
            .into_any()
    } else {
        found_view(&question, &search(all(), &question, SHOWN))
    };
    Page::new("docs", "Documentation", body)
}

/// A document.
pub fn load_one(name: &str) -> Result<Page> {
    let message = || "The documentation has no such document.".to_owned();
    let none = || Failure { status: 404, title: "Not found".to_owned(), message: message() };
    let document = find(name).ok_or_else(none)?;
    Ok(Page::new("document", document.title(), document_view(document)).under("Documentation", "/docs"))
}

/// The head of each of these pages, with the search.
fn top(title: &'static str, below: String, question: &str) -> AnyView {
    head(title.into_any(), view! { <span class="quiet">{below}</span> }.into_any(), search_form(question))
}

fn search_form(question: &str) -> AnyView {
    view! {
        <form method="get" action="/docs" class="seek" role="search" aria-label="Documentation">
            <label class="unseen" for="f-q">"Search the documentation"</label>
            <input type="search" id="f-q" name="q" value=question.to_owned() maxlength=LETTERS.to_string()
                placeholder="Search the documentation" autocomplete="off" spellcheck="false" autocapitalize="none"/>
            <button class="btn">"Search"</button>
        </form>
    }
    .into_any()
}

fn shelf(one: &Shelf) -> AnyView {
    let line = |document: &Document| {
        view! {
            <li><div><a class="link strong" href=format!("/docs/{}", document.name)>{document.title().to_owned()}</a>
                <p class="quiet">{document.summary().to_owned()}</p></div></li>
        }
    };
    let lines = one.documents.iter().map(line).collect_view();
    view! {
        <section class="card" aria-label=one.title>
            <header><h2>{one.title}</h2></header>
            <ul class="items">{lines}</ul>
        </section>
    }
    .into_any()
}

/// The view of a document: beside it what it contains, above it where there is no room beside.
pub fn document_view(document: &'static Document) -> AnyView {
    let title =
        document.sections.first().map(|first| view! { <span id=first.id.clone()>{first.heading.clone()}</span> });
    view! {
        {head(title.into_any(), ().into_any(), search_form(""))}
        <div class="reading">
            <details class="contents">
                <summary>"On this page"</summary>
                <nav aria-label="On this page">{contents(document)}</nav>
            </details>
            <article class="doc" inner_html=document.html.as_str()></article>
            <nav class="contents" aria-labelledby="contents-heading">
                <h2 id="contents-heading">"On this page"</h2>
                {contents(document)}
            </nav>
        </div>
    }
    .into_any()
}

fn contents(document: &Document) -> AnyView {
    let sections = document.sections.iter().filter(|section| matches!(section.level, 2 | 3));
    let line = |section: &crate::docs::Section| {
        let class = (section.level == 3).then_some("below");
        view! { <li class=class><a href=format!("#{}", section.id)>{section.heading.clone()}</a></li> }
    };
    view! { <ul>{sections.map(line).collect_view()}</ul> }.into_any()
}

/// The view of what a search found.
pub fn found_view(question: &str, hits: &Hits<'_>) -> AnyView {
    let below = match hits.number {
        number if number > hits.first.len() => format!("{} of {number} sections, the best first", hits.first.len()),
        number => count(number, "section"),
    };
    let all = view! { <a class="link" href="/docs">"All documents"</a> };
    let body =
        if hits.first.is_empty() { empty("No section has all these words", all.into_any()) } else { list(&hits.first) };
    view! { {top("Documentation", below, question)}{card("found", "Found", ().into_any(), body)} }.into_any()
}

/// Sections that were found.
pub fn list(hits: &[Hit<'_>]) -> AnyView {
    let line = |hit: &Hit<'_>| {
        view! {
            <li>
                <a class="link strong" href=hit.document.path_of(hit.section)>{pieces(&hit.heading)}</a>
                " "<span class="quiet">{format!("in {}", hit.document.title())}</span>
                <p>{pieces(&hit.excerpt)}</p>
            </li>
        }
    };
    view! { <ol class="found">{hits.iter().map(line).collect_view()}</ol> }.into_any()
}

fn pieces(all: &[Piece]) -> AnyView {
    let one = |piece: &Piece| match piece {
        Piece::Plain(text) => text.clone().into_any(),
        Piece::Marked(text) => view! { <mark>{text.clone()}</mark> }.into_any(),
    };
    all.iter().map(one).collect_view().into_any()
}
