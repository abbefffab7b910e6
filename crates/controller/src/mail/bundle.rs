//! Several letters as one: a line for each of the first of a kind, and how many more there are.

use url::Url;

use super::letter::Letter;
use super::words::{Mail, Text, one_line, page};

/// As many of a kind are listed.
pub const LISTED: i64 = 10;

/// As many kinds the subject names.
const IN_SUBJECT: usize = 2;

/// What of one kind is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The first of them, at least one and at most [`LISTED`].
    pub first: Vec<Letter>,
    /// How many there are.
    pub count: i64,
}

/// All of it as one letter; none when there is nothing.
pub fn mail(groups: &[Group], pages: &Url) -> Option<Mail> {
    match groups {
        [Group { first, count: 1 }] => Some(first.first()?.mail(pages)),
        groups => several(groups, pages),
    }
}

fn several(groups: &[Group], pages: &Url) -> Option<Mail> {
    let (mut text, mut headings) = (Text::default(), Vec::new());
    for group in groups {
        let (heading, all) = group.first.first()?.heading(group.count);
        text.line(&format!("{heading}:"));
        text.gap();
        for letter in &group.first {
            let line = letter.line();
            text.line(&format!("  {}", one_line(&line.text)));
            text.line(&format!("    {}", page(pages, &line.path)));
        }
        let more = group.count - i64::try_from(group.first.len()).unwrap_or_default();
        if more > 0 {
            text.line(&format!("  and {more} more: {}", page(pages, all)));
        }
        text.gap();
        headings.push(heading);
    }
    let named = headings.iter().take(IN_SUBJECT).cloned().collect::<Vec<_>>().join(", ");
    let subject =
        if headings.len() > IN_SUBJECT { format!("Corpus: {named}, and more") } else { format!("Corpus: {named}") };
    (!headings.is_empty()).then(|| text.mail(&subject, pages))
}
