//! The documentation, to be read where Corpus runs.
//!
//! Who uses a server has no repository beside it, and that of another version would mislead. So the documents of
//! `docs/` are in the program, the very same files. They are rendered once, when the first one is asked for;
//! what a document may bring into a page is decided in [`render`] and [`links`].

mod anchors;
mod boxes;
mod links;
mod marks;
mod render;
pub mod search;
mod sections;

use std::sync::LazyLock;

pub use marks::Piece;
pub use sections::Section;

/// A document, rendered.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its name in paths, that of its file.
    pub name: &'static str,
    /// What it says, without its title.
    pub html: String,
    /// The same in parts, as text. The first has the title as its heading.
    pub sections: Vec<Section>,
}

impl Document {
    fn new(name: &'static str, source: &str) -> Self {
        let events = render::events(source);
        let sections = sections::sections(&events);
        Self { name, html: render::html(events, &sections), sections }
    }

    /// Its title.
    pub fn title(&self) -> &str {
        self.sections.first().map_or("", |first| &first.heading)
    }

    /// Its first sentence: what it is about.
    pub fn summary(&self) -> &str {
        let text = self.sections.first().map_or("", |first| &first.text);
        text.find(". ").and_then(|end| text.get(..=end)).unwrap_or(text)
    }

    /// The page of one of its sections.
    pub fn path_of(&self, section: &Section) -> String {
        format!("/docs/{}#{}", self.name, section.id)
    }
}

/// Documents for the same readers.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// Who they are for.
    pub title: &'static str,
    /// In the order in which one reads them.
    pub documents: Vec<Document>,
}

/// The name of a document and its text.
type Source = (&'static str, &'static str);

macro_rules! source {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../docs/", $name, ".md")))
    };
}

const SHELVES: [(&str, &[Source]); 3] = [
    (
        "For members",
        &[
            source!("first-steps"),
            source!("dns"),
            source!("deploying"),
            source!("makina-states"),
            source!("ci"),
            source!("firewall"),
            source!("states"),
            source!("snapshots"),
            source!("backups"),
            source!("moving"),
            source!("traffic"),
            source!("intrusion"),
            source!("mail"),
            source!("requests"),
            source!("tests-and-badges"),
            source!("webhooks"),
            source!("api"),
            source!("words"),
        ],
    ),
    (
        "For operators",
        &[source!("operating"), source!("images"), source!("hooks"), source!("security"), source!("reliability")],
    ),
    ("How it is made", &[source!("design")]),
];

static SHELVES_RENDERED: LazyLock<Vec<Shelf>> = LazyLock::new(|| {
    let rendered = |sources: &[Source]| sources.iter().map(|(name, text)| Document::new(name, text)).collect();
    SHELVES.iter().map(|(title, sources)| Shelf { title, documents: rendered(sources) }).collect()
});

/// All documents, by their readers.
pub fn shelves() -> &'static [Shelf] {
    &SHELVES_RENDERED
}

/// All documents.
pub fn all() -> impl Iterator<Item = &'static Document> {
    shelves().iter().flat_map(|shelf| &shelf.documents)
}

/// The document of a name.
pub fn find(name: &str) -> Option<&'static Document> {
    all().find(|document| document.name == name)
}

/// Whether there is a document of this name; does not need them rendered.
fn is_served(name: &str) -> bool {
    SHELVES.iter().any(|(_, sources)| sources.iter().any(|(known, _)| *known == name))
}

#[cfg(test)]
mod tests;
