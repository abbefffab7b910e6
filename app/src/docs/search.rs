//! Finding sections of the documentation.
//!
//! A section is found when all the words are in its heading or its text. Those with words in the heading come
//! first, then those with more of them. What is asked and what is answered are bounded.

use std::cmp::Reverse;

use super::marks::{excerpt, how_many, marked, places};
use super::{Document, Piece, Section};

/// Letters of a question that count.
pub const LETTERS: usize = 100;
/// Words of a question that count.
const WORDS: usize = 8;
/// Sections that are told.
pub const SHOWN: usize = 20;

/// A section that was found.
#[derive(Debug, Clone)]
pub struct Hit<'a> {
    /// Where it is.
    pub document: &'a Document,
    /// What it is.
    pub section: &'a Section,
    /// Its heading.
    pub heading: Vec<Piece>,
    /// Some of its text.
    pub excerpt: Vec<Piece>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Hits<'a> {
    /// How many sections.
    pub number: usize,
    /// The best of them.
    pub first: Vec<Hit<'a>>,
}

/// The question as it counts.
pub fn asked(text: &str) -> String {
    text.trim().chars().take(LETTERS).collect()
}

/// Finds the sections of `documents` with all words of a question, and tells at most `most`.
pub fn search<'a>(documents: impl IntoIterator<Item = &'a Document>, question: &str, most: usize) -> Hits<'a> {
    let words: Vec<String> = asked(question).split_whitespace().take(WORDS).map(str::to_lowercase).collect();
    if words.is_empty() {
        return Hits::default();
    }
    let sections = documents.into_iter().flat_map(|one| one.sections.iter().map(move |section| (one, section)));
    let mut found: Vec<_> =
        sections.filter_map(|(document, section)| Some((rank(section, &words)?, document, section))).collect();
    // Equals stay in the order in which one reads them.
    found.sort_by_key(|(rank, ..)| Reverse(*rank));
    let hit = |(_, document, section): &(_, &'a Document, &'a Section)| Hit {
        document,
        section,
        heading: marked(&section.heading, &words),
        excerpt: excerpt(&section.text, &words),
    };
    Hits { number: found.len(), first: found.iter().take(most).map(hit).collect() }
}

/// How many of the words are in the heading, and how often they are in the text; nothing when one is in neither.
fn rank(section: &Section, words: &[String]) -> Option<(usize, usize)> {
    let is_there = |word: &String| {
        let word = std::slice::from_ref(word);
        how_many(&section.heading, word) + how_many(&section.text, word) > 0
    };
    let ranked = || (how_many(&section.heading, words), places(&section.text, words).len());
    words.iter().all(is_there).then(ranked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> [Document; 2] {
        let first =
            "# One\n\nKeys open guests.\n\n## Guests\n\nA guest.\n\n## Others\n\nGuest, guest and guest; `seal`.\n";
        let second = "# Two\n\nThe seal key.\n\n## Keys of guests\n\nSeal.\n\n## <i>\n\n`<script>` of a key\n";
        [Document::new("one", first), Document::new("two", second)]
    }

    fn found(question: &str) -> Vec<String> {
        let documents = documents();
        let hits = search(&documents, question, SHOWN);
        assert_eq!(hits.number, hits.first.len());
        hits.first.iter().map(|hit| hit.document.path_of(hit.section)).collect()
    }

    #[test]
    fn headings_come_first_then_the_number() {
        assert_eq!(
            found("guest"),
            ["/docs/one#guests", "/docs/two#keys-of-guests", "/docs/one#others", "/docs/one#one"]
        );
    }

    #[test]
    fn all_words_must_be_there() {
        assert_eq!(found("SEAL guest"), ["/docs/two#keys-of-guests", "/docs/one#others"]);
        assert_eq!(found(" keys\topen "), ["/docs/one#one"]);
        for nothing in ["", "  ", "seal nowhere", "uest"] {
            assert_eq!(found(nothing), [""; 0], "{nothing:?}");
        }
    }

    #[test]
    fn what_is_asked_and_told_is_bounded() {
        let documents = documents();
        let hits = search(&documents, "guest", 2);
        assert_eq!((hits.number, hits.first.len()), (4, 2));
        let endless = "guest ".repeat(100_000);
        assert_eq!(asked(&endless).chars().count(), LETTERS);
        assert_eq!(search(&documents, &endless, SHOWN).number, 4);
    }

    #[test]
    fn what_was_looked_for_is_marked() {
        let documents = documents();
        let hits = search(&documents, "script", 1);
        let plain = |text: &str| Piece::Plain(text.to_owned());
        assert_eq!(hits.first[0].excerpt, [plain("<"), Piece::Marked("script".to_owned()), plain("> of a key")]);
    }
}
