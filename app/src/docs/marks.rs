//! Where words stand in a text, and the text in pieces with them marked.
//!
//! A word is found where a word begins: `ip` is in "IPv4" and not in "script". Small and large letters are the
//! same.

use std::ops::Range;

/// As much of a section is shown with what was found in it, in bytes.
const EXCERPT: usize = 220;
/// Before the first word in it.
const BEFORE: usize = 60;
/// Of a word that is everywhere, the first places are enough to choose among.
const CONSIDERED: usize = 200;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As it is.
    Plain(String),
    /// A word that was looked for.
    Marked(String),
}

/// The places of the words, which are in small letters: in order, none within another.
pub fn places(text: &str, words: &[String]) -> Vec<Range<usize>> {
    let (mut found, mut end, mut before) = (Vec::new(), 0, None::<char>);
    for (at, letter) in text.char_indices() {
        let begins = !letter.is_alphanumeric() || !before.is_some_and(char::is_alphanumeric);
        before = Some(letter);
        if at < end || !begins {
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        if let Some(length) = words.iter().filter_map(|word| begins_with(rest, word)).max() {
            end = at + length;
            found.push(at..end);
        }
    }
    found
}

/// How many of the words are in a text.
pub fn how_many(text: &str, words: &[String]) -> usize {
    words.iter().filter(|word| !places(text, std::slice::from_ref(*word)).is_empty()).count()
}

/// The length of the word at the beginning of a text, in bytes of the text.
fn begins_with(text: &str, word: &str) -> Option<usize> {
    let (mut letters, mut length) = (text.chars(), 0);
    let mut wanted = word.chars().peekable();
    while wanted.peek().is_some() {
        let letter = letters.next()?;
        length += letter.len_utf8();
        if !letter.to_lowercase().all(|small| wanted.next() == Some(small)) {
            return None;
        }
    }
    Some(length)
}

/// A whole text.
pub fn marked(text: &str, words: &[String]) -> Vec<Piece> {
    let (mut pieces, mut done) = (Vec::new(), 0);
    let plain = |range: Range<usize>| {
        let text = text.get(range).filter(|text| !text.is_empty());
        text.map(|text| Piece::Plain(text.to_owned()))
    };
    for place in places(text, words) {
        pieces.extend(plain(done..place.start));
        done = place.end;
        pieces.extend(text.get(place).map(|text| Piece::Marked(text.to_owned())));
    }
    pieces.extend(plain(done..text.len()));
    pieces
}

/// The part of a text that has most of the words, the first one of such.
pub fn excerpt(text: &str, words: &[String]) -> Vec<Piece> {
    let after = |place: &Range<usize>| text.get(place.start..text.floor_char_boundary(place.start + EXCERPT - BEFORE));
    let mut best = (0, 0);
    for place in places(text, words).iter().take(CONSIDERED) {
        let number = how_many(after(place).unwrap_or_default(), words);
        if number > best.0 {
            best = (number, place.start);
        }
    }
    let part = around(text, best.1);
    let mut pieces = marked(text.get(part.clone()).unwrap_or_default(), words);
    if part.start > 0 {
        pieces.insert(0, Piece::Plain("… ".to_owned()));
    }
    if part.end < text.len() {
        pieces.push(Piece::Plain(" …".to_owned()));
    }
    pieces
}

/// A part of a text with whole words, some of them before a place.
fn around(text: &str, place: usize) -> Range<usize> {
    let wanted = text.floor_char_boundary(place.saturating_sub(BEFORE));
    let space = |from: usize, to: usize| text.get(from..to).and_then(|part| part.find(' ')).map(|at| from + at + 1);
    let start = if wanted == 0 { 0 } else { space(wanted, place).unwrap_or(place) };
    let end = text.floor_char_boundary(start + EXCERPT);
    let whole = || text.get(start..end).and_then(|part| part.rfind(' ')).map(|at| start + at);
    start..if end == text.len() { end } else { whole().unwrap_or(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_lowercase).collect()
    }

    /// A text with its marks, for people.
    fn shown(pieces: &[Piece]) -> String {
        let one = |piece: &Piece| match piece {
            Piece::Plain(text) => text.clone(),
            Piece::Marked(text) => format!("[{text}]"),
        };
        pieces.iter().map(one).collect()
    }

    #[test]
    fn words_are_found_where_words_begin() {
        let table = [
            ("An IPv4 of a script", "ip", "An [IP]v4 of a script"),
            ("Deploys, deployment", "deploy deployment", "[Deploy]s, [deployment]"),
            ("`storage_limit` of $CORPUS_DATA", "limit $corpus", "`storage_[limit]` of [$CORPUS]_DATA"),
            ("a.sls b", ".sls", "a[.sls] b"),
            ("Größe, größer", "größe", "[Größe], [größe]r"),
            ("İstanbul, a ẞ", "ß", "İstanbul, a [ẞ]"),
            ("nothing", "thing", "nothing"),
        ];
        for (text, looked_for, expected) in table {
            assert_eq!(shown(&marked(text, &words(looked_for))), expected);
        }
    }

    #[test]
    fn an_excerpt_is_where_most_words_are() {
        let text = format!("key {} the seal key is kept {}", "x y ".repeat(60), "z ".repeat(200));
        let part = shown(&excerpt(&text, &words("seal key")));
        assert!(part.starts_with("… ") && part.contains("the [seal] [key] is kept") && part.ends_with(" …"), "{part}");
        assert!(part.len() < EXCERPT + 20, "{part}");
        assert_eq!(shown(&excerpt("All of it.", &words("nowhere"))), "All of it.");
        let long = "ü".repeat(EXCERPT * 2);
        assert!(shown(&excerpt(&long, &words("ü"))).len() < EXCERPT + 20);
    }
}
