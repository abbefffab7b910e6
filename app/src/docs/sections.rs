//! A document in parts: each heading with the text below it, to be found and linked to.

use pulldown_cmark::{Event, Tag, TagEnd};

use super::anchors::Anchors;

/// Keeps the cells of a table apart.
const BETWEEN_CELLS: &str = " · ";

/// What stands below a heading, up to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its anchor.
    pub id: String,
    /// 1 for the title of the document.
    pub level: u8,
    /// As text.
    pub heading: String,
    /// As text, on one line.
    pub text: String,
}

/// The parts of a document, in order.
pub fn sections(events: &[Event<'_>]) -> Vec<Section> {
    let (mut all, mut anchors, mut in_heading) = (Vec::<Section>::new(), Anchors::default(), false);
    for event in events {
        if let Event::Start(Tag::Heading { level, .. }) = event {
            in_heading = true;
            let level = *level as u8;
            all.push(Section { id: String::new(), level, heading: String::new(), text: String::new() });
        }
        let Some(section) = all.last_mut() else { continue };
        let text = if in_heading { &mut section.heading } else { &mut section.text };
        text.push_str(said(event));
        if matches!(event, Event::End(TagEnd::Heading(_))) {
            in_heading = false;
            section.heading = squeezed(&section.heading);
            section.id = anchors.next(&section.heading);
        }
    }
    for section in &mut all {
        section.text = squeezed(&section.text);
    }
    all
}

/// What an event adds to the text: blocks are apart, and what is only marked is not.
fn said<'a>(event: &'a Event<'_>) -> &'a str {
    match event {
        Event::Text(text) | Event::Code(text) => text,
        Event::Start(Tag::Emphasis | Tag::Link { .. } | Tag::Strong)
        | Event::End(TagEnd::Emphasis | TagEnd::Link | TagEnd::Strong) => "",
        Event::End(TagEnd::TableCell) => BETWEEN_CELLS,
        _ => " ",
    }
}

/// On one line, and of empty cells nothing.
fn squeezed(text: &str) -> String {
    let mark = BETWEEN_CELLS.trim();
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.dedup_by(|one, before| one == before && *one == mark);
    words.join(" ").trim_matches([' ', '·']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::render::events;
    use super::*;

    #[test]
    fn headings_and_what_is_below_them() {
        let source = "# A *title*\n\nFirst\nline.\n\n## `code` and [link](x.md)\n\n| a | |\n|---|---|\n| c | **d**e |\n\n```sh\nls\n```\n- f\n  - g\n";
        let found = sections(&events(source));
        let parts: Vec<_> = found.iter().map(|one| (one.level, &*one.id, &*one.heading, &*one.text)).collect();
        assert_eq!(
            parts,
            [(1, "a-title", "A title", "First line."), (2, "code-and-link", "code and link", "a · c · de · ls f g")]
        );
    }
}
