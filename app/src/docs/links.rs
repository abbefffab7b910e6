//! Where the links of a document lead.
//!
//! A document is a file of the repository, and links to files there. Here only the documents are served: a link
//! to one of them leads to its page, one into the world stays, and the text of any other stays without its link.
//! What stands in the text as the path of a page, such as `/keys`, leads to that page.

use pulldown_cmark::{CowStr, Event, Tag, TagEnd};

use super::is_served;
use super::render::escaped;
use crate::route::Route;

/// The events with the links that are good here.
pub fn led(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    // Of the link that one is in: whether it leads anywhere.
    let mut inside = None;
    let one = |event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let target = target(&dest_url);
            inside = Some(target.is_some());
            target.map(|to| Event::Start(Tag::Link { link_type, dest_url: to.into(), title, id }))
        }
        Event::End(TagEnd::Link) => inside.take().unwrap_or_default().then_some(event),
        Event::Code(text) if inside.is_none() && is_page(&text) => Some(Event::InlineHtml(page_link(&text))),
        other => Some(other),
    };
    events.into_iter().filter_map(one).collect()
}

/// Where a link leads here.
fn target(url: &str) -> Option<String> {
    if url.starts_with('#') || url.starts_with("https://") || url.starts_with("http://") {
        return Some(url.to_owned());
    }
    let (file, anchor) = url.find('#').map_or((url, ""), |at| url.split_at(at));
    let name = file.strip_suffix(".md").filter(|name| is_served(name))?;
    Some(format!("/docs/{name}{anchor}"))
}

/// Whether this is the path of a page that a member can open.
fn is_page(code: &str) -> bool {
    code.starts_with('/') && !matches!(Route::of(code), Route::Unknown | Route::Login)
}

fn page_link(path: &str) -> CowStr<'static> {
    let path = escaped(path);
    format!("<a href=\"{path}\"><code>{path}</code></a>").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_what_is_served() {
        let table = [
            ("deploying.md", Some("/docs/deploying")),
            ("deploying.md#x-y", Some("/docs/deploying#x-y")),
            ("#x", Some("#x")),
            ("https://example.org/a.md", Some("https://example.org/a.md")),
            ("openapi.json", None),
            ("../README.md", None),
            ("../examples", None),
            ("nothing.md", None),
            ("javascript:alert(1)", None),
            ("//evil.example/deploying.md", None),
        ];
        for (url, expected) in table {
            assert_eq!(target(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn paths_of_pages_are_links_and_others_are_text() {
        assert!(["/keys", "/", "/nodes/link", "/docs/api"].into_iter().all(is_page));
        assert!(!["/etc/corpus", "/login", "/readyz", "keys", "/jobs/{job}"].into_iter().any(is_page));
    }
}
